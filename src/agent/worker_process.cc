#include "agent/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

extern char** environ;  // NOLINT: POSIX

namespace gpuassay {
namespace {

constexpr int kFramesFd = 3;
constexpr int kWatchFd = 4;
// A reading of eight GPUs fits.
constexpr std::size_t kReceiveBytesMin = 65536;

std::unexpected<Error> FailErrno(std::string_view what, int error_number) {
  return Fail(ErrorCode::kIo, fmt::format("cannot start the driver worker: {}: {}", what,
                                          std::strerror(error_number)));
}

// dup2 onto the same number would keep close-on-exec, so ours are first moved out of the way.
int MoveUp(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 10);
  close(fd);
  return moved;
}

// The child gets its two descriptors, default signals and an empty signal mask.
int Spawn(const std::string& program, std::vector<std::string>& arguments, int frames_fd,
          int watch_fd, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, frames_fd, kFramesFd);
  posix_spawn_file_actions_adddup2(&actions, watch_fd, kWatchFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);  // Ctrl-C in a terminal is for the agent alone
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int result =
      posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

}  // namespace

std::vector<std::string> WorkerArguments(const WorkerOptions& options) {
  std::vector<std::string> arguments = {
      "gpuassay",          "driver-worker",
      "--source",          SourceSpecText(options.source),
      "--hostname",        options.hostname,
      "--interval-us",     fmt::format("{}", options.interval.count()),
      "--simulator-speed", fmt::format("{}", options.simulator_speed),
      "--frames-fd",       fmt::format("{}", kFramesFd),
      "--watch-fd",        fmt::format("{}", kWatchFd),
  };
  for (const std::uint32_t gpu : options.gpus_to_skip) {
    arguments.push_back("--skip-gpu");
    arguments.push_back(fmt::format("{}", gpu));
  }
  return arguments;
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const std::string& program,
                                                            WorkerOptions options) {
  std::array<int, 2> sockets = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return FailErrno("socketpair", errno);
  }
  const int ours = sockets[0];
  const int theirs = MoveUp(sockets[1]);
  const int watch_fd = MoveUp(memfd_create("gpuassay-call-watch", MFD_CLOEXEC));
  void* memory = MAP_FAILED;
  if (watch_fd >= 0 && ftruncate(watch_fd, sizeof(CallWatch)) == 0) {
    memory = mmap(nullptr, sizeof(CallWatch), PROT_READ | PROT_WRITE, MAP_SHARED, watch_fd, 0);
  }
  pid_t pid = -1;
  int failure = errno;
  if (theirs >= 0 && memory != MAP_FAILED) {
    new (memory) CallWatch;  // NOLINT: placement in shared memory
    std::vector<std::string> arguments = WorkerArguments(options);
    failure = Spawn(program, arguments, theirs, watch_fd, pid);
  }
  close(theirs);
  close(watch_fd);
  if (pid < 0) {
    close(ours);
    if (memory != MAP_FAILED) munmap(memory, sizeof(CallWatch));
    return FailErrno(program, failure);
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(
      pid, ours, static_cast<CallWatch*>(memory)));  // NOLINT: private constructor
}

WorkerProcess::~WorkerProcess() {
  AskToEnd();
  munmap(watch_, sizeof(CallWatch));
}

bool WorkerProcess::Receive(FrameReader& reader) {
  for (;;) {
    const std::span<char> space = reader.Space(kReceiveBytesMin);
    const ssize_t got = recv(fd_, space.data(), space.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;  // on Linux also EWOULDBLOCK
    if (got == 0) return false;
    reader.Filled(static_cast<std::size_t>(got));
    if (static_cast<std::size_t>(got) < space.size()) return true;  // that was all, for now
  }
}

std::optional<std::uint32_t> WorkerProcess::function_under_way() const {
  const std::uint32_t function = watch_->function();
  return function == CallWatch::kIdle ? std::nullopt : std::optional(function);
}

std::optional<std::uint32_t> WorkerProcess::gpu_under_way() const {
  if (watch_->function() == CallWatch::kIdle || watch_->gpu() == CallWatch::kNoGpu) {
    return std::nullopt;
  }
  return watch_->gpu();
}

void WorkerProcess::Kill() const {
  if (!exit_code_) kill(pid_, SIGKILL);
}

void WorkerProcess::AskToEnd() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

std::optional<int> WorkerProcess::TryReap() {
  if (exit_code_) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_code_;
}

}  // namespace gpuassay
