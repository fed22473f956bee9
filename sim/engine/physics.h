// Power, heat and clocks of one GPU (docs/simulator.md). Pure functions of a model and numbers.
#pragma once

#include "sim/engine/load.h"
#include "sim/models/gpu_model.h"

namespace gpuassay::sim {

// Power of the moment. `clock` is a share of the full SM clock; `awake`: clocks are up, even when
// no kernel runs.
double PowerW(const GpuModel& model, const Load& load, double clock, bool awake);

// Two stages: the die against the heat sink follows within seconds, the heat sink against the air
// within half a minute.
struct Heat {
  double die_rise_c = 0;  // of the die over the heat sink
  double sink_c = 0;      // the heat sink
  double memory_c = 0;    // the memory
  double temperature_c() const { return sink_c + die_rise_c; }
};
struct Cooling {
  double inlet_c = 25;
  double resistance_factor = 1;  // on the model's thermal resistance
};
Heat SteadyHeat(const GpuModel& model, double power_w, double dram, const Cooling& cooling);
void Step(const GpuModel& model, double power_w, double dram, const Cooling& cooling,
          double seconds, Heat& heat);

// Fan of an actively cooled card at a temperature, in percent, and the factor on the thermal
// resistance that it gives. Passively cooled: 0 and 1.
double FanPercent(const GpuModel& model, double temperature_c, bool dead);
double CoolingFactor(const GpuModel& model, double fan_percent, bool dead);

// One direction, after encoding.
double PcieBytesPerSecond(std::uint32_t generation, std::uint32_t width);

// SM clocks come in steps of 15 MHz, and never below the idle clock.
double ClockStep(const GpuModel& model, double mhz);

}  // namespace gpuassay::sim
