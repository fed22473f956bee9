// Device ids as Kubernetes has them, in every form, and which device of the node each means. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace gpuassay {

// How the id names its device.
//   "GPU-<uuid>", "MIG-<uuid>"     NVIDIA device plugin; "::N" at the end: replica of a shared one
//   "MIG-GPU-<uuid>/GI/CI"         MIG devices of drivers before R470
//   "nvidia0", "nvidia0/gi1"       GKE's device plugin; "/vgpuN" at the end: replica
//   "gpu-0"                        NVIDIA's DRA driver: the minor number (its first releases: the
//                                  index, which is the same where device files are in PCI order)
//   "gpu-0-mig-1g5gb-19-0"         the same with dynamic MIG: profile, id of the profile, placement
//   "gpu-0-mig-1g5gb-0"            development versions of it: profile, placement
//   "gpu-0-mig-19-0-1"             its static MIG devices: id of the profile, placement, its size
//   "0", "0:1"                     NVIDIA_VISIBLE_DEVICES: index, and MIG index on it
// In names of DRA the profile has no dot, and "-" instead of "+": "1g10gb-me" is "1g.10gb+me".
struct DeviceId {
  std::string uuid;                    // "GPU-..." or "MIG-..."; empty for the other forms
  std::optional<std::uint32_t> minor;  // GKE: N of "nvidiaN"; DRA: N of "gpu-N"
  std::optional<std::uint32_t> gpu_instance_id;      // GKE: giN; old MIG form: GI
  std::optional<std::uint32_t> compute_instance_id;  // old MIG form: CI
  std::optional<std::uint32_t> replica;              // N of "::N" or "vgpuN"
  std::string mig_profile;                           // DRA: "1g.5gb"
  std::optional<std::uint32_t> mig_placement_start;  // DRA
  std::optional<std::uint32_t> index;                // N of "N" and "N:M"
  std::optional<std::uint32_t> mig_index;            // M of "N:M"

  bool operator==(const DeviceId&) const = default;
};
// nullopt: none of the forms, or longer than 256 bytes.
std::optional<DeviceId> ParseDeviceId(std::string_view text);

struct ResolvedDevice {
  std::string gpu_uuid;
  std::string mig_uuid;  // empty for a whole GPU

  bool operator==(const ResolvedDevice&) const = default;
};
// nullopt: no device of the snapshot is called so (another layout, a GPU that is gone), or more
// than one may be meant. UUIDs are compared without regard to case: some drivers of DRA publish
// them in lower case. A MIG device that is named by its profile is only found when its GPU has one
// of that profile: the driver's tables do not tell the placement.
std::optional<ResolvedDevice> ResolveDevice(const DeviceId& id, const std::vector<Gpu>& gpus);

// True for resources of accelerators: nvidia.com/..., the names in `more` (renamed resources), and
// the fractional ones of HAMi, KAI and others; docs/attribution.md lists them. Network devices that
// NVIDIA's network operator puts under nvidia.com are none.
bool IsGpuResource(std::string_view resource, const std::vector<std::string>& more);

// "gpu.nvidia.com", and the names in `more`. NVIDIA's second driver, compute-domain.nvidia.com,
// hands out channels of a fabric and no devices.
bool IsGpuDraDriver(std::string_view driver, const std::vector<std::string>& more);

}  // namespace gpuassay
