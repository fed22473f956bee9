#include "sources/simulator/real_time.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace gpuassay {

Duration ScaledClock::Elapsed() const {
  const Duration real = clock_.Steady() - steady_start_;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(real) *
                                              speed_);
}

bool RealTime::WaitUntil(Duration t) {
  // A hang for ever is one: only the end of the process ends it, as with the real driver.
  using Microseconds = std::chrono::duration<double, std::micro>;
  constexpr Microseconds kNapMin(100);
  constexpr Microseconds kNapMax = std::chrono::seconds(3600);
  while (clock_.Elapsed() < t) {
    const Microseconds left = t - clock_.Elapsed();
    std::this_thread::sleep_for(std::clamp(left / clock_.speed(), kNapMin, kNapMax));
  }
  return true;
}

}  // namespace gpuassay
