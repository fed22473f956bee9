// What the scenario's faults do to one GPU at one time.
#pragma once

#include <optional>
#include <vector>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

struct Conditions {
  double inlet_c = 25;
  bool fan_dead = false;
  double power_limit_w = 0;
  bool power_brake = false;
  std::optional<double> clock_locked_mhz;
  std::uint32_t pcie_generation = 0, pcie_width = 0;  // the most that the link can do
  double pcie_replays_per_second = 0;
  std::vector<const Fault*> links;  // nvlink_down and nvlink_errors that last now
  double ecc_corrected_per_second = 0;
  bool row_remap_pending = false, row_remap_failed = false;
  bool lost = false, reset_required = false, garbage = false, fabric_ready = true;
  double orphan_bytes = 0;
  const Fault* mig_layout = nullptr;  // the last that lasts; nullptr: as configured
};

inline Duration EndOf(const Fault& fault) {
  return fault.length == kForever ? kForever : fault.at + fault.length;
}
inline bool LastsAt(const Fault& fault, Duration t) { return fault.at <= t && t < EndOf(fault); }

// `faults` of this GPU.
Conditions ConditionsAt(const ScenarioGpu& gpu, const std::vector<const Fault*>& faults,
                        Duration t);

}  // namespace gpuassay::sim
