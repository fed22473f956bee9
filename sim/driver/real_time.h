// Scenario time that follows the machine's clock, for the library.
#pragma once

#include <memory>
#include <optional>

#include "sim/driver/driver.h"

namespace gpuassay::sim {

// `speed`: scenario seconds per second. `start`: the moment of scenario time 0; without it the
// first call of Now(). Time stamps are the caller's wall clock. Thread-safe.
std::unique_ptr<TimeSource> MakeRealTime(double speed, std::optional<WallTime> start);

}  // namespace gpuassay::sim
