// What one node looks like at one instant. A source fills it, counters/ adds the integrals, then it
// is published as shared_ptr<const Snapshot> and never edited again. Every number is a Reading: a
// value in the base unit that metrics.def names, or the reason why there is none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/holder.h"
#include "model/identity.h"
#include "model/reading.h"
#include "model/scheduler.h"

namespace gpuassay {

// Bounds by construction. What does not fit is counted in `Gpu::processes_dropped`, never silently
// cut.
inline constexpr std::size_t kGpusMax = 64;
inline constexpr std::size_t kLinksMax = 36;        // NVLINK_L0..L35, nvml.h
inline constexpr std::size_t kMigInstancesMax = 8;  // 7 on all known models
inline constexpr std::size_t kProcessesPerGpuMax = 4096;
inline constexpr std::size_t kOwnersPerGpuMax = 512;  // the rest is one of kind kOther
inline constexpr std::size_t kXidKindsMax = 64;       // per GPU; the rest is counted under code 0
inline constexpr std::size_t kEventsMax = 256;        // per snapshot

struct GpuReadings {
#define GPU_METRIC(field, ...) Reading field;
#include "model/metrics.def"
};
struct LinkReadings {
#define LINK_METRIC(field, ...) Reading field;
#include "model/metrics.def"
};
struct MigReadings {
#define MIG_METRIC(field, ...) Reading field;
#include "model/metrics.def"
};
struct ProcessReadings {
#define PROCESS_METRIC(field, ...) Reading field;
#include "model/metrics.def"
};
struct OwnerReadings {
#define OWNER_METRIC(field, ...) Reading field;
#include "model/metrics.def"
};
struct SourceReadings {
#define SOURCE_METRIC(field, ...) Reading field;
#include "model/metrics.def"
};

struct NvLink {
  std::uint32_t link = 0;
  LinkReadings readings;
};

struct MigInstance {
  MigIdentity identity;
  MigReadings readings;
};

// One process on one GPU. What the driver does not know of it (start, owner) is joined by
// attribution/.
struct GpuProcess {
  std::uint32_t pid = 0;  // in the host's PID namespace
  ProcessType type = ProcessType::kCompute;
  std::optional<std::uint32_t> gpu_instance_id;  // in MIG mode
  std::optional<std::uint32_t> compute_instance_id;
  std::string name;  // executable name; empty when it could not be read
  // Between the boot of the host and the start of the process, exact to a clock tick (10 ms): field
  // 22 of /proc/PID/stat. A PID with another start is another process.
  std::optional<Duration> start_after_boot;
  ProcessOwner owner;
  ProcessReadings readings;
};

// Who a share of a GPU belongs to. All shares of a GPU add up to the GPU (docs/attribution.md).
enum class OwnerKind : std::uint8_t {
  kContainer = 0,     // of a pod or of a runtime
  kPod = 1,           // a pod of which no container is known
  kJob = 2,           // of a batch system, outside containers
  kUnit = 3,          // a systemd service or session
  kUser = 4,          // processes of which only the user is known
  kUnknown = 5,       // processes of which nothing but the PID is known
  kOther = 6,         // all owners over a bound, added up
  kIdle = 7,          // what the GPU draws without work; has only power and energy
  kUnattributed = 8,  // what no process accounts for, or what cannot be told apart
};
std::string_view OwnerKindName(OwnerKind kind);  // "container" ... "idle", "unattributed"

// One owner's share of one GPU or, in MIG mode, of one compute instance. An owner stays listed
// after its last process while its counters are remembered. Filled by attribution/.
struct OwnerUsage {
  OwnerKind kind = OwnerKind::kUnattributed;
  std::optional<std::uint32_t> gpu_instance_id;  // in MIG mode; absent: of the GPU as a whole
  std::optional<std::uint32_t> compute_instance_id;
  ProcessOwner owner;
  OwnerReadings readings;
};

// Errors counted by code since the agent started. Filled by counters/ from events.
struct XidCount {
  std::uint32_t xid = 0;
  std::uint64_t count = 0;
};

struct Gpu {
  GpuIdentity identity;
  GpuReadings readings;
  std::vector<NvLink> links;          // by link number
  std::vector<MigInstance> mig;       // by MIG device index; empty when MIG is off
  std::vector<GpuProcess> processes;  // by PID
  std::uint32_t processes_dropped = 0;
  std::vector<XidCount> xids;         // by code
  std::vector<DeviceHolder> holders;  // by PID; looked for when there is a reason (HolderWatch)
  // By instance, then by kind and name; the last one of each instance is kUnattributed. Not part of
  // the record format: derived again from what is.
  std::vector<OwnerUsage> owners;
};

// The numbers are part of the record format: append, never renumber.
enum class EventKind : std::uint8_t {
  kXid = 0,
  kSingleBitEcc = 1,
  kDoubleBitEcc = 2,
  kMigConfigChange = 3,
  kGpuUnavailable = 4,
  kRecoveryAction = 5,
};
std::string_view EventKindName(EventKind kind);

// Something the driver told once. Kept in the snapshot of the cycle in which it was read.
struct DriverEvent {
  WallTime time;
  EventKind kind = EventKind::kXid;
  std::string gpu_uuid;
  std::uint64_t data = 0;  // the Xid code for kXid (999 when the driver does not know)
  std::optional<std::uint32_t> gpu_instance_id;
};

struct SourceStatus {
  std::string name;                          // "nvml", "simulator", "replay"
  std::optional<WallTime> last_success;      // of this source; age = now - last_success
  std::string error;                         // one line; empty while all is well
  Missing missing = Missing::kNeverSampled;  // reason for all its values while `error` is set
  SourceReadings readings;
};

struct Snapshot {
  WallTime time;      // when the reading began
  SteadyTime steady;  // the same instant on the steady clock: differences are exact
  NodeIdentity node;
  std::vector<SourceStatus> sources;  // the driver's first, then those that tell of owners
  std::vector<Gpu> gpus;              // by index
  std::vector<DriverEvent> events;
  std::vector<std::string> capabilities_missing;  // driver functions the library lacks
  SchedulerPtr scheduler;                         // null: no scheduler has told anything
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace gpuassay
