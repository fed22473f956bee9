// Tells which of a set of processes have ended, with one system call for all of them: a descriptor
// of each (pidfd_open, Linux 5.3), which is of that process and no other, whoever gets its PID.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "base/root_fs.h"

namespace gpuassay {

// Not thread-safe.
class ExitWatch {
 public:
  // Each takes a descriptor, of which a process has 1024 unless it asks for more.
  static constexpr std::size_t kWatchedMax = 512;

  // Watches nothing unless /proc of `root` is that of this process's own PID namespace: elsewhere a
  // PID is another process.
  explicit ExitWatch(const RootFs& root, std::size_t watched_max = kWatchedMax);

  // False: not watched, because the kernel cannot, there is no such process, or there are
  // `watched_max`. Who is `pid` must be looked at afterwards: it may just have changed.
  bool Watch(std::uint32_t pid);
  void Forget(std::uint32_t pid);

  // Watched processes of which no thread runs any more, reaped or not; from now on they are not
  // watched. In no order.
  std::vector<std::uint32_t> TakeEnded();

 private:
  std::size_t watched_max_;
  FileDescriptor epoll_;
  std::unordered_map<std::uint32_t, FileDescriptor> processes_;  // by PID
};

}  // namespace gpuassay
