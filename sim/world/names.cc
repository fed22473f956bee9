#include "sim/world/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/hash.h"
#include "sim/engine/identifiers.h"

namespace gpuassay::sim {
namespace {

std::string HexDigits(std::uint64_t key) {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", Mix(key), Mix(key + 1), Mix(key + 2),
                     Mix(key + 3));
}

// A name can be used again after the pod is gone: then it is another pod.
std::string Handle(const ScenarioPod& pod) {
  return fmt::format("pod {}/{} {}", pod.namespace_name, pod.name, pod.start.count());
}

// As nvidia-smi numbers profiles (MIG user guide).
int ProfileId(const MigProfile& profile) {
  switch (profile.compute_slices) {
    case 1:
      return profile.memory_slices == 2 ? 15 : profile.name.ends_with("+me") ? 20 : 19;
    case 2:
      return 14;
    case 3:
      return 9;
    case 4:
      return 5;
    default:
      return 0;
  }
}

}  // namespace

// FNV-1a, then every bit of it into every bit.
std::uint64_t KeyOf(const Scenario& scenario, std::string_view text) {
  std::uint64_t key = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return Mix(key ^ Mix(scenario.seed));
}

std::string PodUid(const Scenario& scenario, const ScenarioPod& pod) {
  return pod.uid.empty() ? MakeUuid("", KeyOf(scenario, Handle(pod))) : pod.uid;
}

std::string ContainerId(const Scenario& scenario, const ScenarioPod& pod,
                        const ScenarioContainer& container) {
  return container.id.empty()
             ? HexDigits(KeyOf(scenario, Handle(pod) + " container " + container.name))
             : container.id;
}

std::string ContainerId(const Scenario& scenario, const ScenarioRuntimeContainer& container) {
  return container.id.empty() ? HexDigits(KeyOf(scenario, "container " + container.name))
                              : container.id;
}

std::string ApiToken(const Scenario& scenario) {
  return HexDigits(KeyOf(scenario, "token")).substr(0, 32);
}

std::string DraDeviceName(const Scenario& scenario, std::uint32_t gpu,
                          std::optional<std::uint32_t> mig_index) {
  if (!mig_index) {
    return fmt::format("gpu-{}", gpu);
  }
  const ScenarioGpu& config = scenario.gpus[gpu];
  const MigProfile* profile = FindMigProfile(*config.model, config.mig.at(*mig_index));
  std::string name(profile->name);
  std::erase(name, '.');
  std::ranges::replace(name, '+', '-');
  return fmt::format("gpu-{}-mig-{}-{}-{}", gpu, name, ProfileId(*profile),
                     MigPlacements(config).at(*mig_index).start);
}

std::vector<const ScenarioPod*> PodsAt(const ScenarioWorld& world, Duration t) {
  std::vector<const ScenarioPod*> pods;
  for (const ScenarioPod& pod : world.pods) {
    if (pod.start <= t && t < pod.end) {
      pods.push_back(&pod);
    }
  }
  return pods;
}

const ScenarioPod* PodOf(const ScenarioWorld& world, const ScenarioProcFacts& facts) {
  const auto pod = std::ranges::find_if(world.pods, [&](const ScenarioPod& candidate) {
    return candidate.name == facts.owner.pod &&
           candidate.namespace_name == facts.owner.namespace_name &&
           candidate.start <= facts.start && facts.start < candidate.end;
  });
  return pod == world.pods.end() ? nullptr : &*pod;
}

bool InOneOf(const std::vector<Window>& windows, Duration t) {
  return std::ranges::any_of(windows, [t](const Window& window) {
    return window.at <= t && t - window.at < window.length;
  });
}

const ScenarioContainer* ContainerOf(const ScenarioPod& pod, std::string_view name) {
  const auto found = std::ranges::find(pod.containers, name, &ScenarioContainer::name);
  return found == pod.containers.end() ? nullptr : &*found;
}

const ScenarioRuntimeContainer* RuntimeContainerOf(const ScenarioWorld& world,
                                                   std::string_view name) {
  const auto found = std::ranges::find(world.containers, name, &ScenarioRuntimeContainer::name);
  return found == world.containers.end() ? nullptr : &*found;
}

const ScenarioBatchJob* JobOf(const ScenarioWorld& world, std::string_view id) {
  const auto found = std::ranges::find(world.jobs, id, &ScenarioBatchJob::id);
  return found == world.jobs.end() ? nullptr : &*found;
}

std::uint32_t UserId(const ScenarioWorld& world, std::string_view user) {
  const auto found =
      std::ranges::find(world.users, user, &std::pair<std::string, std::uint32_t>::first);
  return found == world.users.end() ? 0 : found->second;
}

}  // namespace gpuassay::sim
