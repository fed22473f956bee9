#include "sources/simulator/real_time.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

using std::chrono::seconds;

TEST(ScaledClock, RunsFasterFromTheSameStart) {
  VirtualClock clock(WallTime(seconds(1'800'000'000)));
  clock.Advance(seconds(100));
  const ScaledClock scaled(clock, 10);
  EXPECT_EQ(scaled.Wall(), WallTime(seconds(1'800'000'100)));
  clock.Advance(seconds(3));
  EXPECT_EQ(scaled.Elapsed(), seconds(30));
  EXPECT_EQ(scaled.Steady(), SteadyTime(seconds(30)));
  EXPECT_EQ(scaled.Wall(), WallTime(seconds(1'800'000'130)));
}

TEST(RealTime, IsTheTimeOfItsClock) {
  VirtualClock clock(WallTime(seconds(1'800'000'000)));
  const ScaledClock scaled(clock, 0.5);
  RealTime time(scaled);
  clock.Advance(seconds(8));
  EXPECT_EQ(time.Now(), seconds(4));
  EXPECT_EQ(time.WallAt(seconds(6)), WallTime(seconds(1'800'000'006)));
  EXPECT_EQ(time.Speed(), 0.5);
  EXPECT_TRUE(time.WaitUntil(seconds(4)));  // has passed: does not wait
}

}  // namespace
}  // namespace gpuassay
