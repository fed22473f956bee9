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
constexpr char kIsSnapshot = 'S';
constexpr char kIsError = 'E';  // then the code, then the text

Result<Snapshot> ReadScenario(const MomentRequest& request) {
  Result<ScenarioRun> run = ScenarioRun::Open(request.source.argument);
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
  Integrator integrator;
  Snapshot snapshot = (*source)->Read();
  const SteadyTime start = snapshot.steady;
  integrator.Apply(snapshot);
  while (!(*source)->AtEnd() && !(request.at && snapshot.steady - start >= *request.at)) {
    snapshot = (*source)->Read();
    integrator.Apply(snapshot);
  }
  return snapshot;
}

Result<Snapshot> ReadDriver(const MomentRequest& request) {
  const SystemClock clock;
  Result<std::unique_ptr<Source>> source =
      OpenSource(request.source, {.clock = clock, .hostname = ThisHost()});
  if (!source) return std::unexpected(BadSourceArgument(request.source, source.error()));
  Integrator integrator;
  Snapshot first = (*source)->Read();
  integrator.Apply(first);
  std::this_thread::sleep_for(request.interval);
  Snapshot second = (*source)->Read();
  integrator.Apply(second);
  return second;
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
  const Result<Snapshot> snapshot = ReadDriver(request);
  std::string bytes;
  if (snapshot) {
    bytes += kIsSnapshot;
    EncodeSnapshot(*snapshot, bytes);
  } else {
    bytes += kIsError;
    bytes += static_cast<char>(snapshot.error().code);
    bytes += snapshot.error().what;
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

Result<Snapshot> SnapshotOf(std::string_view bytes) {
  if (bytes.size() > 1 && bytes[0] == kIsSnapshot) return DecodeSnapshot(bytes.substr(1));
  if (bytes.size() > 2 && bytes[0] == kIsError) {
    return Fail(static_cast<ErrorCode>(bytes[1]), std::string(bytes.substr(2)));
  }
  return Fail(ErrorCode::kIo, "the driver's library ended the process that called it");
}

Result<Snapshot> ReadDriverInChild(const MomentRequest& request) {
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
  return SnapshotOf(*bytes);
}

}  // namespace

Result<ScenarioRun> ScenarioRun::Open(const std::string& name_or_path) {
  const Result<std::string> path = FindScenario(name_or_path);
  if (!path) return std::unexpected(path.error());
  Result<sim::Scenario> scenario = sim::LoadScenario(*path);
  if (!scenario) return Fail(ErrorCode::kMalformed, scenario.error().what);
  ScenarioRun run;
  run.name_ = scenario->name;
  run.length_ = scenario->length;
  run.clock_ = std::make_unique<VirtualClock>(scenario->start);
  const std::string hostname = scenario->hostname;
  run.source_ = MakeSimulator(std::move(*scenario), *run.clock_, hostname);
  return run;
}

Snapshot ScenarioRun::ReadRawAt(Duration t) {
  if (t > clock_->Elapsed()) clock_->AdvanceTo(t);  // a call that hangs has moved it, too
  return source_->Read();
}

Snapshot ScenarioRun::ReadAt(Duration t) {
  Snapshot snapshot = ReadRawAt(t);
  integrator_->Apply(snapshot);
  return snapshot;
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
  return ReadDriverInChild(request);
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
