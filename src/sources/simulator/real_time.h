// Scenario time that runs by itself: real time times a speed. The driver and the client of it see
// the same clock, so that rates come out per scenario second on both sides.
#pragma once

#include "base/clock.h"
#include "sim/driver/driver.h"

namespace gpuassay {

// `speed` > 0. Starts now, with the wall time of `clock`, which outlives it.
class ScaledClock final : public Clock {
 public:
  ScaledClock(const Clock& clock, double speed)
      : clock_(clock), speed_(speed), wall_start_(clock.Wall()), steady_start_(clock.Steady()) {}
  WallTime Wall() const override { return wall_start_ + Elapsed(); }
  SteadyTime Steady() const override { return SteadyTime(Elapsed()); }
  Duration Elapsed() const;
  WallTime wall_start() const { return wall_start_; }
  double speed() const { return speed_; }

 private:
  const Clock& clock_;
  double speed_;
  WallTime wall_start_;
  SteadyTime steady_start_;
};

class RealTime final : public sim::TimeSource {
 public:
  explicit RealTime(const ScaledClock& clock) : clock_(clock) {}
  Duration Now() override { return clock_.Elapsed(); }
  WallTime WallAt(Duration t) override { return clock_.wall_start() + t; }
  bool WaitUntil(Duration t) override;
  double Speed() const override { return clock_.speed(); }

 private:
  const ScaledClock& clock_;
};

}  // namespace gpuassay
