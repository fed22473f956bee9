// The three views of a node side by side: what the hardware does, what the scheduler handed out,
// which processes run; and each disagreement between them in one line. Pure: one snapshot in, plain
// values out. `gpuassay views` and /api/v1/views show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/snapshot.h"

namespace gpuassay {

enum class DisagreementKind : std::uint8_t {
  kHeldWithoutProcess,     // allocated, nothing runs
  kUsedWithoutAllocation,  // a pod that was given no GPU uses one
  kUsedOtherDevice,        // a pod works on another device than it was given
  kOutsideScheduler,       // a process outside Kubernetes on a device that Kubernetes hands out
  kUnitsAreOneDevice,      // several units are replicas of one device
  kUnknownDevice,          // allocated a device that is not here
  kNotHandedOut,           // a GPU that is in no resource while others are
  kMemoryOverRequest,      // uses more device memory than it asked for
  kMemoryUnderRequest,     // asked for at least twice what it uses
  kMemoryNobodyOwns,       // used memory that no listed process accounts for
  kPoolLargerThanData,     // a framework's pool holds at least a quarter more than its data
  kBusyWithoutProcess,     // works and lists no process
  kManySharers,            // more processes than a GPU can serve well
  kContainerGone,          // a process whose container or pod no longer exists
  kSchedulerUnreachable,   // a source of the scheduler's view fails
};
std::string_view DisagreementName(DisagreementKind kind);  // "held_without_process" ...

struct Disagreement {
  DisagreementKind kind = DisagreementKind::kHeldWithoutProcess;
  std::string text;      // one line, complete without its surroundings
  std::string gpu_uuid;  // empty: of the node
  std::string mig_uuid;
  std::string pod;  // "namespace/name"; empty: of no pod

  bool operator==(const Disagreement&) const = default;
};

// Thresholds, each with its reason.
// Below this unattributed memory is the context of a driver daemon or a process about to be listed:
// a CUDA context takes 250 to 500 MiB on current boards.
inline constexpr double kUnownedBytesMin = 512.0 * 1024 * 1024;
// Less than half of what was asked for is used: the other half could have served another pod.
inline constexpr double kUnderRequestFactor = 2;
// PyTorch's allocator keeps what was freed; up to a quarter is usual in steady training.
inline constexpr double kPoolOverDataFactor = 1.25;
// Time slicing gives each process a slice in turn. From 8 on each waits longer than it works even
// when all are equal, and device memory is not isolated.
inline constexpr int kSharersMax = 8;

struct ViewProcess {
  std::uint32_t pid = 0;
  std::string name;
  ProcessOwner owner;
  Reading memory_used_bytes;
  Reading sm_share_ratio;
  Reading pool_reserved_bytes;
  Reading pool_allocated_bytes;
};

// A GPU, or one of its MIG instances.
struct DeviceView {
  GpuIdentity gpu;
  std::optional<MigIdentity> mig;
  // Hardware.
  Reading busy_ratio;  // as SharedDevice::busy
  Reading sm_active_ratio;
  Reading memory_used_bytes, memory_reserved_bytes, memory_free_bytes, memory_total_bytes;
  Reading memory_processes_bytes, memory_unattributed_bytes;
  Reading power_watts;  // of the whole GPU
  // Scheduler.
  std::vector<DeviceUnit> units;
  std::vector<Allocation> allocations;
  // Process.
  std::vector<ViewProcess> processes;
  std::vector<OwnerUsage> owners;
  std::vector<DeviceHolder> holders;
  std::vector<Disagreement> disagreements;
};

struct PodView {
  Pod pod;
  std::vector<DeviceUnit> units;  // handed to it
  std::uint32_t processes = 0;    // on any GPU
  Reading memory_used_bytes;      // all devices; missing without a process
  Reading pool_reserved_bytes, pool_allocated_bytes;
  Reading sm_share_ratio;  // summed over devices: 1 is one whole device's time
  Reading power_watts;
  std::vector<Disagreement> disagreements;
};

// Units against devices (M28).
struct ResourceView {
  std::string resource;
  std::uint32_t units = 0;      // allocatable
  std::uint32_t allocated = 0;  // of them, handed out
  std::uint32_t devices = 0;    // that the units are parts of
};

struct Views {
  NodeIdentity node;
  WallTime time;
  // False: nobody has told what was handed out to whom, so nothing can be said about it.
  bool allocations_known = false;
  std::vector<ResourceView> resources;      // by name
  std::vector<DeviceView> devices;          // by GPU index, then MIG index
  std::vector<PodView> pods;                // by namespace and name; pods with a GPU or a request
  std::vector<Disagreement> disagreements;  // of the node
};

Views MakeViews(const Snapshot& snapshot);

}  // namespace gpuassay
