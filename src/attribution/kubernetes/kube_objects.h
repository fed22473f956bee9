// Objects of the Kubernetes API as JSON: pods, pages of pods, events of a watch, errors,
// ResourceSlices. Only what is used here is read; everything else is skipped. Pure.
// Source: Kubernetes API reference v1.34; the annotations and resources are named where they are
// read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/scheduler.h"

namespace gpuassay {

inline constexpr std::size_t kPodBytesMax = std::size_t{2} << 20;  // etcd holds 1.5 MiB
inline constexpr std::size_t kPageBytesMax = std::size_t{16} << 20;
inline constexpr std::size_t kSlicesMax = 128;         // ResourceSlices of one node
inline constexpr std::size_t kSliceDevicesMax = 4096;  // of all its slices

// What of a pod is read.
struct PodRules {
  std::vector<std::string> resource_names;  // renamed resources besides nvidia.com/...
  std::vector<std::string> labels;          // allow-list of keys; "*" at the end of one
};

// True when the allow-list has the key, or a beginning of it followed by "*".
bool IsAllowed(std::string_view key, const std::vector<std::string>& allow_list);

// One pod.
//
// identity.uid: metadata.uid; of a static pod (annotation kubernetes.io/config.mirror) the value of
//   that annotation, because the mirror in the API has another UID than the pod on the node.
// controller: the owner reference with `controller: true`. A ReplicaSet whose name ends in the
//   pod's label pod-template-hash is the Deployment of the rest of the name. Without a controller:
//   the Job that the label batch.kubernetes.io/job-name (or, before 1.27, job-name) names.
// requests: limits of accelerators, else requests, by container, init containers too. KAI's
//   annotations gpu-fraction (a part of one device) and gpu-memory (MiB of one device) are requests
//   of these names, for the container that gpu-fraction-container-name says (empty: not said).
// memory_request_bytes: for each container that stays (no init container, unless it is a sidecar)
//     HAMi     nvidia.com/gpumem in MiB, of each nvidia.com/gpu of that container (1 if not said);
//              "gpumem" in another domain is a renamed one and goes with "gpu" or "vgpu" there
//     Volcano  volcano.sh/vgpu-memory in MiB (with its default factor), of each vgpu-number
//   and for the pod
//     KAI      annotation gpu-memory in MiB, of each of gpu-fraction-num-devices (1 if not said)
//   added up. Percentages and fractions need the memory of the device: they are only in requests.
// containers: name and id of each container that has been started, init containers too.
struct ApiPod {
  Pod pod;
  bool finished = false;      // phase Succeeded or Failed: holds no device
  std::uint32_t dropped = 0;  // requests, containers and labels over a bound
  // It has containers that were started, so a device that is in use may be in its hands.
  bool HasContainers() const { return !pod.containers.empty(); }

  bool operator==(const ApiPod&) const = default;
};

// kMalformed with what is wrong.
Result<ApiPod> ParsePod(std::string_view json, const PodRules& rules);

struct PodPage {
  std::vector<ApiPod> pods;
  std::string resource_version;
  std::string continue_token;  // empty: the last page
  std::uint32_t dropped = 0;   // entries that are no pods
};
Result<PodPage> ParsePodPage(std::string_view json, const PodRules& rules);

struct WatchEvent {
  enum class Kind { kPut, kDelete, kBookmark, kError };  // ADDED and MODIFIED are kPut
  Kind kind = Kind::kBookmark;
  ApiPod pod;                    // kPut, kDelete
  std::string resource_version;  // all but kError
  int code = 0;                  // kError: HTTP status, 410 when the version is too old
  std::string message;           // kError
};
Result<WatchEvent> ParseWatchEvent(std::string_view line, const PodRules& rules);

// At most kOwnerTextBytesMax of it, never ending inside a character of UTF-8.
std::string CutOwnerText(std::string_view text);

// The `message` of a Status object, on one line and cut; empty when the text is none.
std::string StatusMessage(std::string_view json);

// A device of a ResourceSlice. A MIG device that exists has both UUIDs; one that could be made has
// none.
struct SliceDevice {
  std::string driver;  // "gpu.nvidia.com"
  std::string pool;
  std::string name;  // "gpu-0"
  std::string gpu_uuid;
  std::string mig_uuid;

  bool operator==(const SliceDevice&) const = default;
};
// All devices of the list, in both layouts: resource.k8s.io/v1 has `attributes` in the device,
// v1beta1 in `basic`. Attribute names may have the driver's domain in front.
Result<std::vector<SliceDevice>> ParseResourceSlices(std::string_view json);

// "2026-01-01T00:00:00Z", with or without a fraction; only UTC, as the API server writes it.
std::optional<WallTime> ParseKubeTime(std::string_view text);

}  // namespace gpuassay
