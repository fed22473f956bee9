#include "counters/integrator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpuassay {
namespace {

// A ratio counts at most one second per second, whatever the driver says.
struct RatioRule {
  Reading GpuReadings::*ratio;
  Reading GpuReadings::*seconds_total;
};
constexpr RatioRule kRatioRules[] = {
    {&GpuReadings::utilization_mean_ratio, &GpuReadings::busy_seconds_total},
    {&GpuReadings::graphics_engine_active_ratio,
     &GpuReadings::graphics_engine_active_seconds_total},
    {&GpuReadings::sm_active_ratio, &GpuReadings::sm_active_seconds_total},
    {&GpuReadings::tensor_active_ratio, &GpuReadings::tensor_active_seconds_total},
    {&GpuReadings::dram_active_ratio, &GpuReadings::dram_active_seconds_total},
};

struct RateRule {
  Reading GpuReadings::*per_second;
  Reading GpuReadings::*total;
};
constexpr RateRule kRateRules[] = {
    {&GpuReadings::pcie_transmit_bytes_per_second, &GpuReadings::pcie_transmit_bytes_total},
    {&GpuReadings::pcie_receive_bytes_per_second, &GpuReadings::pcie_receive_bytes_total},
    {&GpuReadings::nvlink_transmit_bytes_per_second, &GpuReadings::nvlink_transmit_bytes_total},
    {&GpuReadings::nvlink_receive_bytes_per_second, &GpuReadings::nvlink_receive_bytes_total},
};

// A counter of the driver, and the gauge that bridges it (in units per second).
struct DriverRule {
  Reading GpuReadings::*driver;  // nullptr: the driver has none
  Reading GpuReadings::*gauge;
  double per_second_max;  // the fastest the counter can rise
  Reading GpuReadings::*total;
};
constexpr DriverRule kDriverRules[] = {
    {&GpuReadings::driver_energy_joules, &GpuReadings::power_watts,
     Integrator::kPlausiblePowerWattsMax, &GpuReadings::energy_joules_total},
    {&GpuReadings::driver_throttled_power_seconds, &GpuReadings::clock_event_software_power_cap, 1,
     &GpuReadings::throttled_software_power_cap_seconds_total},
    {&GpuReadings::driver_throttled_software_thermal_seconds,
     &GpuReadings::clock_event_software_thermal, 1,
     &GpuReadings::throttled_software_thermal_seconds_total},
    {&GpuReadings::driver_throttled_hardware_thermal_seconds,
     &GpuReadings::clock_event_hardware_thermal, 1,
     &GpuReadings::throttled_hardware_thermal_seconds_total},
    {&GpuReadings::driver_throttled_power_brake_seconds, &GpuReadings::clock_event_power_brake, 1,
     &GpuReadings::throttled_power_brake_seconds_total},
    {&GpuReadings::driver_throttled_sync_boost_seconds, &GpuReadings::clock_event_sync_boost, 1,
     &GpuReadings::throttled_sync_boost_seconds_total},
    {nullptr, &GpuReadings::clock_event_application_clocks, 1,
     &GpuReadings::throttled_application_clocks_seconds_total},
};

struct MigRule {
  Reading MigReadings::*ratio;
  Reading MigReadings::*seconds_total;
};
constexpr MigRule kMigRules[] = {
    {&MigReadings::sm_active_ratio, &MigReadings::sm_active_seconds_total},
    {&MigReadings::tensor_active_ratio, &MigReadings::tensor_active_seconds_total},
    {&MigReadings::dram_active_ratio, &MigReadings::dram_active_seconds_total},
};

// The driver updates its counters at its own pace: one reading may hold up to this much of the time
// before the interval.
constexpr double kCounterLagSeconds = 1.5;

class Total {
 public:
  // The input was read; `amount` belongs to the interval that ended.
  void Add(double amount) {
    known_ = true;
    if (std::isfinite(amount) && amount > 0) value_ += amount;
  }
  Reading Get(Missing reason) const { return known_ ? Reading(value_) : Reading(reason); }

 private:
  double value_ = 0;
  bool known_ = false;
};

Missing ReasonOf(const Reading& reading) {
  return reading ? Missing::kNeverSampled : reading.missing();
}

// `interval_s` is 0 when the interval does not count.
void AddRatio(Total& total, const Reading& ratio, double interval_s) {
  if (ratio) total.Add(std::min(*ratio, 1.0) * interval_s);
}

struct DriverCounter {
  struct Sample {
    double value;
    SteadyTime time;
  };
  std::optional<Sample> last;
  Total total;

  void Add(const DriverRule& rule, const GpuReadings& readings, SteadyTime now, double interval_s,
           Duration gap_max) {
    const Reading gauge = readings.*rule.gauge;
    const Reading driver = rule.driver != nullptr ? readings.*rule.driver : Reading();
    if (last && now - last->time > gap_max) last.reset();
    if (!driver) {
      // While the driver's counter only pauses, its next reading holds this interval too.
      if (!last && gauge) total.Add(std::min(*gauge, rule.per_second_max) * interval_s);
      return;
    }
    total.Add(Delta(rule, *driver, gauge, now, interval_s));
    last = Sample{*driver, now};
  }

 private:
  double Delta(const DriverRule& rule, double value, const Reading& gauge, SteadyTime now,
               double interval_s) const {
    const double bridge = gauge ? std::min(*gauge, rule.per_second_max) * interval_s : 0;
    if (!last) return bridge;
    const double delta = value - last->value;
    const double delta_max = rule.per_second_max * (Seconds(now - last->time) + kCounterLagSeconds);
    return delta >= 0 && delta <= delta_max ? delta : bridge;
  }
};

struct ProcessKey {
  std::uint32_t pid;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
  bool operator==(const ProcessKey&) const = default;
};
struct ProcessKeyHash {
  std::size_t operator()(const ProcessKey& key) const {
    const std::uint64_t instances =
        (std::uint64_t{key.gpu_instance} << 16) ^ std::uint64_t{key.compute_instance};
    return std::hash<std::uint64_t>()((std::uint64_t{key.pid} << 32) ^ instances);
  }
};
ProcessKey KeyOf(const GpuProcess& process) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  return {process.pid, process.gpu_instance_id.value_or(kNone),
          process.compute_instance_id.value_or(kNone)};
}

struct ProcessState {
  Total sm_seconds;
  std::optional<Duration> start;  // since boot; another one under the same PID is another process
  std::uint64_t cycle = 0;        // the last one it was listed in
};

struct MigState {
  Total totals[std::size(kMigRules)];
  std::optional<SteadyTime> counted;  // the last snapshot it was read in
  std::uint64_t cycle = 0;            // the last one it was seen in
};

struct GpuState {
  Total ratios[std::size(kRatioRules)];
  Total rates[std::size(kRateRules)];
  DriverCounter driver[std::size(kDriverRules)];
  Total held_idle;
  Total observed;
  std::optional<SteadyTime> counted;  // the last snapshot that reached the GPU
  std::uint64_t cycle = 0;
  std::unordered_map<ProcessKey, ProcessState, ProcessKeyHash> processes;
  std::vector<XidCount> xids;  // by code
  std::optional<std::uint32_t> last_xid;
  WallTime last_xid_time;
};

// True when the driver reached the GPU in this snapshot. Recordings and other sources may lack
// `up`; then any of the basic readings tells.
bool Reached(const GpuReadings& readings) {
  if (readings.up) return *readings.up > 0;
  return readings.utilization_mean_ratio || readings.power_watts || readings.memory_used_bytes ||
         readings.temperature_celsius;
}

// Nothing busy in the whole interval, as far as anyone measured; nullopt when nobody did.
std::optional<bool> Idle(const GpuReadings& readings) {
  const bool sm_known = readings.sm_active_ratio.has_value();
  const bool sm_idle = sm_known && *readings.sm_active_ratio < Integrator::kIdleSmActiveRatioMax;
  if (readings.utilization_mean_ratio) {
    return *readings.utilization_mean_ratio <= 0 && (!sm_known || sm_idle);
  }
  if (sm_known) return sm_idle;
  return std::nullopt;
}

// A GPU that was lost before it could be asked has no UUID.
std::string KeyOf(const GpuIdentity& identity) {
  if (!identity.uuid.empty()) return identity.uuid;
  if (!identity.pci_bus_id.empty()) return "pci " + identity.pci_bus_id;
  return "index " + std::to_string(identity.index);
}

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
template <class State>
using StateMap = std::unordered_map<std::string, State, StringHash, std::equal_to<>>;

// The entry of `key`, made if need be; when there are too many, the one unseen for longest goes.
template <class State>
State& StateOf(StateMap<State>& states, std::string_view key, std::size_t states_max) {
  const auto found = states.find(key);
  if (found != states.end()) return found->second;
  if (states.size() >= states_max) {
    states.erase(std::min_element(states.begin(), states.end(), [](const auto& a, const auto& b) {
      return a.second.cycle < b.second.cycle;
    }));
  }
  return states[std::string(key)];
}

void CountXid(GpuState& state, const DriverEvent& event) {
  const auto code = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(event.data, std::numeric_limits<std::uint32_t>::max()));
  state.last_xid = code;
  state.last_xid_time = event.time;
  const auto position = [&state](std::uint32_t wanted) {
    return std::lower_bound(state.xids.begin(), state.xids.end(), wanted,
                            [](const XidCount& a, std::uint32_t b) { return a.xid < b; });
  };
  auto at = position(code);
  if (at == state.xids.end() || at->xid != code) {
    // One place is kept for code 0, "all others".
    const bool has_others = !state.xids.empty() && state.xids.front().xid == 0;
    const bool full = state.xids.size() - (has_others ? 1 : 0) + 1 >= kXidKindsMax;
    const std::uint32_t counted_as = full ? 0 : code;
    at = position(counted_as);
    if (at == state.xids.end() || at->xid != counted_as) {
      at = state.xids.insert(at, XidCount{counted_as, 0});
    }
  }
  ++at->count;
}

void IntegrateGpu(GpuState& state, const GpuReadings& readings, SteadyTime now, double interval_s,
                  Duration gap_max) {
  state.observed.Add(interval_s);
  for (std::size_t i = 0; i < std::size(kRatioRules); ++i) {
    AddRatio(state.ratios[i], readings.*kRatioRules[i].ratio, interval_s);
  }
  for (std::size_t i = 0; i < std::size(kRateRules); ++i) {
    const Reading& rate = readings.*kRateRules[i].per_second;
    if (rate) state.rates[i].Add(*rate * interval_s);
  }
  for (std::size_t i = 0; i < std::size(kDriverRules); ++i) {
    state.driver[i].Add(kDriverRules[i], readings, now, interval_s, gap_max);
  }
  const std::optional<bool> idle = Idle(readings);
  if (idle && readings.process_count) {
    state.held_idle.Add(*idle && *readings.process_count > 0 ? interval_s : 0);
  }
}

void CopyTotals(const GpuState& state, Gpu& gpu) {
  GpuReadings& readings = gpu.readings;
  for (std::size_t i = 0; i < std::size(kRatioRules); ++i) {
    readings.*kRatioRules[i].seconds_total =
        state.ratios[i].Get(ReasonOf(readings.*kRatioRules[i].ratio));
  }
  for (std::size_t i = 0; i < std::size(kRateRules); ++i) {
    readings.*kRateRules[i].total =
        state.rates[i].Get(ReasonOf(readings.*kRateRules[i].per_second));
  }
  for (std::size_t i = 0; i < std::size(kDriverRules); ++i) {
    // The gauge is the last resort, so its reason is why nothing is there.
    readings.*kDriverRules[i].total =
        state.driver[i].total.Get(ReasonOf(readings.*kDriverRules[i].gauge));
  }
  const Reading& idle_input =
      readings.process_count ? readings.utilization_mean_ratio : readings.process_count;
  readings.held_idle_seconds_total = state.held_idle.Get(ReasonOf(idle_input));
  readings.observed_seconds_total =
      state.observed.Get(readings.up ? Missing::kGpuLost : readings.up.missing());
  gpu.xids = state.xids;
  double events = 0;
  for (const XidCount& xid : state.xids) events += static_cast<double>(xid.count);
  const bool known = readings.observed_seconds_total.has_value() || events > 0;
  readings.xid_events_total = known ? Reading(events) : readings.observed_seconds_total;
  if (state.last_xid) {
    readings.last_xid = static_cast<double>(*state.last_xid);
    readings.last_xid_timestamp_seconds = Seconds(state.last_xid_time.time_since_epoch());
  } else {
    readings.last_xid = Missing::kNeverSampled;
    readings.last_xid_timestamp_seconds = Missing::kNeverSampled;
  }
}

void ApplyProcesses(GpuState& state, Gpu& gpu, std::uint64_t cycle, bool counts,
                    double interval_s) {
  for (GpuProcess& process : gpu.processes) {
    ProcessReadings& readings = process.readings;
    const ProcessKey key = KeyOf(process);
    auto found = state.processes.find(key);
    if (found == state.processes.end() && state.processes.size() < kProcessesPerGpuMax) {
      found = state.processes.emplace(key, ProcessState{}).first;
    }
    if (found == state.processes.end()) {
      readings.sm_utilization_seconds_total = Missing::kNeverSampled;
      continue;
    }
    ProcessState& entry = found->second;
    if (entry.start && process.start_after_boot && entry.start != process.start_after_boot) {
      entry = ProcessState{};
    }
    if (process.start_after_boot) entry.start = process.start_after_boot;
    if (counts && entry.cycle != cycle) {
      // A process that was not there before may have started at any time in the interval: its
      // samples stand for it all the same, they are a mean over the interval.
      AddRatio(entry.sm_seconds, readings.sm_utilization_ratio, interval_s);
    }
    entry.cycle = cycle;
    readings.sm_utilization_seconds_total =
        entry.sm_seconds.Get(ReasonOf(readings.sm_utilization_ratio));
  }
  // Only a list that was read says that a process has gone.
  if (!counts || !gpu.readings.process_count) return;
  std::erase_if(state.processes, [cycle](const auto& item) { return item.second.cycle != cycle; });
}

}  // namespace

struct Integrator::Impl {
  Duration gap_max = kGapMax;
  StateMap<GpuState> gpus;
  StateMap<MigState> mig;
  std::optional<SteadyTime> previous;
  std::uint64_t cycle = 0;
  std::string scratch;

  // Seconds that count for something last read at `counted`; 0 when it was not read in the previous
  // snapshot.
  double Interval(std::optional<SteadyTime> counted, SteadyTime now) const {
    if (!counted || counted != previous || now - *counted > gap_max) return 0;
    return Seconds(now - *counted);
  }

  std::string_view MigKey(const Gpu& gpu, const MigIdentity& identity) {
    if (!identity.uuid.empty()) return identity.uuid;
    scratch = KeyOf(gpu.identity);
    scratch += ' ' + std::to_string(identity.gpu_instance_id) + '/' +
               std::to_string(identity.compute_instance_id);
    return scratch;
  }

  void ApplyMig(Gpu& gpu, bool counts, SteadyTime now) {
    for (MigInstance& instance : gpu.mig) {
      MigReadings& readings = instance.readings;
      MigState& state = StateOf(mig, MigKey(gpu, instance.identity), kMigStatesMax);
      if (counts && state.counted != now) {
        const double interval_s = Interval(state.counted, now);
        for (std::size_t i = 0; i < std::size(kMigRules); ++i) {
          AddRatio(state.totals[i], readings.*kMigRules[i].ratio, interval_s);
        }
        state.counted = now;
      }
      state.cycle = cycle;
      for (std::size_t i = 0; i < std::size(kMigRules); ++i) {
        readings.*kMigRules[i].seconds_total =
            state.totals[i].Get(ReasonOf(readings.*kMigRules[i].ratio));
      }
    }
  }

  void ApplyGpu(Gpu& gpu, bool later, SteadyTime now) {
    GpuState& state = StateOf(gpus, KeyOf(gpu.identity), kGpuStatesMax);
    // The same GPU twice in one snapshot counts once.
    const bool counts = later && Reached(gpu.readings) && state.counted != now;
    double interval_s = 0;
    if (counts) {
      interval_s = Interval(state.counted, now);
      // After an interruption the driver's counters start from a new base as well.
      if (interval_s <= 0) {
        for (DriverCounter& counter : state.driver) counter.last.reset();
      }
      IntegrateGpu(state, gpu.readings, now, interval_s, gap_max);
      state.counted = now;
    }
    ApplyProcesses(state, gpu, cycle, counts, interval_s);
    ApplyMig(gpu, counts, now);
    state.cycle = cycle;
    CopyTotals(state, gpu);
  }
};

Integrator::Integrator(Duration interval) : impl_(std::make_unique<Impl>()) {
  impl_->gap_max = std::max(kGapMax, 3 * interval);
}
Integrator::~Integrator() = default;

void Integrator::Apply(Snapshot& snapshot) {
  Impl& impl = *impl_;
  const SteadyTime now = snapshot.steady;
  const bool later = !impl.previous || now > *impl.previous;
  ++impl.cycle;
  if (later) {
    for (const DriverEvent& event : snapshot.events) {
      if (event.kind != EventKind::kXid || event.gpu_uuid.empty()) continue;
      GpuState& state = StateOf(impl.gpus, event.gpu_uuid, kGpuStatesMax);
      state.cycle = impl.cycle;
      CountXid(state, event);
    }
  }
  for (Gpu& gpu : snapshot.gpus) impl.ApplyGpu(gpu, later, now);
  // An earlier time (a clock that started anew) is a new base: nothing is integrated up to it.
  if (!impl.previous || now != *impl.previous) impl.previous = now;
}

}  // namespace gpuassay
