// The instant of one reading, the same for everything in it.
#pragma once

#include "base/clock.h"

namespace gpuassay {

struct Cycle {
  WallTime wall;
  SteadyTime steady;
};

// The driver's time stamps: microseconds since 1970.
inline std::uint64_t DriverStamp(WallTime time) {
  const auto us = time.time_since_epoch().count();
  return us < 0 ? 0 : static_cast<std::uint64_t>(us);
}

}  // namespace gpuassay
