// The scenario engine: turns a scenario into the state of each GPU over time by a documented
// physical model (docs/simulator.md). Deterministic: the state at time t depends only on the
// scenario and t, not on when or how often anyone asked, because it advances on a fixed grid of
// ticks of 1/6 s and its noise is a hash of (seed, GPU, channel, tick). Not thread-safe; the driver
// above it has the lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// Tick n ends at n/6 s. The real sampler's period is 1/6 s to 1 s depending on the model (nvml.h).
inline constexpr Duration TickTime(std::uint64_t tick) {
  return Duration(static_cast<Duration::rep>(tick * 1'000'000 / 6));
}
inline constexpr std::size_t kSampleHistory = 120;  // what the driver's sample buffers hold

// Integrals since the scenario's start, in seconds (ratio x time) or bytes. Differences of two give
// exact means: this is what GPM samples carry.
struct ActivityTotals {
  double seconds = 0;  // elapsed
  double busy = 0;     // real time with a kernel resident (not what the driver's sampler says)
  double graphics_engine = 0, sm_active = 0, sm_occupancy = 0;
  double tensor = 0, fp64 = 0, fp32 = 0, fp16 = 0, integer = 0;
  double dram = 0;
  double pcie_transmit_bytes = 0, pcie_receive_bytes = 0;
  double nvlink_transmit_bytes = 0, nvlink_receive_bytes = 0;
};

struct UtilizationSample {
  Duration at = {};  // end of the sample window
  std::uint32_t gpu_percent = 0;
  std::uint32_t memory_percent = 0;
};

struct ProcessUtilizationSample {
  Duration at = {};
  std::uint32_t pid = 0;
  std::uint32_t sm_percent = 0, memory_percent = 0, encoder_percent = 0, decoder_percent = 0;
};

struct LinkState {
  bool active = true;
  std::uint64_t transmit_kib = 0, receive_kib = 0;
  double replay_errors = 0, recovery_errors = 0, crc_errors = 0;
};

struct ProcessState {
  std::uint32_t pid = 0;
  std::string name;
  ScenarioProcessType type = ScenarioProcessType::kCompute;
  std::uint64_t memory_bytes = 0;
  std::optional<std::uint32_t> mig_index;
};

struct MigState {
  std::uint32_t index = 0;
  std::uint32_t gpu_instance_id = 0;
  std::uint32_t compute_instance_id = 0;
  std::uint32_t generation = 0;  // of the layout: handles of older layouts are dead
  std::string uuid;
  const MigProfile* profile = nullptr;
  std::uint64_t memory_total_bytes = 0, memory_used_bytes = 0, memory_reserved_bytes = 0;
  ActivityTotals totals;
};

enum ClockEventReason : std::uint64_t {  // NVML's bits
  kReasonIdle = 0x1,
  kReasonApplicationClocks = 0x2,
  kReasonSoftwarePowerCap = 0x4,
  kReasonHardwareSlowdown = 0x8,
  kReasonSyncBoost = 0x10,
  kReasonSoftwareThermal = 0x20,
  kReasonHardwareThermal = 0x40,
  kReasonPowerBrake = 0x80,
};

struct DeviceEvent {
  Duration at = {};
  std::uint64_t type = 0;  // NVML event type bit
  std::uint64_t data = 0;  // Xid code
  std::optional<std::uint32_t> gpu_instance_id;
};

// Everything the driver can say about a GPU at the engine's present time.
struct DeviceState {
  std::uint32_t index = 0;
  const GpuModel* model = nullptr;
  ScenarioGpu config;  // with uuid, serial and pci_bus_id filled in

  bool lost = false;
  bool reset_required = false;
  bool garbage = false;  // the samples below are implausible, on purpose
  bool fabric_ready = true;

  std::uint32_t utilization_percent = 0, memory_utilization_percent = 0;
  std::uint32_t encoder_percent = 0, decoder_percent = 0;
  std::deque<UtilizationSample> utilization_samples;     // oldest first, kSampleHistory
  std::deque<ProcessUtilizationSample> process_samples;  // oldest first, bounded
  ActivityTotals totals;

  double sm_clock_mhz = 0, memory_clock_mhz = 0, video_clock_mhz = 0;
  std::uint32_t performance_state = 8;
  double power_w = 0;          // at this tick
  double power_average_w = 0;  // over the last second
  double energy_j = 0;
  double power_limit_w = 0;  // enforced
  double temperature_c = 0;
  std::optional<double> memory_temperature_c;
  double fan_percent = 0;
  std::uint64_t clock_event_reasons = 0;
  // Accumulated seconds per reason since the driver was loaded.
  double power_cap_seconds = 0, software_thermal_seconds = 0, hardware_thermal_seconds = 0,
         power_brake_seconds = 0, sync_boost_seconds = 0, low_utilization_seconds = 0;

  std::uint64_t memory_used_bytes = 0;  // by processes (and orphans), without the reserve
  std::uint32_t pcie_generation = 0, pcie_width = 0;
  double pcie_replays = 0;
  std::vector<LinkState> links;

  double ecc_corrected = 0, ecc_uncorrected = 0;  // since driver load
  double ecc_corrected_lifetime = 0, ecc_uncorrected_lifetime = 0;
  std::uint32_t remapped_correctable = 0, remapped_uncorrectable = 0;
  bool row_remap_pending = false, row_remap_failed = false;
  std::uint32_t recovery_action = 0;  // NVML's numbers

  bool mig_enabled = false;
  std::vector<MigState> mig;
  std::vector<ProcessState> processes;  // alive now, by PID
};

class Engine {
 public:
  // The scenario must be valid (ParseScenario made it).
  explicit Engine(Scenario scenario);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // Moves to scenario time `t`; earlier times are ignored. Costs about half a microsecond per GPU
  // and tick.
  void AdvanceTo(Duration t);
  // Time of the last tick: at most 1/6 s before the last `t`. The states are of this time.
  Duration now() const;

  const Scenario& scenario() const;
  const std::vector<DeviceState>& devices() const;

  // Events of a device with `after` < at <= now, oldest first.
  std::vector<DeviceEvent> EventsAfter(std::uint32_t device, Duration after) const;

  // Faults of the driver itself at scenario time `t` (it may lie after now()).
  // End of the hang that holds calls at t; kForever; nullopt when calls return.
  std::optional<Duration> HangEnd(Duration t, std::optional<std::uint32_t> device) const;
  // True when a client that initialised at `initialized_at` sees the version mismatch at `t`.
  bool VersionMismatch(Duration t, Duration initialized_at) const;
  bool PermissionDenied(Duration t, std::string_view function) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// M27: what single kernels look like to a sampler. Pure.
struct KernelTrace {
  std::uint32_t windows = 0;
  std::uint32_t windows_active = 0;  // at least one kernel ran in it
  double window_seconds = 0;
  double busy_seconds = 0;  // union of the kernels
  double busy_ratio = 0;    // of windows x window_seconds
};
KernelTrace TraceKernels(const std::vector<Kernel>& kernels, Duration window,
                         std::uint32_t windows);

}  // namespace gpuassay::sim
