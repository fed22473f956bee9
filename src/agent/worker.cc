#include "agent/worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "agent/frame.h"
#include "base/log.h"
#include "model/snapshot_codec.h"
#include "sources/nvml/call_watch.h"

namespace gpuassay {
namespace {

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Waits until `until`; false when the supervisor is gone.
bool WaitUntil(SteadyTime until, const Clock& clock, int frames_fd) {
  for (;;) {
    const Duration left = until - clock.Steady();
    if (left.count() <= 0) return true;
    pollfd poll_fd = {frames_fd, POLLIN | POLLHUP, 0};
    const timespec timeout = {.tv_sec = left.count() / 1'000'000,
                              .tv_nsec = left.count() % 1'000'000 * 1000};
    const int ready = ppoll(&poll_fd, 1, &timeout, nullptr);
    if (ready > 0) return false;  // the supervisor never writes: this is the end of file
    if (ready < 0 && errno != EINTR) return false;
  }
}

CallWatch* MapWatch(int fd) {
  if (fd < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(CallWatch), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<CallWatch*>(memory);  // made by WorkerProcess
}

int FailedToOpen(const Error& error, int frames_fd) {
  std::string frame = std::string(kFrameHeaderBytes, '\0') + error.what;
  FinishFrame(FrameKind::kFailure, frame);
  SendAll(frames_fd, frame);
  return error.code == ErrorCode::kNotFound ? kWorkerNotFound : kWorkerBadInput;
}

int ReadUntilTheEnd(Source& source, const WorkerOptions& options, const Clock& clock) {
  std::string frame;
  SteadyTime next = clock.Steady();
  for (;;) {
    const Snapshot snapshot = source.Read();
    frame.assign(kFrameHeaderBytes, '\0');
    EncodeSnapshot(snapshot, frame);
    FinishFrame(FrameKind::kSnapshot, frame);
    if (!SendAll(options.frames_fd, frame)) return kWorkerEnded;
    if (source.AtEnd()) return kWorkerEnded;  // this was the last
    if (source.NeedsNewProcess()) return kWorkerNeedsSuccessor;
    // A reading that took longer than the interval is not made up for: the grid goes on.
    const SteadyTime now = clock.Steady();
    next += options.interval * std::max<Duration::rep>(1, (now - next) / options.interval + 1);
    if (!WaitUntil(next, clock, options.frames_fd)) return kWorkerEnded;
  }
}

}  // namespace

int RunWorker(const WorkerOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the supervisor die without closing the socket
  const SystemClock clock;
  const Result<std::unique_ptr<Source>> source =
      OpenSource(options.source, {.clock = clock,
                                  .hostname = options.hostname,
                                  .simulator_speed = options.simulator_speed,
                                  .gpus_to_skip = options.gpus_to_skip,
                                  .watch = MapWatch(options.watch_fd)});
  if (!source) return FailedToOpen(source.error(), options.frames_fd);
  return ReadUntilTheEnd(**source, options, clock);
}

}  // namespace gpuassay
