#include "attribution/node/exit_watch.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <array>
#include <string>
#include <utility>

namespace gpuassay {
namespace {

// The link is the name of the PID namespace of process 1, which is that of its /proc; whoever sees
// this process under its own number in the /proc of "/" needs no permission to read that.
bool HasOwnPids(const RootFs& root) {
  const Result<RootFs> own = RootFs::Open("/");
  if (!own) return false;
  const std::string self = fmt::format("{}/self", kProcDirectory);
  const Result<std::string> number = own->ReadLink(self);
  if (!number || *number != std::to_string(getpid())) return false;
  if (root.Resolve(self) == self) return true;
  const Result<std::string> here = own->ReadLink(self + "/ns/pid");
  const Result<std::string> there = root.ReadLink(fmt::format("{}/1/ns/pid", kProcDirectory));
  return here && there && *here == *there;
}

}  // namespace

ExitWatch::ExitWatch(const RootFs& root, std::size_t watched_max) : watched_max_(watched_max) {
  if (HasOwnPids(root)) epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
}

bool ExitWatch::Watch(std::uint32_t pid) {
  if (!epoll_.open()) return false;
  if (processes_.contains(pid)) return true;
  if (processes_.size() >= watched_max_) return false;
  // The C library's own function has no C linkage before 2.37.
  FileDescriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.open()) return false;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u32 = pid;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, process.get(), &event) != 0) return false;
  processes_.emplace(pid, std::move(process));
  return true;
}

void ExitWatch::Forget(std::uint32_t pid) { processes_.erase(pid); }

std::vector<std::uint32_t> ExitWatch::TakeEnded() {
  std::vector<std::uint32_t> ended;
  if (processes_.empty()) return ended;
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      ended.push_back(events[static_cast<std::size_t>(i)].data.u32);
      processes_.erase(ended.back());
    }
    if (count < static_cast<int>(events.size())) return ended;
  }
}

}  // namespace gpuassay
