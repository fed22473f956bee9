// `gpuassay explain util`: what utilisation means, shown by two scenarios in virtual time (M27).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/reading.h"

namespace gpuassay {

// What one GPU of the scenario tiny-kernels did in a minute, measured the way the agent measures.
struct UtilizationCase {
  std::uint32_t gpu = 0;
  std::string program;        // name of the process on it
  Reading utilization_ratio;  // as the driver samples it, mean of the minute
  Reading sm_active_ratio;    // mean of the minute
  Reading tensor_active_ratio;
  Reading power_watts, power_limit_watts;
};
// Runs the scenario that comes along. kMalformed when it is not there.
Result<std::vector<UtilizationCase>> MeasureTinyKernels();

// The kernels of the scenario kernel-trace, one by one.
struct KernelCase {
  std::vector<double> kernel_seconds;
  double window_seconds = 0;
  std::uint32_t windows = 0, windows_active = 0;
  double busy_seconds = 0, busy_ratio = 0;
  Reading sm_active_seconds;  // what the simulated driver's counters saw of it
};
Result<KernelCase> MeasureKernelTrace();

Result<std::string> ExplainUtilization();

}  // namespace gpuassay
