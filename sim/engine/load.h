// What a program, a MIG instance or a GPU does during one tick, and what the driver's sampler sees
// of it (docs/simulator.md, "Activity" and "Utilisation").
#pragma once

#include <array>
#include <cstddef>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// The driver looks at the GPU this often inside its sample window; an instant counts as busy when
// a kernel ran at any time since the one before. Makes 1 us kernels at 1000/s read as 87 %.
inline constexpr double kSamplerSeconds = 0.00204;

// Means over a tick. Ratios of the device or MIG instance; bytes per second.
enum LoadIndex : std::size_t {
  kBusy,      // share of time with a kernel resident
  kResident,  // share of the sampler's instants that read busy
  kSmActive,
  kSmOccupancy,
  kTensor,
  kFp64,
  kFp32,
  kFp16,
  kInteger,
  kDram,
  kPcieTransmit,
  kPcieReceive,
  kNvlinkTransmit,
  kNvlinkReceive,
  kEncoder,
  kDecoder,
  kLoadCount,
};
using Load = std::array<double, kLoadCount>;

inline void AddScaled(Load& sum, const Load& part, double factor) {
  for (std::size_t i = 0; i < kLoadCount; ++i) {
    sum[i] += part[i] * factor;
  }
}

// The activity at `clock`, a share (0, 1] of the full SM clock. Kernels take 1/clock as long. Work
// that left the GPU time still gets done, at a higher busy share; work that did not falls behind,
// and its traffic with it.
Load LoadOf(const Activity& activity, double clock);

// Explicit kernels within [begin, end) of their phase. While one runs, every SM is active.
Load LoadOfKernels(const std::vector<Kernel>& kernels, Duration begin, Duration end);

// Programs on one GPU take turns: when they ask for more than all of the time, each gets its share.
// Returns the factor for each; `sum` becomes what the device does, with DRAM capped at its peak.
double ShareDevice(Load& sum);

}  // namespace gpuassay::sim
