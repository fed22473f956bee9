// A scenario: the story that the simulated driver tells. Written in YAML (docs/scenarios.md, field
// by field), validated with line and column. Times are offsets from the scenario's start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sim/models/gpu_model.h"
#include "sim/scenario/node_world.h"

namespace gpuassay::sim {

inline constexpr Duration kForever = Duration::max();

// What a program does to the GPU while it does the same thing. Ratios are of the whole device (or
// of the whole MIG instance the process runs on), at full clock, averaged over the phase.
struct Activity {
  double kernel_seconds = 0;       // length of one kernel
  double launches_per_second = 0;  // mean rate; arrivals are random unless `regular`
  bool regular = false;            // equally spaced launches
  double sm_active = 0;            // 0..1
  double sm_occupancy = 0;         // 0..1
  double tensor_active = 0, fp64_active = 0, fp32_active = 0, fp16_active = 0, integer_active = 0;
  double dram_active = 0;  // share of peak bandwidth
  double pcie_transmit_bytes_per_second = 0, pcie_receive_bytes_per_second = 0;
  double nvlink_transmit_bytes_per_second = 0, nvlink_receive_bytes_per_second = 0;
  double encoder = 0, decoder = 0;
};

// One kernel at one time, for scenarios that need single kernels (M27).
struct Kernel {
  Duration at = {};
  Duration length = {};
};

struct Phase {
  std::string name;  // "compute", "checkpoint", ...
  Duration length = kForever;
  Activity activity;
  std::vector<Kernel>
      kernels;  // instead of kernel_seconds and launches_per_second; within the phase
};

struct MemoryPoint {  // linear between points, constant after the last
  Duration at = {};
  double bytes = 0;
};

// Memory at a time after the process's start; 0 without points.
double MemoryOf(const std::vector<MemoryPoint>& points, Duration since_start);

enum class ScenarioProcessType { kCompute, kGraphics, kMps };

struct ScenarioProcess {
  std::uint32_t pid = 0;
  std::string name;
  std::vector<std::uint32_t> gpus;         // indices
  std::optional<std::uint32_t> mig_index;  // MIG device on each of those GPUs
  ScenarioProcessType type = ScenarioProcessType::kCompute;
  Duration start = {};
  Duration end = kForever;
  std::vector<MemoryPoint> memory;  // offsets from the process's start
  std::vector<Phase> phases;        // from the process's start
  bool repeat = false;              // phases start again after the last
};

enum class FaultKind {
  kHotInlet,  // value: inlet temperature in Celsius
  kFanDead,
  kPowerCap,  // value: limit in watts
  kPowerBrake,
  kClocksLocked,    // value: SM clock in MHz
  kPcieGeneration,  // value: generation the link falls to
  kPcieWidth,       // value: lanes
  kPcieReplays,     // value: replays per second
  kNvlinkDown,      // link: which
  kNvlinkErrors,    // value: errors per second; link: which; counter: replay, recovery or crc
  kEccCorrected,    // value: errors per second
  kEccUncorrected,  // value: errors at once; also a double-bit event
  kRowRemapPending,
  kRowRemapFailed,
  kXid,  // value: code; count: how often; every: apart
  kGpuLost,
  kResetRequired,
  kDriverHang,  // calls do not return until the fault ends; gpu given: only calls on that GPU
  kGarbage,     // implausible samples: utilisation over 100 %, process samples of dead PIDs ...
  kVersionMismatch,   // as after an upgrade under a running process
  kPermissionDenied,  // functions: which calls, or all privileged ones
  kMigReconfigure,    // layout: new MIG profiles
  kMemoryLeakOrphan,  // value: bytes that no listed process holds
  kFabricNotReady,
};
std::string_view FaultName(FaultKind kind);  // as in YAML: "hot_inlet"

struct Fault {
  FaultKind kind = FaultKind::kHotInlet;
  Duration at = {};
  Duration length = kForever;
  std::optional<std::uint32_t> gpu;   // nullopt: all
  std::optional<std::uint32_t> link;  // nullopt: all
  double value = 0;
  std::uint32_t count = 1;
  Duration every = std::chrono::seconds(1);
  std::string counter;                 // kNvlinkErrors
  std::vector<std::string> functions;  // kPermissionDenied
  std::vector<std::string> layout;     // kMigReconfigure
};

struct ScenarioGpu {
  const GpuModel* model = nullptr;
  std::string uuid;  // derived from the seed when empty
  std::string serial;
  std::string pci_bus_id;        // "00000000:1B:00.0"
  std::vector<std::string> mig;  // profile names; empty: MIG off
  bool mig_enabled = false;      // may be on with no instances
  double inlet_c = 25;
  bool persistence = true;
  bool ecc = true;  // where the model has it
  std::optional<double> power_limit_w;
};

struct DriverVersion {
  std::string text = "570.86.15";
  std::uint32_t major = 570;
  std::string cuda = "12.8";
};

struct Scenario {
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  double noise = 0.01;  // standard deviation of samples, as a share of the value
  WallTime start;       // for virtual time; real time starts at load
  Duration length = std::chrono::minutes(10);  // suggested: what `simulate` runs without --for
  std::string hostname;                        // of the simulated node
  DriverVersion driver;
  std::vector<ScenarioGpu> gpus;
  std::vector<ScenarioProcess> processes;
  std::vector<Fault> faults;
  ScenarioWorld world;
};

// The units that the device plugin has of a resource, in its order: by GPU, MIG device, replica.
// `resource` is one of `world.resources`.
std::vector<ScenarioDevice> UnitsOf(const std::vector<ScenarioGpu>& gpus,
                                    const ScenarioResource& resource);

// Pure; `file` is only for messages: "FILE:LINE:COLUMN: what is wrong, what instead".
Result<Scenario> ParseScenario(std::string_view yaml, std::string_view file);
// Reads and parses. kNotFound, kPermission, kMalformed.
Result<Scenario> LoadScenario(const std::string& path);

}  // namespace gpuassay::sim
