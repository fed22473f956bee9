#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "agent/agent.h"
#include "agent/worker.h"
#include "base/duration.h"
#include "base/log.h"
#include "cli/agent_arguments.h"
#include "cli/command.h"

namespace gpuassay {
namespace {

struct WorkerArgumentTexts {
  std::string source;
  long long interval_us = 1'000'000;
  WorkerOptions options;
};

void RunWorkerCommand(const WorkerArgumentTexts& texts, CommandContext& context) {
  WorkerOptions options = texts.options;
  const Result<SourceSpec> source = ParseSourceSpec(texts.source);
  if (!source) {
    context.exit_code = ReportError("driver-worker", source.error());
    return;
  }
  options.source = *source;
  options.interval = Duration(texts.interval_us);
  context.exit_code = RunWorker(options);
}

}  // namespace

void AddAgentCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("agent", "Read the driver and serve metrics on port 9400");
  auto arguments = std::make_shared<AgentArguments>();
  AddAgentArguments(*command, *arguments);
  command
      ->add_option("--source", arguments->source,
                   "nvml[=LIBRARY], simulator=SCENARIO or replay=FILE")
      ->capture_default_str();
  command->callback([arguments, &context] {
    Result<AgentOptions> options = MakeAgentOptions(*arguments);
    if (!options) {
      context.exit_code = ReportError("agent", options.error());
      return;
    }
    const Result<void> result = RunAgent(std::move(*options));
    if (!result) context.exit_code = ReportError("agent", result.error());
  });
}

void AddWorkerCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("driver-worker", "The agent's child that calls the driver");
  command->group("");  // not in the help text
  auto texts = std::make_shared<WorkerArgumentTexts>();
  command->add_option("--source", texts->source)->required();
  command->add_option("--hostname", texts->options.hostname);
  command->add_option("--interval-us", texts->interval_us)->check(CLI::PositiveNumber);
  command->add_option("--simulator-speed", texts->options.simulator_speed);
  command->add_option("--skip-gpu", texts->options.gpus_to_skip);
  command->add_option("--frames-fd", texts->options.frames_fd)->required();
  command->add_option("--watch-fd", texts->options.watch_fd);
  command->callback([texts, &context] { RunWorkerCommand(*texts, context); });
}

}  // namespace gpuassay
