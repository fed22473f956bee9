// How one device (a GPU, or a MIG instance) is divided over the processes on it, at one instant.
// Pure. docs/attribution.md explains the method to people.
//
// The measure is the driver's sampled SM time per process. On a time-sliced GPU one process runs at
// a time, so the samples of all add up to the utilisation of the device. Under MPS they overlap and
// add up to more: all are scaled down alike. A process that is alone on its device needs no
// samples: what the device did is its doing. Where neither holds, the parts are unknown and stay
// so.
#pragma once

#include <cstddef>
#include <vector>

#include "model/snapshot.h"

namespace gpuassay {

// A device and who is on it.
struct SharedDevice {
  // Share of time in which it was busy: utilization_mean_ratio of a GPU; of a MIG instance
  // graphics_engine_active_ratio, else sm_active_ratio.
  Reading busy;
  Reading memory_used_bytes;
  std::vector<const GpuProcess*> processes;
  bool processes_complete = true;  // false: the list was not read, or was too long
};

// Parts of the device's doing, in the order of SharedDevice::processes. What is not known is
// missing with a reason; the known ones and `unattributed` add up to 1, whatever the device did.
struct DeviceSplit {
  std::vector<Reading> fraction;
  double unattributed_fraction = 1;
  // Of the time of the device: fraction x busy. With the unattributed part they add up to `busy`.
  std::vector<Reading> busy;
  Reading unattributed_busy;
  // Bytes. With the unattributed part they add up to memory_used_bytes.
  std::vector<Reading> memory_bytes;
  Reading unattributed_memory_bytes;
};

// smUtil comes in whole percent: that much per active process may be rounding, and is spread over
// all of them in proportion.
inline constexpr double kRoundingPerProcess = 0.01;

DeviceSplit SplitDevice(const SharedDevice& device);

// Share of the GPU's work that each MIG instance did: activity times SMs, all adding up to 1; 0 for
// all when none was active. `occupied[i]`: a process is on it. An instance that cannot be read did
// nothing when nobody is on it, and everything when nobody is on any other; else no share is known
// (kNotSeparable for all). One without a count of SMs counts by its slices.
std::vector<Reading> SplitOverInstances(const std::vector<MigInstance>& instances,
                                        const std::vector<bool>& occupied);

}  // namespace gpuassay
