#include "cli/moment_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <utility>

#include "agent/source_spec.h"
#include "cli/options.h"

namespace gpuassay {
namespace {

constexpr Duration kIntervalMin = std::chrono::milliseconds(100);  // GPM has no shorter one
constexpr Duration kIntervalMax = std::chrono::seconds(10);        // longer gaps are not integrated

}  // namespace

void AddMomentArguments(CLI::App& command, MomentArguments& a) {
  command.add_option("--source", a.source, "nvml[=LIBRARY], simulator=SCENARIO or replay=FILE")
      ->capture_default_str();
  command.add_option("--interval", a.interval, "Between the two readings")->capture_default_str();
  command.add_option("--at", a.at, "Time in the scenario (1m) or recording (its end)");
  command.add_option("--timeout", a.timeout, "Give up when the driver does not answer")
      ->capture_default_str();
  AddNodeArguments(command, a.node);
}

Result<MomentRequest> MakeMomentRequest(const MomentArguments& arguments) {
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
  Result<NodeOptions> node = MakeNodeOptions(arguments.node);
  if (!node) return std::unexpected(node.error());
  request.node = std::move(*node);
  if (arguments.at.empty()) return request;
  const auto at = DurationOption("--at", arguments.at, Duration::zero());
  if (!at) return std::unexpected(at.error());
  request.at = *at;
  return request;
}

Result<void> CheckDriverWasRead(const Snapshot& snapshot) {
  if (snapshot.sources.empty() || snapshot.sources[0].error.empty()) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("the driver could not be read: {}", snapshot.sources[0].error));
}

}  // namespace gpuassay
