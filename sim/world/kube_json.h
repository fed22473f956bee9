// Objects of the Kubernetes API of a scenario's node, as JSON. Pure. Source: Kubernetes API
// reference v1.34; ResourceSlices as NVIDIA's DRA driver publishes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// One pod; its resourceVersion is `version`.
std::string PodJson(const Scenario& scenario, const ScenarioPod& pod, std::uint64_t version);
// A list of pods, each one an object of PodJson().
std::string PodListJson(const std::vector<std::string>& pods, std::uint64_t version,
                        std::string_view continue_token, std::size_t remaining);
// "ADDED", "DELETED": one line of a watch, with its end.
std::string EventJson(std::string_view type, const std::string& pod);
std::string BookmarkJson(std::uint64_t version);
// With `selected`, all GPUs of the node, and the MIG devices of the scenario's own layout; `group`
// is "resource.k8s.io/v1" or "resource.k8s.io/v1beta1". No slices without a claim in the scenario:
// then nobody has installed the driver.
std::string SliceListJson(const Scenario& scenario, std::string_view group, bool selected);
// What every answer but 200 has.
std::string StatusJson(int code, std::string_view reason, std::string_view message);

}  // namespace gpuassay::sim
