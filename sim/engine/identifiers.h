// How the GPUs and MIG devices of a scenario are called, by the driver and by the schedulers that
// hand them out. Pure; the same scenario gives the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

std::string GpuUuid(const Scenario& scenario, std::uint32_t gpu);

// From this branch on a MIG device has a UUID of its own; before, it is made of its parent's and
// the instance ids.
inline constexpr std::uint32_t kMigUuidDriverMajor = 470;

// Of a MIG device of the scenario's own layout (generation 0) or of one that a fault made.
// "MIG-...".
std::string MigUuid(const Scenario& scenario, std::uint32_t gpu, std::uint32_t mig_index,
                    std::uint32_t generation);
// "MIG-GPU-.../7/0".
std::string MigUuidOfParent(const std::string& gpu_uuid, std::uint32_t gpu_instance_id,
                            std::uint32_t compute_instance_id);

// Where the MIG devices of a scenario's own layout stand on their GPU.
std::vector<MigPlacement> MigPlacements(const ScenarioGpu& gpu);

// UUID of a GPU, or of a MIG device of the scenario's own layout, as the scenario's driver says it.
std::string DeviceUuid(const Scenario& scenario, std::uint32_t gpu,
                       std::optional<std::uint32_t> mig_index);

// A unit as the device plugin calls it: "GPU-...", "MIG-...", "GPU-...::2"; in GKE's form
// "nvidia0", "nvidia0/gi1", "nvidia0/vgpu2".
std::string UnitId(const Scenario& scenario, const ScenarioResource& resource,
                   const ScenarioDevice& unit);

}  // namespace gpuassay::sim
