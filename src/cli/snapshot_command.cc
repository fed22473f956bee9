#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/source_spec.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/footnotes.h"
#include "cli/options.h"
#include "cli/snapshot_table.h"
#include "cli/source_reading.h"
#include "model/snapshot_json.h"

namespace gpuassay {
namespace {

constexpr Duration kIntervalMin = std::chrono::milliseconds(100);  // GPM has no shorter one
constexpr Duration kIntervalMax = std::chrono::seconds(10);        // longer gaps are not integrated

struct SnapshotArguments {
  std::string source = "nvml";
  std::string interval = "1s";
  std::string at;
  std::string timeout = "15s";
  std::optional<std::uint32_t> gpu;
  bool json = false;
};

Result<MomentRequest> RequestOf(const SnapshotArguments& arguments) {
  MomentRequest request;
  const Result<SourceSpec> source = ParseSourceSpec(arguments.source);
  if (!source) return std::unexpected(source.error());
  request.source = *source;
  const auto interval =
      DurationOption("--interval", arguments.interval, kIntervalMin, kIntervalMax);
  if (!interval) return std::unexpected(interval.error());
  request.interval = *interval;
  const auto timeout = DurationOption("--timeout", arguments.timeout, std::chrono::seconds(1));
  if (!timeout) return std::unexpected(timeout.error());
  request.timeout = *timeout;
  if (arguments.at.empty()) return request;
  const auto at = DurationOption("--at", arguments.at, Duration::zero());
  if (!at) return std::unexpected(at.error());
  request.at = *at;
  return request;
}

Result<void> KeepOnly(std::uint32_t index, Snapshot& snapshot) {
  std::set<std::uint32_t> indices;
  for (const Gpu& gpu : snapshot.gpus) indices.insert(gpu.identity.index);
  if (!indices.contains(index)) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--gpu {}: there is no such GPU; there {}", index,
                            indices.empty() ? "are none" : "is " + Ranges(indices)));
  }
  std::erase_if(snapshot.gpus, [index](const Gpu& gpu) { return gpu.identity.index != index; });
  return {};
}

Result<void> RunSnapshot(const SnapshotArguments& arguments) {
  const Result<MomentRequest> request = RequestOf(arguments);
  if (!request) return std::unexpected(request.error());
  Result<Snapshot> snapshot = ReadMoment(*request);
  if (!snapshot) return std::unexpected(snapshot.error());
  if (arguments.gpu) {
    const Result<void> kept = KeepOnly(*arguments.gpu, *snapshot);
    if (!kept) return kept;
  }
  if (arguments.json) {
    fmt::print("{}\n", SnapshotJson(*snapshot, 2));
  } else if (!snapshot->gpus.empty()) {
    fmt::print("{}", SnapshotTable(*snapshot, WantsColour(STDOUT_FILENO)));
  }
  const bool failed = !snapshot->sources.empty() && !snapshot->sources[0].error.empty();
  if (failed) {
    return Fail(ErrorCode::kIo,
                fmt::format("the driver could not be read: {}", snapshot->sources[0].error));
  }
  if (snapshot->gpus.empty() && !arguments.json) fmt::print("The driver knows no GPU.\n");
  return {};
}

}  // namespace

void AddSnapshotCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("snapshot", "Show the GPUs now: what nvidia-smi shows and what it hides");
  auto arguments = std::make_shared<SnapshotArguments>();
  command
      ->add_option("--source", arguments->source,
                   "nvml[=LIBRARY], simulator=SCENARIO or replay=FILE")
      ->capture_default_str();
  command->add_option("--interval", arguments->interval, "Between the two readings")
      ->capture_default_str();
  command->add_option("--at", arguments->at, "Time in the scenario (1m) or recording (its end)");
  command->add_option("--timeout", arguments->timeout, "Give up when the driver does not answer")
      ->capture_default_str();
  command->add_option("--gpu", arguments->gpu, "Only the GPU with this index");
  command->add_flag("--json", arguments->json, "As JSON (docs/commands.md)");
  command->callback([arguments, &context] {
    SetLogLevel(LogLevel::kError);  // warnings of the source are in what is printed
    const Result<void> result = RunSnapshot(*arguments);
    if (!result) context.exit_code = ReportError("snapshot", result.error());
  });
}

}  // namespace gpuassay
