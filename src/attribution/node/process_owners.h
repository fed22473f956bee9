// PID → who it belongs to, as far as the node's own file system tells. Remembers what it has found
// per (PID, start): a process that is known costs one small read a cycle. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "attribution/node/proc.h"
#include "base/clock.h"
#include "model/identity.h"

namespace gpuassay {

struct ProcessFacts {
  Duration start_after_boot{};
  ProcessOwner owner;  // pod: only the UID; container: id and runtime
  std::string name;    // what the driver could not read: first word of the command line's
                       // last path component, else comm
  bool other_pid_namespace = false;
  // From the environment, for the scheduler's view. Empty when not set or not readable.
  std::string nvidia_visible_devices;  // NVIDIA_VISIBLE_DEVICES of a container
  std::string slurm_gpus;              // SLURM_STEP_GPUS, else SLURM_JOB_GPUS: indices
};

class ProcessOwners {
 public:
  static constexpr std::size_t kRememberedMax = 16384;

  explicit ProcessOwners(RootFs root);
  ~ProcessOwners();

  // Null: no such process, or it ended while it was read. Slurm: the cgroup, else SLURM_JOB_ID and
  // SLURM_STEP_ID of the environment (array jobs as JOB_TASK from SLURM_ARRAY_JOB_ID); steps
  // 4294967291..4294967295 by their names ("batch" ...). User: the real user, by /etc/passwd of the
  // root, else its number. The pointer is valid until the next call.
  const ProcessFacts* Find(std::uint32_t pid);

  // Forgets processes that were not asked for since the last call of this. Once a cycle.
  void ForgetUnasked();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
