#include "sim/driver/real_time.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

namespace gpuassay::sim {
namespace {

class RealTime final : public TimeSource {
 public:
  RealTime(double speed, std::optional<WallTime> start) : speed_(speed), start_(start) {}

  Duration Now() override {
    std::call_once(started_, [this] { Start(); });
    return std::max(Duration(0), Scaled(clock_.Steady() - steady_zero_));
  }

  WallTime WallAt(Duration t) override {
    if (speed_ == 1) {
      return wall_zero_ + t;
    }
    return wall_zero_ + Duration(std::llround(static_cast<double>(t.count()) / speed_));
  }

  bool WaitUntil(Duration t) override {
    for (;;) {
      const Duration now = Now();
      if (t != kForever && now >= t) {
        return true;
      }
      // In pieces, so that no sum of times overflows.
      const Duration left = t == kForever ? kLongest : std::min(kLongest, t - now);
      const auto real_us = std::ceil(static_cast<double>(left.count()) / speed_);
      std::this_thread::sleep_for(Duration(static_cast<Duration::rep>(real_us)));
    }
  }

  double Speed() const override { return speed_; }

 private:
  static constexpr Duration kLongest = std::chrono::hours(1);

  // Scenario time runs on the steady clock: setting the wall clock does not move the story.
  void Start() {
    const WallTime wall = clock_.Wall();
    wall_zero_ = start_.value_or(wall);
    steady_zero_ = clock_.Steady() - (wall - wall_zero_);
  }

  Duration Scaled(Duration real) const {
    if (speed_ == 1) {
      return real;
    }
    return Duration(static_cast<Duration::rep>(static_cast<double>(real.count()) * speed_));
  }

  SystemClock clock_;
  double speed_;
  std::optional<WallTime> start_;
  std::once_flag started_;
  WallTime wall_zero_ = {};
  SteadyTime steady_zero_ = {};
};

}  // namespace

std::unique_ptr<TimeSource> MakeRealTime(double speed, std::optional<WallTime> start) {
  return std::make_unique<RealTime>(speed, start);
}

}  // namespace gpuassay::sim
