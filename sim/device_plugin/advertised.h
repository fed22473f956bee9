// What the device plugin of a scenario advertises to the kubelet. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

struct AdvertisedResource {
  std::string name;                // "nvidia.com/gpu"
  std::string socket;              // file name, a different one for each resource
  std::vector<std::string> ids;    // of its units, in the device plugin's order
  std::vector<std::string> uuids;  // of the device that the unit of the same place is
};

// The resources of `kubernetes: {resources: [...]}`.
std::vector<AdvertisedResource> Advertised(const Scenario& scenario);

// What a container's NVIDIA_VISIBLE_DEVICES says when it is given these units: each device once,
// comma-separated. Unknown ids are left out.
std::string VisibleDevices(const AdvertisedResource& resource, const std::vector<std::string>& ids);

}  // namespace gpuassay::sim
