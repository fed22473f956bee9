#include "sim/engine/identifiers.h"

#include <fmt/format.h>

#include "sim/engine/hash.h"

namespace gpuassay::sim {

std::string GpuUuid(const Scenario& scenario, std::uint32_t gpu) {
  const std::string& given = scenario.gpus[gpu].uuid;
  return given.empty() ? MakeUuid("GPU-", Mix(scenario.seed) + gpu) : given;
}

std::string MigUuid(const Scenario& scenario, std::uint32_t gpu, std::uint32_t mig_index,
                    std::uint32_t generation) {
  return MakeUuid("MIG-", Mix(scenario.seed + gpu * 8191 + mig_index) + generation);
}

std::string MigUuidOfParent(const std::string& gpu_uuid, std::uint32_t gpu_instance_id,
                            std::uint32_t compute_instance_id) {
  return fmt::format("MIG-{}/{}/{}", gpu_uuid, gpu_instance_id, compute_instance_id);
}

std::vector<MigPlacement> MigPlacements(const ScenarioGpu& gpu) {
  std::vector<const MigProfile*> profiles;
  for (const std::string& name : gpu.mig) {
    profiles.push_back(FindMigProfile(*gpu.model, name));
  }
  return PlaceMigInstances(*gpu.model, profiles).value_or(std::vector<MigPlacement>{});
}

std::string DeviceUuid(const Scenario& scenario, std::uint32_t gpu,
                       std::optional<std::uint32_t> mig_index) {
  if (!mig_index) {
    return GpuUuid(scenario, gpu);
  }
  if (scenario.driver.major >= kMigUuidDriverMajor) {
    return MigUuid(scenario, gpu, *mig_index, 0);
  }
  const std::vector<MigPlacement> placed = MigPlacements(scenario.gpus[gpu]);
  return MigUuidOfParent(GpuUuid(scenario, gpu), placed.at(*mig_index).gpu_instance_id, 0);
}

std::string UnitId(const Scenario& scenario, const ScenarioResource& resource,
                   const ScenarioDevice& unit) {
  if (resource.id_form != "gke") {
    const std::string uuid = DeviceUuid(scenario, unit.gpu, unit.mig_index);
    return unit.replica ? fmt::format("{}::{}", uuid, *unit.replica) : uuid;
  }
  std::string id = fmt::format("nvidia{}", unit.gpu);
  if (unit.mig_index) {
    const std::vector<MigPlacement> placed = MigPlacements(scenario.gpus[unit.gpu]);
    id += fmt::format("/gi{}", placed.at(*unit.mig_index).gpu_instance_id);
  }
  return unit.replica ? fmt::format("{}/vgpu{}", id, *unit.replica) : id;
}

}  // namespace gpuassay::sim
