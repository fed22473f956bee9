#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/simulate_line.h"
#include "cli/snapshot_table.h"
#include "cli/source_reading.h"
#include "model/snapshot_json.h"

namespace gpuassay {
namespace {

constexpr Duration kEveryMin = std::chrono::milliseconds(100);
constexpr Duration::rep kStepsMax = 10'000'000;

struct SimulateArguments {
  std::string scenario;
  std::string length;  // empty: what the scenario suggests
  std::string every = "1s";
  bool json = false;
  bool last = false;
};

void PrintMoment(const SimulateArguments& arguments, const Snapshot& snapshot, Duration t) {
  if (arguments.json) {
    fmt::print("{}\n", SnapshotJson(snapshot));
  } else if (arguments.last) {
    fmt::print("{}", SnapshotTable(snapshot, WantsColour(STDOUT_FILENO)));
  } else {
    fmt::print("{}", SimulateLine(snapshot, t));
  }
}

Result<void> RunSimulate(const SimulateArguments& arguments) {
  const auto every = DurationOption("--every", arguments.every, kEveryMin);
  if (!every) return std::unexpected(every.error());
  Duration length = {};
  if (!arguments.length.empty()) {
    const auto given = DurationOption("--for", arguments.length, Duration::zero());
    if (!given) return std::unexpected(given.error());
    length = *given;
  }
  NodeOptions node;
  node.attribution = arguments.json || arguments.last;  // a line has no room for owners
  Result<ScenarioRun> run = ScenarioRun::Open(arguments.scenario, node);
  if (!run) return std::unexpected(run.error());
  if (arguments.length.empty()) length = run->length();
  if (length / *every > kStepsMax) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--for and --every make {} readings, at most {} are allowed",
                            length / *every, kStepsMax));
  }
  if (!arguments.json && !arguments.last) fmt::print("{}", SimulateTitle());
  Snapshot snapshot;
  for (Duration t = {}; t <= length && std::ferror(stdout) == 0; t += *every) {
    snapshot = run->ReadAt(t);
    if (!arguments.last) PrintMoment(arguments, snapshot, t);
    // A reading that hung took scenario time: the grid goes on, as the agent's does.
    t += (run->now() - t) / *every * *every;
  }
  if (arguments.last) PrintMoment(arguments, snapshot, run->now());
  return {};
}

}  // namespace

void AddSimulateCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("simulate", "Run a scenario in virtual time and print what is read");
  auto arguments = std::make_shared<SimulateArguments>();
  command
      ->add_option("SCENARIO", arguments->scenario,
                   "A scenario file or the name of one that comes along")
      ->required();
  command->add_option("--for", arguments->length, "Scenario time (what the scenario suggests)");
  command->add_option("--every", arguments->every, "Time between readings")->capture_default_str();
  command->add_flag("--json", arguments->json, "One snapshot per line (docs/commands.md)");
  command->add_flag("--last", arguments->last, "Only the last reading, in full");
  command->callback([arguments, &context] {
    SetLogLevel(LogLevel::kError);  // warnings of the source are in what is printed
    const Result<void> result = RunSimulate(*arguments);
    if (!result) context.exit_code = ReportError("simulate", result.error());
  });
}

}  // namespace gpuassay
