#include "cli/source_reading.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/duration.h"
#include "cli/scenario_files.h"
#include "model/snapshot_codec.h"
#include "sim/scenario/scenario.h"
#include "sources/replay/recording.h"
#include "sources/simulator/simulator_source.h"

namespace gpuassay {
namespace {

constexpr Duration kScenarioMoment = std::chrono::minutes(1);

// First byte of what the child hands over.
constexpr char kIsReadings = 'S';  // then the length of the first, the first, the second
constexpr char kIsError = 'E';     // then the code, then the text

Result<Snapshot> ReadScenario(const MomentRequest& request) {
  Result<ScenarioRun> run = ScenarioRun::Open(request.source.argument, request.node);
  if (!run) return std::unexpected(run.error());
  const Duration at = request.at.value_or(kScenarioMoment);
  // From the start on, so that events before `at` are counted.
  run->ReadAt(Duration::zero());
  run->ReadAt(std::max(at - request.interval, Duration::zero()));
  return run->ReadAt(at);
}

Result<Snapshot> ReadRecording(const MomentRequest& request) {
  const VirtualClock clock{WallTime{}};
  Result<std::unique_ptr<Source>> source =
      OpenReplay(request.source.argument, ReplayPace::kAsFastAsRead, clock);
  if (!source) return std::unexpected(BadSourceArgument(request.source, source.error()));
  Completion completion;
  Snapshot snapshot = (*source)->Read();
  const SteadyTime start = snapshot.steady;
  completion.Apply(snapshot);
  while (!(*source)->AtEnd() && !(request.at && snapshot.steady - start >= *request.at)) {
    snapshot = (*source)->Read();
    completion.Apply(snapshot);
  }
  return snapshot;
}

// What the driver says, twice.
struct TwoReadings {
  Snapshot first;
  Snapshot second;
};

Result<TwoReadings> ReadDriver(const MomentRequest& request) {
  const SystemClock clock;
  Result<std::unique_ptr<Source>> source =
      OpenSource(request.source, {.clock = clock, .hostname = ThisHost()});
  if (!source) return std::unexpected(BadSourceArgument(request.source, source.error()));
  TwoReadings readings;
  readings.first = (*source)->Read();
  std::this_thread::sleep_for(request.interval);
  readings.second = (*source)->Read();
  return readings;
}

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void HandOverAndExit(const MomentRequest& request, int fd) {
  const Result<TwoReadings> readings = ReadDriver(request);
  std::string bytes;
  if (readings) {
    std::string first;
    EncodeSnapshot(readings->first, first);
    bytes += kIsReadings;
    const std::uint64_t size = first.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += first;
    EncodeSnapshot(readings->second, bytes);
  } else {
    bytes += kIsError;
    bytes += static_cast<char>(readings.error().code);
    bytes += readings.error().what;
  }
  WriteAll(fd, bytes);
  _exit(0);
}

// Everything the child writes until it closes the pipe.
Result<std::string> ReadUntilClosed(int fd, Duration timeout) {
  const SystemClock clock;
  const SteadyTime end = clock.Steady() + timeout;
  std::string bytes;
  std::array<char, 65536> buffer;
  for (;;) {
    const Duration left = end - clock.Steady();
    pollfd poll_fd = {fd, POLLIN, 0};
    const int ready =
        left.count() <= 0 ? 0 : poll(&poll_fd, 1, static_cast<int>(left.count() / 1000 + 1));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Fail(
          ErrorCode::kTimeout,
          fmt::format("the driver has not answered for {}; look into the kernel log (dmesg) "
                      "for NVRM lines",
                      FormatDuration(timeout)));
    }
    const ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

Result<TwoReadings> ReadingsOf(std::string_view bytes) {
  std::uint64_t size = 0;
  if (bytes.size() > 1 + sizeof size && bytes[0] == kIsReadings) {
    bytes.remove_prefix(1);
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    Result<Snapshot> first = DecodeSnapshot(bytes.substr(0, size));
    if (!first) return std::unexpected(first.error());
    Result<Snapshot> second =
        DecodeSnapshot(bytes.substr(std::min<std::size_t>(size, bytes.size())));
    if (!second) return std::unexpected(second.error());
    return TwoReadings{std::move(*first), std::move(*second)};
  }
  if (bytes.size() > 2 && bytes[0] == kIsError) {
    return Fail(static_cast<ErrorCode>(bytes[1]), std::string(bytes.substr(2)));
  }
  return Fail(ErrorCode::kIo, "the driver's library ended the process that called it");
}

Result<TwoReadings> ReadDriverInChild(const MomentRequest& request) {
  int ends[2];
  if (pipe(ends) != 0) return Fail(ErrorCode::kIo, fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    HandOverAndExit(request, ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return Fail(ErrorCode::kIo, fmt::format("fork: {}", std::strerror(errno)));
  }
  const Result<std::string> bytes = ReadUntilClosed(ends[0], request.timeout + request.interval);
  close(ends[0]);
  if (!bytes) {
    // A call that is stuck in the kernel does not die of this; waiting for it would hang too.
    kill(child, SIGKILL);
    waitpid(child, nullptr, WNOHANG);
    return std::unexpected(bytes.error());
  }
  waitpid(child, nullptr, 0);
  return ReadingsOf(*bytes);
}

Result<Snapshot> ReadLive(const MomentRequest& request) {
  const SystemClock clock;
  // First, so that what was named and cannot be read is said at once. Starts no thread: the child
  // is a fork.
  Result<std::unique_ptr<NodeJoin>> join =
      NodeJoin::Open(request.source, request.node, NodeJoin::Pace::kOneShot, clock);
  if (!join) return std::unexpected(join.error());
  Result<TwoReadings> readings = ReadDriverInChild(request);
  if (!readings) return std::unexpected(readings.error());
  Completion completion(request.interval, std::move(*join));
  completion.Apply(readings->first);
  completion.Apply(readings->second);
  return std::move(readings->second);
}

}  // namespace

Result<ScenarioRun> ScenarioRun::Open(const std::string& name_or_path, const NodeOptions& node) {
  const Result<std::string> path = FindScenario(name_or_path);
  if (!path) return std::unexpected(path.error());
  Result<sim::Scenario> scenario = sim::LoadScenario(*path);
  if (!scenario) return Fail(ErrorCode::kMalformed, scenario.error().what);
  ScenarioRun run;
  run.name_ = scenario->name;
  run.length_ = scenario->length;
  run.clock_ = std::make_unique<VirtualClock>(scenario->start);
  run.system_clock_ = std::make_unique<SystemClock>();
  Result<std::unique_ptr<NodeJoin>> join = NodeJoin::Open(
      {SourceSpec::Kind::kSimulator, *path}, node, NodeJoin::Pace::kOneShot, *run.system_clock_);
  if (!join) return std::unexpected(join.error());
  run.completion_ = std::make_unique<Completion>(std::chrono::seconds(1), std::move(*join));
  const std::string hostname = scenario->hostname;
  run.source_ = MakeSimulator(std::move(*scenario), *run.clock_, hostname);
  return run;
}

Snapshot ScenarioRun::ReadJoinedAt(Duration t) {
  Snapshot snapshot = ReadSourceAt(t);
  completion_->Join(snapshot);
  return snapshot;
}

Snapshot ScenarioRun::ReadAt(Duration t) {
  Snapshot snapshot = ReadSourceAt(t);
  completion_->Apply(snapshot);
  return snapshot;
}

Snapshot ScenarioRun::ReadSourceAt(Duration t) {
  if (t > clock_->Elapsed()) clock_->AdvanceTo(t);  // a call that hangs has moved it, too
  return source_->Read();
}

Result<Snapshot> ReadMoment(const MomentRequest& request) {
  switch (request.source.kind) {
    case SourceSpec::Kind::kSimulator:
      return ReadScenario(request);
    case SourceSpec::Kind::kReplay:
      return ReadRecording(request);
    case SourceSpec::Kind::kNvml:
      break;
  }
  if (request.at) {
    return Fail(ErrorCode::kMalformed,
                "--at: a live driver only tells the present; use a scenario or a recording");
  }
  return ReadLive(request);
}

Error BadSourceArgument(const SourceSpec& spec, Error error) {
  const bool named = !spec.argument.empty();
  const bool absent = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kPermission;
  if (named && absent) error.code = ErrorCode::kMalformed;
  return error;
}

std::string ThisHost() {
  if (const char* node = std::getenv("NODE_NAME"); node != nullptr && *node != '\0') return node;
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace gpuassay
