#include "base/clock.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(VirtualClock, MovesOnlyWhenTold) {
  VirtualClock clock(WallTime(std::chrono::seconds(1000)));
  EXPECT_EQ(clock.Wall(), WallTime(std::chrono::seconds(1000)));
  clock.Advance(std::chrono::seconds(2));
  EXPECT_EQ(clock.Wall(), WallTime(std::chrono::seconds(1002)));
  EXPECT_EQ(clock.Steady(), SteadyTime(std::chrono::seconds(2)));
  clock.AdvanceTo(std::chrono::seconds(5));
  EXPECT_EQ(clock.Elapsed(), std::chrono::seconds(5));
}

TEST(SystemClock, DoesNotRunBackwards) {
  const SystemClock clock;
  const SteadyTime first = clock.Steady();
  EXPECT_GE(clock.Steady(), first);
  EXPECT_GT(clock.Wall(), WallTime(std::chrono::seconds(1'700'000'000)));
}

TEST(Seconds, AreFractional) { EXPECT_DOUBLE_EQ(Seconds(std::chrono::milliseconds(1500)), 1.5); }

}  // namespace
}  // namespace gpuassay
