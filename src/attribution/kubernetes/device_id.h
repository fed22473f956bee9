// Device ids as Kubernetes has them, in every form, and which device of the node each means. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace gpuassay {

// How the id names its device. Sources: NVIDIA device plugin (UUIDs, replicas "::N"), GKE's plugin
// ("nvidia0", "nvidia0/gi1", "nvidia0/gi1/vgpu0", "nvidia0/vgpu1"), DRA ("gpu-0",
// "gpu-0-mig-1g5gb-0-1" of the NVIDIA DRA driver).
struct DeviceId {
  std::string uuid;                    // "GPU-..." or "MIG-..."; empty for the other forms
  std::optional<std::uint32_t> minor;  // GKE: N of "nvidiaN"; DRA: N of "gpu-N"
  std::optional<std::uint32_t> gpu_instance_id;      // GKE: giN
  std::optional<std::uint32_t> replica;              // N of "::N" or "vgpuN"
  std::string mig_profile;                           // DRA: "1g.5gb"
  std::optional<std::uint32_t> mig_placement_start;  // DRA

  bool operator==(const DeviceId&) const = default;
};
// nullopt: none of the forms. At most 256 bytes are looked at.
std::optional<DeviceId> ParseDeviceId(std::string_view text);

struct ResolvedDevice {
  std::string gpu_uuid;
  std::string mig_uuid;
};
// nullopt: no device of the snapshot is called so (another layout, a GPU that is gone).
std::optional<ResolvedDevice> ResolveDevice(const DeviceId& id, const std::vector<Gpu>& gpus);

// True for resources of accelerators: nvidia.com/..., the names in `more` (renamed resources), and
// the fractional ones of HAMi, KAI and others; docs/attribution.md lists them.
bool IsGpuResource(std::string_view resource, const std::vector<std::string>& more);

}  // namespace gpuassay
