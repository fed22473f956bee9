// Time comes in as an argument. Two clocks are needed everywhere: the wall clock, which people and
// Prometheus read and which may jump, and the steady clock, which durations are made of.
#pragma once

#include <atomic>
#include <chrono>

namespace gpuassay {

using Duration = std::chrono::microseconds;
// Microseconds since 1970, UTC.
using WallTime = std::chrono::sys_time<Duration>;
// Microseconds since an origin that stays the same within one boot (or one simulation).
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Wall() const = 0;
  virtual SteadyTime Steady() const = 0;
};

// The machine's clock. Thread-safe.
class SystemClock final : public Clock {
 public:
  WallTime Wall() const override;
  SteadyTime Steady() const override;
};

// A clock that only moves when told to: simulations and tests. Thread-safe.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(WallTime start) : start_(start) {}
  WallTime Wall() const override { return start_ + Elapsed(); }
  SteadyTime Steady() const override { return SteadyTime(Elapsed()); }
  void Advance(Duration by) { elapsed_us_ += by.count(); }
  void AdvanceTo(Duration since_start) { elapsed_us_ = since_start.count(); }
  Duration Elapsed() const { return Duration(elapsed_us_.load()); }

 private:
  WallTime start_;
  std::atomic<Duration::rep> elapsed_us_ = 0;
};

// Seconds as a double, for metrics.
inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace gpuassay
