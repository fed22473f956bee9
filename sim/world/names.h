// Names that a node makes up: UIDs of pods, ids of containers. Pure; from the scenario's seed where
// it does not say them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// A number of its own for each text and seed.
std::uint64_t KeyOf(const Scenario& scenario, std::string_view text);

std::string PodUid(const Scenario& scenario, const ScenarioPod& pod);
// 64 hexadecimal digits.
std::string ContainerId(const Scenario& scenario, const ScenarioPod& pod,
                        const ScenarioContainer& container);
std::string ContainerId(const Scenario& scenario, const ScenarioRuntimeContainer& container);
// A secret that is the same for the same scenario.
std::string ApiToken(const Scenario& scenario);
inline constexpr std::string_view kDraDriver = "gpu.nvidia.com";  // NVIDIA's
// As NVIDIA's DRA driver calls a device: "gpu-0"; "gpu-0-mig-1g5gb-19-4" with the profile, its id
// and where it begins.
std::string DraDeviceName(const Scenario& scenario, std::uint32_t gpu,
                          std::optional<std::uint32_t> mig_index);

// Pods that the node has at `t`, in the scenario's order.
std::vector<const ScenarioPod*> PodsAt(const ScenarioWorld& world, Duration t);

// The pod that a process belongs to: of those with its name, the one alive when it starts. nullptr
// without one.
const ScenarioPod* PodOf(const ScenarioWorld& world, const ScenarioProcFacts& facts);
bool InOneOf(const std::vector<Window>& windows, Duration t);
// nullptr when there is no such container.
const ScenarioContainer* ContainerOf(const ScenarioPod& pod, std::string_view name);
const ScenarioRuntimeContainer* RuntimeContainerOf(const ScenarioWorld& world,
                                                   std::string_view name);
const ScenarioBatchJob* JobOf(const ScenarioWorld& world, std::string_view id);
// "root" is 0.
std::uint32_t UserId(const ScenarioWorld& world, std::string_view user);

}  // namespace gpuassay::sim
