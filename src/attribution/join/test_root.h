// For tests: a root with processes that a test writes and changes.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/temporary_directory.h"

namespace gpuassay {

inline constexpr std::string_view kTrainUnit = "0::/system.slice/train.service\n";
inline constexpr std::string_view kPodUid = "0d5e5b4a-8a55-4c0d-9c51-c0aa7ffe1234";

inline std::string ContainerId(char digit) { return std::string(64, digit); }

// Path of the cgroup of a container of containerd in the pod above.
inline std::string PodCgroup(char digit) {
  return fmt::format("0::/kubepods/burstable/pod{}/{}\n", kPodUid, ContainerId(digit));
}

class TestRoot : public TemporaryDirectory {
 public:
  TestRoot() { Write("etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1000:1::/:/"); }

  void Process(std::uint32_t pid, std::uint64_t start_ticks, std::string_view cgroup = kTrainUnit,
               std::uint32_t parent = 1) const {
    Write(Path(pid, "stat"),
          fmt::format("{} (python3) S {} {} {} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n", pid,
                      parent, pid, pid, start_ticks));
    Write(Path(pid, "status"),
          fmt::format("Name:\tpython3\nTgid:\t{}\nUid:\t1000\t0\t0\t0\nNSpid:\t{}\n", pid, pid));
    Write(Path(pid, "cgroup"), cgroup);
    Write(Path(pid, "cmdline"), std::string_view("python3\0train.py\0", 17));
    MakeDirectory(Path(pid, "fd"));
  }
  void Environment(std::uint32_t pid, std::string_view text) const {
    Write(Path(pid, "environ"), text);
  }
  void Open(std::uint32_t pid, int fd, const std::string& target) const {
    Link(Path(pid, fmt::format("fd/{}", fd)), target);
  }
  void End(std::uint32_t pid) const {
    std::filesystem::remove_all(fmt::format("{}/proc/{}", path(), pid));
  }
  // Reading its environment waits, as while a process hangs in the kernel, until LetGo().
  void Hang(std::uint32_t pid) const {
    const std::string file = Full(pid);
    unlink(file.c_str());
    Check(mkfifo(file.c_str(), 0600) == 0, "a pipe can be made");
  }
  // Whoever reads it goes on. Waits for the reader to be there.
  void LetGo(std::uint32_t pid) const {
    for (int i = 0; i < 2000; ++i) {
      const int fd = open(Full(pid).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (fd >= 0) {
        close(fd);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    Check(false, "nobody reads the environment");
  }

  static std::string Path(std::uint32_t pid, std::string_view file) {
    return fmt::format("proc/{}/{}", pid, file);
  }

 private:
  std::string Full(std::uint32_t pid) const { return path() + "/" + Path(pid, "environ"); }
};

}  // namespace gpuassay
