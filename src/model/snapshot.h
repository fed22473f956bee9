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
#include "model/identity.h"
#include "model/reading.h"

namespace gpuassay {

// Bounds by construction. What does not fit is counted in `Gpu::processes_dropped`, never silently
// cut.
inline constexpr std::size_t kGpusMax = 64;
inline constexpr std::size_t kLinksMax = 36;        // NVLINK_L0..L35, nvml.h
inline constexpr std::size_t kMigInstancesMax = 8;  // 7 on all known models
inline constexpr std::size_t kProcessesPerGpuMax = 4096;
inline constexpr std::size_t kXidKindsMax = 64;  // per GPU; the rest is counted under code 0
inline constexpr std::size_t kEventsMax = 256;   // per snapshot

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
  std::vector<XidCount> xids;  // by code
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
  std::vector<SourceStatus> sources;
  std::vector<Gpu> gpus;  // by index
  std::vector<DriverEvent> events;
  std::vector<std::string> capabilities_missing;  // driver functions the library lacks
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace gpuassay
