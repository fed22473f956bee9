// MIG placement: which instances fit together on a GPU, and the numbers the driver gives them.
#include <algorithm>
#include <array>

#include "sim/models/gpu_model.h"

namespace gpuassay::sim {
namespace {

constexpr std::uint32_t kMemorySlices = 8;

bool MayStartAt(const MigProfile& profile, std::uint32_t start) {
  const std::uint32_t size = profile.memory_slices;
  if (start + size > kMemorySlices) {
    return false;
  }
  if (size == 1) {
    return start < 7;
  }
  if (size == 2) {
    return start % 2 == 0 && (profile.compute_slices < 2 || start < 6);
  }
  if (size == 4) {
    return profile.compute_slices == 4 ? start == 0 : start % 4 == 0;
  }
  return start == 0;
}

std::uint32_t FirstId(const MigProfile& profile) {
  switch (profile.compute_slices) {
    case 1:
      return 7;
    case 2:
      return 3;
    case 3:
    case 4:
      return 1;
    default:
      return 0;
  }
}

// Depth-first over the instances; at most 7 instances x 8 starts.
bool Place(std::span<const MigProfile* const> profiles, std::size_t at, std::uint32_t taken,
           std::vector<MigPlacement>& out) {
  if (at == profiles.size()) {
    return true;
  }
  const MigProfile& profile = *profiles[at];
  const std::uint32_t bits = (1U << profile.memory_slices) - 1U;
  for (std::uint32_t start = 0; start < kMemorySlices; ++start) {
    if (!MayStartAt(profile, start) || (taken & (bits << start)) != 0) {
      continue;
    }
    out[at].start = start;
    if (Place(profiles, at + 1, taken | (bits << start), out)) {
      return true;
    }
  }
  return false;
}

}  // namespace

const MigProfile* FindMigProfile(const GpuModel& model, std::string_view name) {
  const auto found = std::ranges::find(model.mig_profiles, name, &MigProfile::name);
  return found == model.mig_profiles.end() ? nullptr : &*found;
}

std::optional<std::vector<MigPlacement>> PlaceMigInstances(
    const GpuModel& model, std::span<const MigProfile* const> profiles) {
  if (model.mig_profiles.empty() || profiles.size() > kMigInstancesMax) {
    return std::nullopt;
  }
  std::uint32_t compute = 0;
  for (const MigProfile* profile : profiles) {
    compute += profile->compute_slices;
    if (std::ranges::count(profiles, profile) > profile->instances_max) {
      return std::nullopt;
    }
  }
  std::vector<MigPlacement> placed(profiles.size());
  if (compute > 7 || !Place(profiles, 0, 0, placed)) {
    return std::nullopt;
  }
  std::array<std::uint32_t, 8> given = {};  // by first ID
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const std::uint32_t first = FirstId(*profiles[i]);
    placed[i].gpu_instance_id = first + given[first]++;
  }
  return placed;
}

}  // namespace gpuassay::sim
