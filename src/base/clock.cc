#include "base/clock.h"

namespace gpuassay {

WallTime SystemClock::Wall() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

SteadyTime SystemClock::Steady() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

}  // namespace gpuassay
