// One driver worker as a child process: start, read what it sends, see which call it is in, end it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "agent/frame.h"
#include "agent/worker.h"
#include "base/result.h"
#include "sources/nvml/call_watch.h"

namespace gpuassay {

// The arguments of the hidden command `gpuassay driver-worker` for these options.
std::vector<std::string> WorkerArguments(const WorkerOptions& options);

class WorkerProcess {
 public:
  // `program`: the executable; options' file descriptors are made here. kIo when it cannot be
  // started.
  static Result<std::unique_ptr<WorkerProcess>> Start(const std::string& program,
                                                      WorkerOptions options);
  // Closes the socket, which asks the worker to end, and does not wait.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  // For poll(): readable when frames or the end are there.
  int fd() const { return fd_; }
  // Reads what is there without blocking. False at the end of the stream or when it is malformed.
  bool Receive(FrameReader& reader);
  // The driver call under way, if any.
  std::optional<std::uint32_t> function_under_way() const;
  std::optional<std::uint32_t> gpu_under_way() const;
  void Kill() const;  // SIGKILL
  void AskToEnd();    // closes our end of the socket
  // Exit code, or 128 + signal; nullopt while it lives. Reaps it once.
  std::optional<int> TryReap();

 private:
  WorkerProcess(pid_t pid, int fd, CallWatch* watch) : pid_(pid), fd_(fd), watch_(watch) {}
  pid_t pid_;
  int fd_;
  CallWatch* watch_;  // mapped shared memory, owned
  std::optional<int> exit_code_;
};

}  // namespace gpuassay
