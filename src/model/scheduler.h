// The scheduler's view of a node: what exists to be handed out, what was handed out to whom, and
// what the pods asked for. Told by the kubelet and the API server, by Slurm, or by the environment
// that a container runtime gave. Plain values; nothing here is measured on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/identity.h"

namespace gpuassay {

// Bounds by construction; what does not fit is counted in `Scheduler::dropped`.
inline constexpr std::size_t kAllocatableMax = 4096;  // 64 GPUs with 64 replicas each
inline constexpr std::size_t kAllocationsMax = 4096;
inline constexpr std::size_t kPodsMax = 1024;         // of one node; kubelet's default is 110
inline constexpr std::size_t kPodLabelsMax = 16;      // of one pod, after the allow-list
inline constexpr std::size_t kPodContainersMax = 64;  // of one pod
inline constexpr std::size_t kPodRequestsMax = 64;    // of one pod

// The numbers are part of the record format: append, never renumber.
enum class SchedulerKind : std::uint8_t {
  kKubernetes = 0,
  kSlurm = 1,
  kContainerRuntime = 2,  // NVIDIA_VISIBLE_DEVICES of a container outside Kubernetes
};
std::string_view SchedulerKindName(SchedulerKind kind);  // "kubernetes", "slurm", "container"

// One unit of a resource. Of a shared GPU there are several with one UUID and different replicas.
struct DeviceUnit {
  std::string resource;   // "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "gres/gpu"; DRA: the driver
  std::string device_id;  // as the scheduler says it: "GPU-...", "MIG-...::2", "nvidia0/gi1"
  std::optional<std::uint32_t> replica;  // N of "...::N"
  // Which device of this node that is; both empty when none is called so. `mig_uuid` is empty for
  // a whole GPU.
  std::string gpu_uuid;
  std::string mig_uuid;

  bool operator==(const DeviceUnit&) const = default;
};

// One unit in one container's hands.
struct Allocation {
  SchedulerKind scheduler = SchedulerKind::kKubernetes;
  DeviceUnit unit;
  std::string claim;   // DRA: name of the ResourceClaim, in the pod's namespace; empty elsewhere
  ProcessOwner owner;  // container, pod, job, user: as far as the scheduler tells

  bool operator==(const Allocation&) const = default;
};

struct ResourceRequest {
  std::string container;
  std::string resource;  // only of accelerators: "nvidia.com/gpu", "nvidia.com/gpumem" ...
  double amount = 0;     // as written: units, or the resource's own unit (gpumem: MiB)

  bool operator==(const ResourceRequest&) const = default;
};

struct PodContainer {
  std::string name;
  std::string id;  // without the runtime; empty before it has started

  bool operator==(const PodContainer&) const = default;
};

// A pod of this node, as the API server (or, with less, the kubelet) tells.
struct Pod {
  PodIdentity identity;
  std::string phase;         // "Running" ...; empty when only the kubelet told of it
  bool terminating = false;  // deletion asked for, not finished
  JobIdentity controller;    // kind and name of the object that controls it; empty without one
  std::optional<WallTime> started;
  std::vector<PodContainer> containers;
  std::vector<ResourceRequest> requests;
  // Device memory asked for, all containers and devices together: HAMi `nvidia.com/gpumem` (MiB),
  // `nvidia.com/gpumem-percentage` (when the device is known), KAI `gpu-memory` annotation (MiB).
  std::optional<double> memory_request_bytes;
  std::vector<std::pair<std::string, std::string>> labels;  // only those of the allow-list

  bool operator==(const Pod&) const = default;
};

struct Scheduler {
  std::vector<DeviceUnit> allocatable;  // what can be handed out, handed out or not
  std::vector<Allocation> allocations;
  std::vector<Pod> pods;
  std::uint32_t dropped = 0;  // entries over a bound

  bool operator==(const Scheduler&) const = default;
};

// Shared by the snapshots of all cycles in which it does not change.
using SchedulerPtr = std::shared_ptr<const Scheduler>;

}  // namespace gpuassay
