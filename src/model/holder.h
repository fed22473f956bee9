// A process that has a GPU's device file open without being in the driver's list of that GPU:
// where memory that nobody seems to own is looked for (M26).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/identity.h"

namespace gpuassay {

inline constexpr std::size_t kHoldersPerGpuMax = 64;

// Why such a process is not in the list, the most telling first. The numbers are part of the record
// format: append, never renumber.
enum class HolderKind : std::uint8_t {
  kDefunctLeader = 0,  // the main thread has ended (state Z), other threads live and hold the file
  kContainerGone = 1,  // its cgroup names a container that has been deleted
  kOrphan = 2,         // the process that started it has ended: it kept the file it inherited
  kOtherPidNamespace = 3,  // runs in another PID namespace than the agent
  kMpsServer = 4,          // nvidia-cuda-mps-server: holds contexts for its clients
  kUninterruptible = 5,    // state D: hangs in a driver call; cannot be killed
  kOther = 6,              // none of these: a tool, a daemon, a process that just starts
};
std::string_view HolderKindName(HolderKind kind);  // "defunct_leader" ...

// What ends its hold, the least that is enough.
enum class CleanUp : std::uint8_t {
  kEndProcess = 0,    // end this process (or the live threads of its group)
  kEndMpsServer = 1,  // `quit` to the MPS control: interrupts every client of that server
  kGpuReset = 2,      // every process on this GPU (and on those linked to it)
  kDriverReload = 3,  // all GPU work on the node
  kReboot = 4,        // all work on the node
};
std::string_view CleanUpName(CleanUp clean_up);  // "end_process" ...
// One sentence: what it interrupts.
std::string_view CleanUpInterrupts(CleanUp clean_up);

struct DeviceHolder {
  std::uint32_t pid = 0;  // of the thread group, in the PID namespace of the root
  std::uint32_t parent_pid = 0;
  std::string name;                 // comm
  char state = '?';                 // of the leader: R S D Z T t I X, proc_pid_stat(5)
  std::uint32_t threads_alive = 0;  // other than a dead leader
  HolderKind kind = HolderKind::kOther;
  CleanUp clean_up = CleanUp::kEndProcess;
  std::optional<Duration> start_after_boot;
  ProcessOwner owner;

  bool operator==(const DeviceHolder&) const = default;
};

}  // namespace gpuassay
