#include "sim/engine/conditions.h"

#include <algorithm>

namespace gpuassay::sim {
namespace {

void Apply(const Fault& fault, Conditions& now) {
  switch (fault.kind) {
    case FaultKind::kHotInlet:
      now.inlet_c = fault.value;
      break;
    case FaultKind::kFanDead:
      now.fan_dead = true;
      break;
    case FaultKind::kPowerCap:
      now.power_limit_w = std::min(now.power_limit_w, fault.value);
      break;
    case FaultKind::kPowerBrake:
      now.power_brake = true;
      break;
    case FaultKind::kClocksLocked:
      now.clock_locked_mhz = fault.value;
      break;
    case FaultKind::kPcieGeneration:
      now.pcie_generation = std::min(now.pcie_generation, static_cast<std::uint32_t>(fault.value));
      break;
    case FaultKind::kPcieWidth:
      now.pcie_width = std::min(now.pcie_width, static_cast<std::uint32_t>(fault.value));
      break;
    case FaultKind::kPcieReplays:
      now.pcie_replays_per_second += fault.value;
      break;
    case FaultKind::kNvlinkDown:
    case FaultKind::kNvlinkErrors:
      now.links.push_back(&fault);
      break;
    case FaultKind::kEccCorrected:
      now.ecc_corrected_per_second += fault.value;
      break;
    case FaultKind::kRowRemapPending:
      now.row_remap_pending = true;
      break;
    case FaultKind::kRowRemapFailed:
      now.row_remap_failed = true;
      break;
    case FaultKind::kGpuLost:
      now.lost = true;
      break;
    case FaultKind::kResetRequired:
      now.reset_required = true;
      break;
    case FaultKind::kGarbage:
      now.garbage = true;
      break;
    case FaultKind::kMigReconfigure:
      now.mig_layout = &fault;
      break;
    case FaultKind::kMemoryLeakOrphan:
      now.orphan_bytes += fault.value;
      break;
    case FaultKind::kFabricNotReady:
      now.fabric_ready = false;
      break;
    case FaultKind::kEccUncorrected:  // moments: the device's events
    case FaultKind::kXid:
    case FaultKind::kDriverHang:  // the driver's, not the GPU's
    case FaultKind::kVersionMismatch:
    case FaultKind::kPermissionDenied:
      break;
  }
}

}  // namespace

Conditions ConditionsAt(const ScenarioGpu& gpu, const std::vector<const Fault*>& faults,
                        Duration t) {
  Conditions now;
  now.inlet_c = gpu.inlet_c;
  now.power_limit_w = gpu.power_limit_w.value_or(gpu.model->power_limit_default_w);
  now.pcie_generation = gpu.model->pcie_generation;
  now.pcie_width = gpu.model->pcie_width;
  for (const Fault* fault : faults) {
    if (LastsAt(*fault, t)) {
      Apply(*fault, now);
    }
  }
  return now;
}

}  // namespace gpuassay::sim
