// The simulated driver as a source: the very same NVML client on the simulated driver in this
// process.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "sim/scenario/scenario.h"
#include "sources/source.h"

namespace gpuassay {

// Virtual time: the driver's time is the clock's steady time, and only the caller moves it. The
// clock outlives the source. One simulated driver per process at a time.
std::unique_ptr<Source> MakeSimulator(sim::Scenario scenario, VirtualClock& clock,
                                      std::string hostname);

// Real time times `speed`, starting now. For `--source simulator=FILE`.
std::unique_ptr<Source> MakeRealTimeSimulator(sim::Scenario scenario, const Clock& clock,
                                              double speed, std::string hostname);

}  // namespace gpuassay
