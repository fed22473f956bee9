// Ids of devices, names of resources and quantities, as whoever writes a device plugin or a pod
// likes to have them: nothing is meant that is not on the node.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/kubernetes/device_id.h"
#include "attribution/kubernetes/quantity.h"
#include "base/check.h"

namespace {

using gpuassay::Check;

std::vector<gpuassay::Gpu> Node() {
  std::vector<gpuassay::Gpu> gpus(3);
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    gpuassay::GpuIdentity& identity = gpus[i].identity;
    identity.index = i;
    identity.minor_number = static_cast<std::uint32_t>(gpus.size()) - 1 - i;
    identity.uuid = "GPU-0000000" + std::to_string(i) + "-2222-3333-4444-abcdefabcdef";
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    gpuassay::MigInstance& mig = gpus[0].mig.emplace_back();
    mig.identity.index = i;
    mig.identity.gpu_instance_id = i + 1;
    mig.identity.uuid = "MIG-0000000" + std::to_string(i) + "-2222-3333-4444-abcdefabcdef";
    mig.identity.profile = i == 0 ? "2g.10gb" : "1g.5gb";
  }
  return gpus;
}

bool IsThere(const gpuassay::ResolvedDevice& device, const std::vector<gpuassay::Gpu>& gpus) {
  for (const gpuassay::Gpu& gpu : gpus) {
    if (gpu.identity.uuid != device.gpu_uuid) continue;
    if (device.mig_uuid.empty()) return true;
    for (const gpuassay::MigInstance& mig : gpu.mig) {
      if (mig.identity.uuid == device.mig_uuid) return true;
    }
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<gpuassay::Gpu> gpus = Node();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto id = gpuassay::ParseDeviceId(text)) {
    Check(size <= 256, "an id is bounded");
    if (!id->uuid.empty()) {
      const auto again = gpuassay::ParseDeviceId(id->uuid);
      Check(again && again->uuid == id->uuid, "a UUID is read as it was written");
    }
    const auto device = gpuassay::ResolveDevice(*id, gpus);
    Check(!device || IsThere(*device, gpus), "what is meant is on the node");
    Check(!gpuassay::ResolveDevice(*id, {}), "nothing is on an empty node");
  }
  const std::string name(text);
  Check(gpuassay::IsGpuResource(text, {name}), "what is named counts");
  Check(gpuassay::IsGpuDraDriver(text, {name}), "what is named counts");
  if (gpuassay::IsGpuResource(text, {})) Check(!text.empty(), "no name is no resource");
  if (const auto amount = gpuassay::ParseQuantity(text)) {
    Check(std::isfinite(*amount) && *amount >= 0, "a quantity is a number");
  }
  return 0;
}
