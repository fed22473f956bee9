#include "sim/device_plugin/advertised.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/engine/identifiers.h"

namespace gpuassay::sim {

std::vector<AdvertisedResource> Advertised(const Scenario& scenario) {
  std::vector<AdvertisedResource> result;
  for (const ScenarioResource& resource : scenario.world.resources) {
    AdvertisedResource& entry = result.emplace_back();
    entry.name = resource.name;
    entry.socket = fmt::format("gpuassay-{}.sock", result.size() - 1);
    for (const ScenarioDevice& unit : UnitsOf(scenario.gpus, resource)) {
      entry.ids.push_back(UnitId(scenario, resource, unit));
      entry.uuids.push_back(DeviceUuid(scenario, unit.gpu, unit.mig_index));
    }
  }
  return result;
}

std::string VisibleDevices(const AdvertisedResource& resource,
                           const std::vector<std::string>& ids) {
  std::vector<std::string> visible;
  for (const std::string& id : ids) {
    const auto place = std::ranges::find(resource.ids, id) - resource.ids.begin();
    if (place == std::ssize(resource.ids)) continue;
    const std::string& uuid = resource.uuids[static_cast<std::size_t>(place)];
    if (std::ranges::find(visible, uuid) == visible.end()) visible.push_back(uuid);
  }
  return fmt::format("{}", fmt::join(visible, ","));
}

}  // namespace gpuassay::sim
