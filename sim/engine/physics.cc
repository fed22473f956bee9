#include "sim/engine/physics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gpuassay::sim {
namespace {

// Shares of (power limit - idle power) at the full clock. Set so that an H100 gives what public
// captures show: 114 W with a model loaded and no request, 632 W under a CUDA-core burn with 11 %
// of DRAM, the 700 W limit in training, 320 W when kernels are resident but do little.
constexpr double kAwakeShare = 0.07;
constexpr double kBusyShare = 0.05;
constexpr double kSmShare = 0.28;
constexpr double kLinkShare = 0.04;  // NVLink and PCIe at full rate
struct PipeShare {
  LoadIndex pipe;
  double share;
};
constexpr std::array<PipeShare, 6> kPipeShares = {{{kTensor, 0.75},
                                                   {kFp64, 0.55},
                                                   {kFp32, 0.55},
                                                   {kFp16, 0.50},
                                                   {kInteger, 0.25},
                                                   {kDram, 0.40}}};

// Dynamic power against the clock, per cycle of work: from public A100 runs at 1410 and 1050 MHz
// (ml-energy/zeus): 27 % more time, 26 % less energy.
constexpr double kClockExponent = 2.4;

// From a public 3 Hz trace of eight 700 W cards (karpathy/nanoGPT pull request 643): half of the
// rise comes within 4 s, the rest with about 30 s.
constexpr double kDieShare = 0.55;
constexpr double kDieSeconds = 1.5;
constexpr double kSinkSeconds = 30;
constexpr double kMemorySeconds = 40;
constexpr double kMemoryOffsetC = 5;

constexpr double kFanNominalPercent = 70;  // where thermal_rise_c holds
constexpr double kDeadFanFactor = 2.5;

double ResistanceCPerW(const GpuModel& model) {
  return model.thermal_rise_c / model.power_limit_default_w;
}

double SteadyMemory(const GpuModel& model, double power_w, double dram, const Cooling& cooling) {
  return cooling.inlet_c + kMemoryOffsetC +
         ResistanceCPerW(model) * cooling.resistance_factor *
             (0.5 * power_w + 0.5 * dram * model.power_limit_default_w);
}

void Approach(double target, double seconds, double constant, double& value) {
  value += (target - value) * (1 - std::exp(-seconds / constant));
}

}  // namespace

double PowerW(const GpuModel& model, const Load& load, double clock, bool awake) {
  double share = (awake ? kAwakeShare : 0) + kBusyShare * load[kBusy] + kSmShare * load[kSmActive];
  for (const PipeShare& pipe : kPipeShares) {
    share += pipe.share * load[pipe.pipe];
  }
  const double nvlink =
      static_cast<double>(model.nvlink_links) * model.nvlink_bytes_per_second_per_link;
  if (nvlink > 0) {
    share +=
        kLinkShare * std::min(1.0, (load[kNvlinkTransmit] + load[kNvlinkReceive]) / 2 / nvlink);
  }
  const double pcie = PcieBytesPerSecond(model.pcie_generation, model.pcie_width);
  share += kLinkShare * std::min(1.0, (load[kPcieTransmit] + load[kPcieReceive]) / 2 / pcie);
  return model.power_idle_w + (model.power_limit_default_w - model.power_idle_w) * share *
                                  std::pow(clock, kClockExponent);
}

Heat SteadyHeat(const GpuModel& model, double power_w, double dram, const Cooling& cooling) {
  const double rise = ResistanceCPerW(model) * cooling.resistance_factor * power_w;
  return {rise * kDieShare, cooling.inlet_c + rise * (1 - kDieShare),
          SteadyMemory(model, power_w, dram, cooling)};
}

void Step(const GpuModel& model, double power_w, double dram, const Cooling& cooling,
          double seconds, Heat& heat) {
  const Heat steady = SteadyHeat(model, power_w, dram, cooling);
  Approach(steady.die_rise_c, seconds, kDieSeconds, heat.die_rise_c);
  Approach(steady.sink_c, seconds, kSinkSeconds, heat.sink_c);
  Approach(steady.memory_c, seconds, kMemorySeconds, heat.memory_c);
}

double FanPercent(const GpuModel& model, double temperature_c, bool dead) {
  if (!model.features.fan || dead) {
    return 0;
  }
  return std::clamp(30 + (temperature_c - 45) * 1.5, 30.0, 100.0);
}

double CoolingFactor(const GpuModel& model, double fan_percent, bool dead) {
  if (!model.features.fan) {
    return 1;
  }
  return dead ? kDeadFanFactor : std::pow(kFanNominalPercent / std::max(fan_percent, 20.0), 0.35);
}

double PcieBytesPerSecond(std::uint32_t generation, std::uint32_t width) {
  constexpr std::array<double, 8> kPerLane = {0,       0.25e9,  0.5e9,  0.985e9,
                                              1.969e9, 3.938e9, 7.56e9, 15.1e9};
  return kPerLane[std::min<std::size_t>(generation, kPerLane.size() - 1)] *
         static_cast<double>(width);
}

double ClockStep(const GpuModel& model, double mhz) {
  constexpr double kStepMhz = 15;
  if (mhz >= model.sm_clock_max_mhz) {
    return model.sm_clock_max_mhz;
  }
  return std::max(model.sm_clock_idle_mhz, std::floor(mhz / kStepMhz) * kStepMhz);
}

}  // namespace gpuassay::sim
