#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "agent/source_spec.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/explain_metric.h"
#include "cli/explain_utilization.h"
#include "cli/options.h"
#include "cli/source_reading.h"

namespace gpuassay {
namespace {

struct ExplainArguments {
  std::string what;
  std::string source = "nvml";
  std::string at;
};

Result<std::string> ExplainMissingOf(const ExplainArguments& arguments) {
  MomentRequest request;
  const Result<SourceSpec> source = ParseSourceSpec(arguments.source);
  if (!source) return std::unexpected(source.error());
  request.source = *source;
  if (!arguments.at.empty()) {
    const Result<Duration> at = DurationOption("--at", arguments.at, Duration::zero());
    if (!at) return std::unexpected(at.error());
    request.at = *at;
  }
  const Result<Snapshot> snapshot = ReadMoment(request);
  if (!snapshot) return std::unexpected(snapshot.error());
  if (snapshot->gpus.empty() && !snapshot->sources.empty() && !snapshot->sources[0].error.empty()) {
    return Fail(ErrorCode::kIo,
                fmt::format("the driver could not be read: {}", snapshot->sources[0].error));
  }
  return ExplainMissing(*snapshot);
}

Result<std::string> Explain(const ExplainArguments& arguments) {
  if (arguments.what == "util" || arguments.what == "utilization") return ExplainUtilization();
  if (arguments.what == "missing") return ExplainMissingOf(arguments);
  return ExplainMetric(arguments.what);
}

}  // namespace

void AddExplainCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("explain", "Explain utilisation, what is missing and why, or one metric");
  auto arguments = std::make_shared<ExplainArguments>();
  command
      ->add_option("WHAT", arguments->what,
                   "util, missing, or a metric by its name, field or DCGM name")
      ->required();
  command
      ->add_option("--source", arguments->source,
                   "For missing: nvml[=LIBRARY], simulator=SCENARIO or replay=FILE")
      ->capture_default_str();
  command->add_option("--at", arguments->at, "For missing: time in the scenario or recording");
  command->callback([arguments, &context] {
    SetLogLevel(LogLevel::kError);  // warnings of the source are in what is printed
    const Result<std::string> text = Explain(*arguments);
    if (text) {
      fmt::print("{}", *text);
    } else {
      context.exit_code = ReportError("explain", text.error());
    }
  });
}

}  // namespace gpuassay
