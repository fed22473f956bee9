// Quantities that more than one function of NVML tells.
#pragma once

#include <cmath>

#include "sim/engine/engine.h"

namespace gpuassay::sim {

// What nvmlDeviceGetPowerUsage says: an average over a second or a moment, by model.
double ReportedPowerW(const DeviceState& gpu);
double ConfiguredLimitW(const DeviceState& gpu);
// Degrees left to the maximum operating temperature (T.Limit); negative above it.
int MarginC(const DeviceState& gpu);

// nvmlNvlinkVersion_t: NVML's own numbering.
std::uint32_t NvlinkVersionNumber(const DeviceState& gpu);

bool EccEnabled(const DeviceState& gpu);

}  // namespace gpuassay::sim
