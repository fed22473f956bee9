#include "sim/driver/driver.h"

namespace gpuassay::sim {
namespace {

class VirtualTime final : public TimeSource {
 public:
  explicit VirtualTime(VirtualClock& clock)
      : clock_(clock), start_(clock.Wall() - clock.Elapsed()) {}

  Duration Now() override { return clock_.Elapsed(); }
  WallTime WallAt(Duration t) override { return start_ + t; }
  bool WaitUntil(Duration t) override {
    if (t == kForever) {
      return false;
    }
    if (t > Now()) {
      clock_.AdvanceTo(t);
    }
    return true;
  }

 private:
  VirtualClock& clock_;
  WallTime start_;
};

}  // namespace

std::unique_ptr<TimeSource> MakeVirtualTime(VirtualClock& clock) {
  return std::make_unique<VirtualTime>(clock);
}

}  // namespace gpuassay::sim
