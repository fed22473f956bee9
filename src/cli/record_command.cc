#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "agent/completion.h"
#include "agent/node_join.h"
#include "agent/source_spec.h"
#include "base/duration.h"
#include "cli/command.h"
#include "cli/node_arguments.h"
#include "cli/options.h"
#include "cli/scenario_files.h"
#include "cli/source_reading.h"
#include "sources/replay/recording.h"

namespace gpuassay {
namespace {

constexpr Duration kEveryMin = std::chrono::milliseconds(100);

struct RecordArguments {
  std::string file;
  std::string source = "nvml";
  std::string length;  // empty: until Ctrl-C, or the end of the scenario or recording
  std::string every = "1s";
  bool neutral = false;
  NodeArguments node;
};

struct RecordRequest {
  SourceSpec source;
  NodeOptions node;
  std::optional<Duration> length;
  Duration every = {};
};

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

// Ctrl-C and SIGTERM end the recording well; a second one ends the program at once, should a driver
// call hang.
void StopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_requested = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Returns early when a signal comes.
void SleepUntil(SteadyTime until, const Clock& clock) {
  constexpr Duration kSliceMax = std::chrono::milliseconds(200);  // a signal may come just before
  while (!stop_requested) {
    const Duration left = std::min(until - clock.Steady(), kSliceMax);
    if (left.count() <= 0) return;
    poll(nullptr, 0, static_cast<int>((left.count() + 999) / 1000));
  }
}

Result<void> RecordScenario(const RecordRequest& request, RecordingWriter& writer) {
  Result<ScenarioRun> run = ScenarioRun::Open(request.source.argument, request.node);
  if (!run) return std::unexpected(run.error());
  const Duration length = request.length.value_or(run->length());
  for (Duration t = {}; t <= length && !stop_requested; t += request.every) {
    if (Result<void> result = writer.Write(run->ReadJoinedAt(t)); !result) return result;
  }
  return {};
}

// A recording is copied frame by frame, for example to make a neutral one of it.
Result<void> RecordRecording(const RecordRequest& request, RecordingWriter& writer) {
  const VirtualClock clock{WallTime{}};
  Result<std::unique_ptr<Source>> source =
      OpenReplay(request.source.argument, ReplayPace::kAsFastAsRead, clock);
  if (!source) return std::unexpected(BadSourceArgument(request.source, source.error()));
  std::optional<SteadyTime> start;
  while (!(*source)->AtEnd() && !stop_requested) {
    const Snapshot snapshot = (*source)->Read();
    if (!start) start = snapshot.steady;
    if (request.length && snapshot.steady - *start > *request.length) break;
    if (Result<void> result = writer.Write(snapshot); !result) return result;
  }
  return {};
}

Result<void> RecordDriver(const RecordRequest& request, RecordingWriter& writer) {
  const SystemClock clock;
  Result<std::unique_ptr<Source>> source =
      OpenSource(request.source, {.clock = clock, .hostname = ThisHost()});
  if (!source) return std::unexpected(BadSourceArgument(request.source, source.error()));
  Result<std::unique_ptr<NodeJoin>> join =
      NodeJoin::Open(request.source, request.node, NodeJoin::Pace::kLive, clock);
  if (!join) return std::unexpected(join.error());
  Completion completion(request.every, std::move(*join));
  const SteadyTime start = clock.Steady();
  for (SteadyTime next = start; !stop_requested;) {
    Snapshot snapshot = (*source)->Read();
    completion.Join(snapshot);
    if (Result<void> result = writer.Write(snapshot); !result) return result;
    next += request.every * std::max<Duration::rep>(1, (clock.Steady() - next) / request.every + 1);
    if (request.length && next - start > *request.length) break;
    SleepUntil(next, clock);
  }
  return {};
}

Result<RecordRequest> RequestOf(const RecordArguments& arguments) {
  RecordRequest request;
  const Result<SourceSpec> source = ParseSourceSpec(arguments.source);
  if (!source) return std::unexpected(source.error());
  request.source = *source;
  if (request.source.kind == SourceSpec::Kind::kSimulator) {
    // Before the recording is made: it may be called like the scenario.
    const Result<std::string> scenario = FindScenario(request.source.argument);
    if (!scenario) return std::unexpected(scenario.error());
    request.source.argument = *scenario;
  }
  const auto every = DurationOption("--every", arguments.every, kEveryMin);
  if (!every) return std::unexpected(every.error());
  request.every = *every;
  Result<NodeOptions> node = MakeNodeOptions(arguments.node);
  if (!node) return std::unexpected(node.error());
  request.node = std::move(*node);
  if (arguments.length.empty()) return request;
  const auto length = DurationOption("--for", arguments.length, Duration::zero());
  if (!length) return std::unexpected(length.error());
  request.length = *length;
  return request;
}

Result<void> Record(const RecordRequest& request, RecordingWriter& writer) {
  switch (request.source.kind) {
    case SourceSpec::Kind::kSimulator:
      return RecordScenario(request, writer);
    case SourceSpec::Kind::kReplay:
      return RecordRecording(request, writer);
    case SourceSpec::Kind::kNvml:
      break;
  }
  return RecordDriver(request, writer);
}

Result<void> RunRecord(const RecordArguments& arguments) {
  const Result<RecordRequest> request = RequestOf(arguments);
  if (!request) return std::unexpected(request.error());
  auto writer = RecordingWriter::Create(arguments.file, {.neutral = arguments.neutral});
  if (!writer) return std::unexpected(writer.error());
  StopOnSignals();
  const Result<void> recorded = Record(*request, **writer);
  const Result<void> closed = (*writer)->Close();
  const std::uint64_t frames = (*writer)->frames();
  const std::uint64_t bytes = (*writer)->file_bytes();
  if (frames > 0) {
    fmt::print("{}: {} frame{}, {} bytes, {} bytes per frame\n", arguments.file, frames,
               frames == 1 ? "" : "s", bytes, bytes / frames);
  } else {
    // Nothing was read: an empty recording would only be in the way of the next try.
    std::error_code ignored;
    if (std::filesystem::is_regular_file(
            std::filesystem::symlink_status(arguments.file, ignored))) {
      std::filesystem::remove(arguments.file, ignored);
    }
  }
  return recorded ? closed : recorded;
}

}  // namespace

void AddRecordCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("record", "Write what a source reads to a file, for replay=FILE");
  auto arguments = std::make_shared<RecordArguments>();
  command->add_option("FILE", arguments->file, "The recording; never overwritten")->required();
  command
      ->add_option("--source", arguments->source,
                   "nvml[=LIBRARY], simulator=SCENARIO or replay=FILE")
      ->capture_default_str();
  command->add_option("--for", arguments->length,
                      "How long (until Ctrl-C, or the end of the scenario or recording)");
  command->add_option("--every", arguments->every, "Time between readings")->capture_default_str();
  command->add_flag("--neutral", arguments->neutral,
                    "Replace names, UUIDs, serials, addresses and PIDs by stand-ins");
  AddNodeArguments(*command, arguments->node);
  command->callback([arguments, &context] {
    const Result<void> result = RunRecord(*arguments);
    if (!result) context.exit_code = ReportError("record", result.error());
  });
}

}  // namespace gpuassay
