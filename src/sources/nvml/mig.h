// MIG: which instances a GPU is cut into, and the readings of each. Survives a re-partition: a
// handle that the driver no longer knows makes the instances be enumerated again in the same cycle.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"
#include "sources/nvml/cycle.h"
#include "sources/nvml/device_calls.h"
#include "sources/nvml/gpm.h"

namespace gpuassay {

// "1g.10gb": out of "NVIDIA H100 80GB HBM3 MIG 1g.10gb"; empty when the name has no such part.
std::string MigProfileFromName(std::string_view device_name);

// The same from the slices, for drivers whose names do not have it. The size is the instance's
// share of the GPU's memory in eighths, in GiB, as NVIDIA's own tools name it. `gpu_memory_mib` is
// the whole GPU's memory; 0 when unknown: then the instance's memory rounded up.
std::string MigProfileFromAttributes(const nvmlDeviceAttributes_t& attributes,
                                     std::uint64_t gpu_memory_mib);

class Mig {
 public:
  struct Instance {
    nvmlDevice_t handle = nullptr;
    std::uint32_t gpu_instance_id = 0;
    std::uint32_t compute_instance_id = 0;
  };

  explicit Mig(NvmlLibrary& library) : library_(&library) {}

  // MIG mode and the instances, into gpu.readings.mig_enabled and gpu.mig.
  void Enumerate(DeviceCalls& calls, Gpu& gpu);
  // Memory and GPM of each instance. `no_gpm`: why there is no GPM, if so.
  void ReadFast(DeviceCalls& calls, const Cycle& cycle, std::optional<Missing> no_gpm, Gpu& gpu);

  // In the order of gpu.mig.
  const std::vector<Instance>& instances() const { return instances_; }

 private:
  struct Sampler {
    std::uint32_t gpu_instance_id;
    std::string uuid;  // of the first MIG device on it: another one means another instance
    GpmSampler gpm;
    bool used;
  };
  bool Add(DeviceCalls& calls, std::uint32_t index, nvmlDevice_t handle, Gpu& gpu);
  bool ReadMemory(DeviceCalls& calls, Gpu& gpu);
  void ReadGpm(DeviceCalls& calls, const Cycle& cycle, Gpu& gpu);
  void KeepSamplers(const Gpu& gpu);

  NvmlLibrary* library_;
  std::vector<Instance> instances_;
  std::vector<Sampler> samplers_;  // one per GPU instance
};

// Memory of a GPU or MIG device in bytes. Drivers without nvmlDeviceGetMemoryInfo_v2 count the
// reserve as used and do not tell it apart (kDriverTooOld).
struct MemoryReadings {
  nvmlReturn_t result = NVML_SUCCESS;
  Reading total, used, free, reserved;
};
MemoryReadings ReadMemoryInfo(DeviceCalls& calls, nvmlDevice_t device);

}  // namespace gpuassay
