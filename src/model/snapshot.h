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

struct NodeIdentity {
  std::string hostname;
  std::string driver_version;  // "570.86.15"; empty when unknown
  std::string nvml_version;    // "12.570.86.15"
  std::string cuda_version;    // highest CUDA version of the driver, "12.8"
};

// How a GPU is called. Texts are empty when the driver does not tell them.
struct GpuIdentity {
  std::uint32_t index = 0;  // NVML order, which is PCI order, not CUDA order
  std::string uuid;         // "GPU-..."
  std::string pci_bus_id;   // NVML form, "00000000:1A:00.0"
  std::string name;         // "NVIDIA H100 80GB HBM3"
  std::string serial;
  std::string vbios_version;
  std::string architecture;                   // "Hopper"
  std::optional<std::uint32_t> minor_number;  // N of /dev/nvidiaN
};

struct NvLink {
  std::uint32_t link = 0;
  LinkReadings readings;
};

struct MigIdentity {
  std::uint32_t index = 0;  // MIG device index on its GPU
  std::uint32_t gpu_instance_id = 0;
  std::uint32_t compute_instance_id = 0;
  std::string uuid;     // "MIG-..."
  std::string profile;  // "1g.10gb"
};

struct MigInstance {
  MigIdentity identity;
  MigReadings readings;
};

enum class ProcessType : std::uint8_t {
  kCompute = 0,
  kGraphics = 1,
  kComputeAndGraphics = 2,
  kMps = 3
};
std::string_view ProcessTypeName(
    ProcessType type);  // "compute", "graphics", "compute+graphics", "mps"

// One process on one GPU. The owner (container, pod, job, user) is joined by attribution/.
struct GpuProcess {
  std::uint32_t pid = 0;  // in the host's PID namespace
  ProcessType type = ProcessType::kCompute;
  std::optional<std::uint32_t> gpu_instance_id;  // in MIG mode
  std::optional<std::uint32_t> compute_instance_id;
  std::string name;  // executable name; empty when it could not be read
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
