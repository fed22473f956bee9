// PID → who it belongs to, as far as the node's own file system tells. Remembers what it has found
// per (PID, start): a process that is known costs next to nothing a cycle where the kernel tells
// who has ended (ExitWatch), else one small read.
//
// Reading a process for the first time can block for ever: /proc/PID/environ and cmdline wait for
// its memory lock, which a process that hangs in the driver may hold. So there are two ways to use
// this. `Find` does everything itself. Or: `FindKnown`, which never blocks; `TakeToLearn` for the
// PIDs that it could not answer; `LearnProcess` for each of them in a thread that may be given up,
// which touches nothing but its arguments; `Remember` for what comes back. When that thread hangs,
// LearnProcess with kWhatCannotBlock still gives cgroup, user and the kernel's name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attribution/node/exit_watch.h"
#include "attribution/node/proc.h"
#include "base/clock.h"
#include "model/identity.h"

namespace gpuassay {

struct ProcessFacts {
  Duration start_after_boot{};
  ProcessOwner owner;  // pod: only the UID; container: id and runtime
  std::string name;    // what the driver could not read: first word of the command line, without
                       // its folders; else comm
  bool other_pid_namespace = false;
  // From the environment, for the scheduler's view. Empty when not set or not readable.
  std::string nvidia_visible_devices;  // NVIDIA_VISIBLE_DEVICES of a container
  std::string slurm_gpus;              // SLURM_STEP_GPUS, else SLURM_JOB_GPUS: indices
};

enum class ReadDepth : std::uint8_t {
  kWhatCannotBlock,  // without environment and command line
  kAll,
};

// What was read of one process.
struct LearnedProcess {
  std::uint32_t pid = 0;
  ProcessFacts facts;  // without the user's name
  std::optional<std::uint32_t> real_uid;
  std::string comm;
  std::size_t cgroup_hash = 0;  // of the text of its cgroup file
};

// Nullopt: no such process, or it ended while it was read. Slurm: the cgroup, else SLURM_JOB_ID and
// SLURM_STEP_ID of the environment; what else the environment says of Slurm counts only when its
// job is that of the cgroup. Array jobs as JOB_TASK; steps 4294967290..4294967295 by their names.
// A job hides the unit that runs all jobs (slurmd.service).
std::optional<LearnedProcess> LearnProcess(const Proc& proc, std::uint32_t pid, ReadDepth depth);

// Not thread-safe.
class ProcessOwners {
 public:
  static constexpr std::size_t kRememberedMax = 16384;
  // A process can be moved to another cgroup while it runs (pam_slurm_adopt, systemd-run --scope, a
  // container that is restored) and can become another program (which has lost what the old one had
  // on a GPU): it is looked at again after so many times that it is asked for, then after twice as
  // many and so on, but never more than kLookAgainMax, for both happen soon after the start. So
  // many more by its PID, so that not all are due at once. Cannot block.
  static constexpr std::uint32_t kLookAgainFirst = 4;
  static constexpr std::uint32_t kLookAgainMax = 256;

  // A PID that is not in /proc is looked for again in the next cycle, then after twice as many and
  // so on, but never more than these.
  static constexpr std::uint64_t kAbsentCyclesMax = 32;

  // `ticks_per_second`: as for Proc. `watched_max`: descriptors to be used for an ExitWatch; worth
  // it only when it is asked often.
  explicit ProcessOwners(RootFs root, double ticks_per_second = kTicksPerSecond,
                         std::size_t watched_max = ExitWatch::kWatchedMax);
  ~ProcessOwners();

  // Null: no such process, or it ended while it was read. User: the real user, by /etc/passwd of
  // the root (read again when that file changes), else its number. The pointer is valid until the
  // next call of anything here. May block.
  const ProcessFacts* Find(std::uint32_t pid);

  // Null: not known, or no such process (also one that has been said to be none a while ago: see
  // kAbsentCyclesMax). Never blocks. An exec changes command line and
  // environment but not the start: it is noticed by the kernel's name of the process, at once or
  // when it is looked at again; then, and when it has been moved, the old facts are given until
  // somebody has learned the new ones. An exec of a program of the same name is not noticed. Who
  // has ended since the last BeginCycle() may still be known.
  const ProcessFacts* FindKnown(std::uint32_t pid);
  // Each PID once that FindKnown did not know, or knew only as it was before a change, since the
  // last call of this; ascending.
  std::vector<std::uint32_t> TakeToLearn();
  const ProcessFacts* Remember(LearnedProcess learned);

  // Finds out who has ended, and forgets processes that were not asked for since the last call of
  // this. Once a cycle, before any of it is asked for.
  void BeginCycle();

  std::size_t remembered() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
