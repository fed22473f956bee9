// The order of one tick: faults, layout, programs, clocks (and with them loads and power), heat,
// energy, counters, samples.
#include "sim/engine/device.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/identifiers.h"

namespace gpuassay::sim {
namespace {

constexpr std::uint32_t kIdleAfterTicks = 18;  // 3 s without work
constexpr double kCoolMarginC = 2;             // a thermal slowdown ends this far below its start
constexpr double kThermalDownMhz = 60;         // per tick above the threshold
constexpr double kThermalUpMhz = 15;           // per tick below it
constexpr double kThermalFloor = 0.5;          // of the full clock
constexpr double kHardwareSlowdown = 0.5;      // of the clock
constexpr double kPowerBrakeSlowdown = 0.5;    // of the clock
constexpr int kCapRounds = 4;
constexpr double kCapExponent = 1 / 2.4;

}  // namespace

Device::Device(const Scenario& scenario, std::uint32_t index)
    : scenario_(&scenario), model_(scenario.gpus[index].model), index_(index) {
  for (const Fault& fault : scenario.faults) {
    if (fault.gpu.value_or(index) == index) {
      faults_.push_back(&fault);
    }
  }
  for (const ScenarioProcess& process : scenario.processes) {
    if (std::ranges::find(process.gpus, index) != process.gpus.end()) {
      programs_.push_back({Timeline(process), false, {}, 0});
    }
  }
  std::ranges::stable_sort(programs_, {},
                           [](const Program& p) { return p.timeline.process().pid; });
  window_programs_.resize(programs_.size());
  thermal_ceiling_mhz_ = model_->sm_clock_max_mhz;
}

DeviceState Device::Start() {
  DeviceState state;
  const ScenarioGpu& gpu = scenario_->gpus[index_];
  const std::uint64_t key = Mix(scenario_->seed) + index_;
  state.index = index_;
  state.model = model_;
  state.config = gpu;
  state.config.uuid = GpuUuid(*scenario_, index_);
  if (gpu.serial.empty()) {
    state.config.serial = MakeSerial(key);
  }
  if (gpu.pci_bus_id.empty()) {
    state.config.pci_bus_id = MakeBusId(index_);
  }
  state.links.resize(model_->nvlink_links);
  link_bytes_.resize(model_->nvlink_links);
  state.mig_enabled = gpu.mig_enabled;
  conditions_ = ConditionsAt(gpu, faults_, Duration::zero());
  heat_ = SteadyHeat(
      *model_, model_->power_idle_w, 0,
      {conditions_.inlet_c, CoolingFactor(*model_, FanPercent(*model_, 0, false), false)});
  state.power_limit_w = conditions_.power_limit_w;
  state.power_w = model_->power_idle_w;
  state.power_average_w = model_->power_idle_w;
  state.sm_clock_mhz = model_->sm_clock_idle_mhz;
  state.memory_clock_mhz = model_->memory_clock_idle_mhz;
  state.video_clock_mhz = model_->video_clock_idle_mhz;
  state.performance_state = model_->clocks_idle_in_p0 ? 0 : 8;
  state.clock_event_reasons = kReasonIdle;
  state.temperature_c = heat_.temperature_c();
  if (model_->features.memory_temperature) {
    state.memory_temperature_c = heat_.memory_c;
  }
  state.fan_percent = FanPercent(*model_, state.temperature_c, conditions_.fan_dead);
  UpdateFaults(Duration(-1), Duration::zero(), state);
  UpdateMig(Duration::zero(), state);
  UpdatePrograms(Duration::zero(), state);
  UpdateMemory(state);
  UpdateIdle(state);
  return state;
}

void Device::Advance(std::uint64_t tick, DeviceState& state) {
  const Duration begin = TickTime(tick - 1);
  const Duration end = TickTime(tick);
  tick_ = tick;
  tick_seconds_ = Seconds(end - begin);
  UpdateFaults(begin, end, state);
  UpdateMig(end, state);
  UpdatePrograms(end, state);
  if (state.lost) {
    return;  // off the bus: nobody can see what it does, and nothing counts on
  }
  UpdateClocks(begin, end, state);
  UpdateHeat(state);
  UpdateIdle(state);
  UpdateEnergy(state);
  CountLinks(state);
  UpdateHealth(state);
  UpdateTotals(state);
  UpdateSamples(end, state);
  UpdateMemory(state);
}

double Device::Noise(NoiseChannel channel) const {
  return scenario_->noise * Gauss(HashOf(scenario_->seed, index_, channel, tick_));
}

bool Device::Runs(const Program& program, Duration at, const DeviceState& state) const {
  const ScenarioProcess& process = program.timeline.process();
  if (!program.timeline.Alive(at)) {
    return false;
  }
  if (!state.mig_enabled) {
    return true;
  }
  // A new layout ends what ran on the old one.
  return process.mig_index && *process.mig_index < state.mig.size() &&
         (mig_generation_ == 0 || process.start >= mig_since_);
}

std::size_t Device::ShareOf(const Program& program) const {
  return program.timeline.process().mig_index.value_or(0);
}

void Device::UpdatePrograms(Duration at, DeviceState& state) {
  bool changed = false;
  for (Program& program : programs_) {
    const bool alive = Runs(program, at, state);
    changed = changed || alive != program.alive;
    program.alive = alive;
    program.memory_bytes =
        alive ? MemoryOf(program.timeline.process().memory, at - program.timeline.process().start)
              : 0;
  }
  if (!changed) {
    return;
  }
  state.processes.clear();
  for (const Program& program : programs_) {
    const ScenarioProcess& process = program.timeline.process();
    if (program.alive) {
      state.processes.push_back({process.pid, process.name, process.type, 0, process.mig_index});
    }
  }
}

void Device::UpdateMemory(DeviceState& state) {
  double used = conditions_.orphan_bytes;
  for (MigState& instance : state.mig) {
    instance.memory_used_bytes = 0;
  }
  auto out = state.processes.begin();
  for (const Program& program : programs_) {
    if (!program.alive) {
      continue;
    }
    const auto bytes = static_cast<std::uint64_t>(std::llround(program.memory_bytes));
    (out++)->memory_bytes = bytes;
    used += static_cast<double>(bytes);
    if (!state.mig.empty()) {
      MigState& instance = state.mig[ShareOf(program)];
      instance.memory_used_bytes =
          std::min(instance.memory_total_bytes, instance.memory_used_bytes + bytes);
    }
  }
  const double most = static_cast<double>(model_->memory_bytes - model_->memory_reserved_bytes);
  state.memory_used_bytes = static_cast<std::uint64_t>(std::llround(std::min(used, most)));
}

void Device::UpdateLoads(Duration begin, Duration end, double clock) {
  for (Share& share : shares_) {
    share.load = {};
    share.not_resident = 1;
  }
  for (Program& program : programs_) {
    if (!program.alive) {
      continue;
    }
    program.load = program.timeline.Mean(begin, end, clock);
    Share& share = shares_[ShareOf(program)];
    AddScaled(share.load, program.load, 1);
    share.not_resident *= 1 - program.load[kResident];
  }
  SumShares();
}

void Device::SumShares() {
  load_ = {};
  double not_busy = 1;
  double not_resident = 1;
  for (Share& share : shares_) {
    share.done = share.load;
    share.part = ShareDevice(share.done);
    share.done[kResident] = std::max(share.done[kBusy], 1 - share.not_resident);
    for (std::size_t i = kSmActive; i <= kInteger; ++i) {
      load_[i] += share.done[i] * share.sm;
    }
    load_[kDram] += share.done[kDram] * share.dram;
    for (std::size_t i = kPcieTransmit; i < kLoadCount; ++i) {
      load_[i] += share.done[i];
    }
    not_busy *= 1 - share.done[kBusy];
    not_resident *= 1 - share.done[kResident];
  }
  load_[kBusy] = 1 - not_busy;
  load_[kResident] = 1 - not_resident;
  WaitForLinks();
}

// Work that needs more of a link than there is falls behind as a whole. Waiting for PCIe, the GPU
// stands idle; waiting for NVLink, collective kernels spin and stay resident.
void Device::WaitForLinks() {
  const auto left = [](double demand, double room) { return demand > room ? room / demand : 1.0; };
  const double pcie =
      std::min(left(load_[kPcieTransmit], pcie_room_), left(load_[kPcieReceive], pcie_room_));
  const double nvlink = std::min(left(load_[kNvlinkTransmit], nvlink_room_),
                                 left(load_[kNvlinkReceive], nvlink_room_));
  if (pcie >= 1 && nvlink >= 1) {
    return;
  }
  const auto slow = [&](Load& load) {
    for (std::size_t i = 0; i < kEncoder; ++i) {
      load[i] *= i == kBusy || i == kResident ? pcie : pcie * nvlink;
    }
  };
  slow(load_);
  for (Share& share : shares_) {
    slow(share.done);
    share.part *= pcie * nvlink;
  }
}

// What the clock should be before the power cap; sets the reasons for less than the full clock.
double Device::TargetClock(DeviceState& state) {
  double mhz = model_->sm_clock_max_mhz;
  if (conditions_.clock_locked_mhz && *conditions_.clock_locked_mhz < mhz) {
    mhz = *conditions_.clock_locked_mhz;
    state.clock_event_reasons |= kReasonApplicationClocks;
  }
  if (thermal_ceiling_mhz_ < mhz) {
    mhz = thermal_ceiling_mhz_;
    state.clock_event_reasons |= kReasonSoftwareThermal;
  }
  if (hardware_thermal_) {
    mhz = std::min(mhz, model_->sm_clock_max_mhz * kHardwareSlowdown);
    state.clock_event_reasons |= kReasonHardwareSlowdown | kReasonHardwareThermal;
  }
  if (conditions_.power_brake) {
    mhz = std::min(mhz, model_->sm_clock_max_mhz * kPowerBrakeSlowdown);
    state.clock_event_reasons |= kReasonHardwareSlowdown | kReasonPowerBrake;
  }
  return ClockStep(*model_, mhz);
}

// Lowers the clock until the power is within the limit. The loads are those at `mhz`.
double Device::CapPower(Duration begin, Duration end, double mhz, DeviceState& state) {
  const double limit = conditions_.power_limit_w;
  for (int round = 0; round < kCapRounds; ++round) {
    const double clock = mhz / model_->sm_clock_max_mhz;
    if (round > 0) {
      UpdateLoads(begin, end, clock);
    }
    state.power_w = PowerW(*model_, load_, clock, awake_);
    if (state.power_w <= limit || mhz <= model_->sm_clock_idle_mhz) {
      break;
    }
    state.clock_event_reasons |= kReasonSoftwarePowerCap;
    const double room = std::max(0.0, limit - model_->power_idle_w);
    const double factor = std::pow(room / (state.power_w - model_->power_idle_w), kCapExponent);
    mhz = ClockStep(*model_, std::min(mhz * factor, mhz - 1));
  }
  state.power_w = std::min(state.power_w, std::max(limit, model_->power_idle_w));
  return mhz;
}

void Device::UpdateClocks(Duration begin, Duration end, DeviceState& state) {
  state.clock_event_reasons = 0;
  state.power_limit_w = conditions_.power_limit_w;
  const double target_mhz = TargetClock(state);
  UpdateLoads(begin, end, target_mhz / model_->sm_clock_max_mhz);
  const bool work = load_[kBusy] > 0 || load_[kEncoder] > 0 || load_[kDecoder] > 0;
  // A data-centre card keeps its clocks up as long as a program holds a context.
  const bool held = !model_->features.fan && !state.processes.empty();
  quiet_ticks_ = work || held ? 0 : quiet_ticks_ + 1;
  awake_ = work || held || (awake_ && quiet_ticks_ < kIdleAfterTicks);
  if (awake_) {
    state.sm_clock_mhz = CapPower(begin, end, target_mhz, state);
  } else {
    state.sm_clock_mhz = model_->sm_clock_idle_mhz;
    state.power_w = PowerW(*model_, load_, 1, false);
    state.clock_event_reasons = kReasonIdle;
  }
  const auto count = [&](std::uint64_t bit, double& seconds) {
    seconds += (state.clock_event_reasons & bit) != 0 ? tick_seconds_ : 0;
  };
  count(kReasonIdle, state.low_utilization_seconds);
  count(kReasonSoftwarePowerCap, state.power_cap_seconds);
  count(kReasonSoftwareThermal, state.software_thermal_seconds);
  count(kReasonHardwareThermal, state.hardware_thermal_seconds);
  count(kReasonPowerBrake, state.power_brake_seconds);
}

// Clocks other than the SM's, P-state and PCIe generation follow sleep.
void Device::UpdateIdle(DeviceState& state) {
  const std::uint32_t before = state.performance_state;
  const std::uint32_t awake_state = model_->features.fan ? 2 : 0;
  state.performance_state = awake_ ? awake_state : (model_->clocks_idle_in_p0 ? 0 : 8);
  if (before != state.performance_state && tick_ > 0) {
    constexpr std::uint64_t kPerformanceStateEvent = 0x4;
    Emit(TickTime(tick_), kPerformanceStateEvent, state.performance_state);
  }
  state.memory_clock_mhz = awake_ ? model_->memory_clock_max_mhz : model_->memory_clock_idle_mhz;
  state.video_clock_mhz = awake_ ? model_->video_clock_max_mhz : model_->video_clock_idle_mhz;
  const bool slow_link = model_->pcie_idles_down && !awake_;
  state.pcie_generation = slow_link ? 1 : conditions_.pcie_generation;
  state.pcie_width = conditions_.pcie_width;
}

void Device::UpdateHeat(DeviceState& state) {
  const bool dead = conditions_.fan_dead;
  state.fan_percent = FanPercent(*model_, heat_.temperature_c(), dead);
  Step(*model_, state.power_w, load_[kDram],
       {conditions_.inlet_c, CoolingFactor(*model_, state.fan_percent, dead)}, tick_seconds_,
       heat_);
  const double temperature = heat_.temperature_c();
  state.temperature_c = temperature * (1 + Noise(NoiseChannel::kTemperature));
  if (model_->features.memory_temperature) {
    state.memory_temperature_c = heat_.memory_c * (1 + Noise(NoiseChannel::kMemoryTemperature));
  }
  const double full = model_->sm_clock_max_mhz;
  if (temperature >= model_->temperature_max_operating_c) {
    thermal_ceiling_mhz_ = std::max(full * kThermalFloor, thermal_ceiling_mhz_ - kThermalDownMhz);
  } else if (temperature < model_->temperature_max_operating_c - kCoolMarginC) {
    thermal_ceiling_mhz_ = std::min(full, thermal_ceiling_mhz_ + kThermalUpMhz);
  }
  if (temperature >= model_->temperature_slowdown_c) {
    hardware_thermal_ = true;
  } else if (temperature < model_->temperature_slowdown_c - kCoolMarginC) {
    hardware_thermal_ = false;
  }
  shut_down_ = shut_down_ || temperature >= model_->temperature_shutdown_c;
}

void Device::UpdateEnergy(DeviceState& state) {
  state.power_w *= 1 + Noise(NoiseChannel::kPower);
  powers_[tick_ % powers_.size()] = state.power_w;
  powers_count_ = std::min(powers_count_ + 1, powers_.size());
  double sum = 0;
  for (const double power : powers_) {
    sum += power;
  }
  state.power_average_w = sum / static_cast<double>(powers_count_);
  state.energy_j += state.power_w * tick_seconds_;
}

}  // namespace gpuassay::sim
