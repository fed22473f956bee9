// The scheduler's view in devices of this node: device ids of Kubernetes resolved, allocations of
// Slurm and of container runtimes added from the environment of their processes, memory requests
// that are parts of a device turned into bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/scheduler.h"
#include "model/snapshot.h"

namespace gpuassay {

// What the environment of a process says of its devices.
struct EnvironmentClaim {
  ProcessOwner owner;
  std::string visible_devices;  // NVIDIA_VISIBLE_DEVICES of a container
  std::string slurm_gpus;       // minor numbers: "0,2-3"

  bool operator==(const EnvironmentClaim&) const = default;
};

// Not thread-safe.
class SchedulerView {
 public:
  // The same pointer while nothing has changed. Null when nobody has told anything. `told`: of
  // Kubernetes; may be null: then what device plugins have put into the environment of pods counts.
  SchedulerPtr Resolve(const SchedulerPtr& told, std::vector<EnvironmentClaim> claims,
                       const std::vector<Gpu>& gpus);

 private:
  // All of a GPU that decides how device ids are resolved.
  struct Device {
    explicit Device(const Gpu& gpu);
    bool IsOf(const Gpu& gpu) const;

    std::uint32_t index;
    std::string uuid;
    std::optional<std::uint32_t> minor_number;
    Reading memory_total_bytes;
    std::vector<MigIdentity> mig;
  };

  SchedulerPtr told_;
  std::vector<EnvironmentClaim> claims_;
  std::vector<Device> devices_;
  bool made_ = false;
  SchedulerPtr resolved_;
};

// Numbers of "0,2-3", ascending, each once; at most kGpusMax. Empty for another text.
std::vector<std::uint32_t> ParseSlurmGpus(std::string_view text);

// Ids of NVIDIA_VISIBLE_DEVICES; empty for "all", "none", "void": they hand out nothing in
// particular.
std::vector<std::string> ParseVisibleDevices(std::string_view text);

}  // namespace gpuassay
