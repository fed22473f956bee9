#include "sources/nvml/device.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

class DeviceTest : public testing::Test {
 protected:
  DeviceTest() {
    driver_.nvmlDeviceGetMaxPcieLinkWidth = [](nvmlDevice_t, unsigned int* width) {
      *width = 16;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetPowerUsage = [](nvmlDevice_t, unsigned int* mw) {
      *mw = 100'000;
      return NVML_SUCCESS;
    };
  }
  void ReadAt(int second, Duration stagger = seconds(0)) {
    const Cycle cycle = {WallTime(seconds(1'700'000'000 + second)), SteadyTime(seconds(second))};
    device_.Read(cycle, seconds(60), stagger, names_);
  }
  int SlowReadings() { return driver_.calls["nvmlDeviceGetMaxPcieLinkWidth"]; }

  FakeDriver driver_;
  NvmlLibrary library_ = *NvmlLibrary::FromResolver(driver_.Resolve(), "fake", nullptr);
  ProcessNames names_{library_};
  NvmlDevice device_{library_, 0, FakeDriver::Handle(0), "GPU-0"};
};

TEST_F(DeviceTest, TakesItsTurnWithTheSlowReadings) {
  ReadAt(0, seconds(45));
  EXPECT_EQ(SlowReadings(), 1);
  ReadAt(14, seconds(45));
  EXPECT_EQ(SlowReadings(), 1);
  ReadAt(15, seconds(45));
  EXPECT_EQ(SlowReadings(), 2);
  ReadAt(74, seconds(45));  // from then on at the full pace
  EXPECT_EQ(SlowReadings(), 2);
  ReadAt(75, seconds(45));
  EXPECT_EQ(SlowReadings(), 3);
}

TEST_F(DeviceTest, MakesNoCallsWhileUnreachable) {
  device_.Unreachable(NVML_ERROR_NO_PERMISSION);
  ReadAt(0);
  EXPECT_TRUE(driver_.calls.empty());
  EXPECT_EQ(device_.gpu().readings.up, Reading(Missing::kNoPermission));
  EXPECT_FALSE(device_.reachable());
  EXPECT_FALSE(device_.lost());
  device_.Found(2, FakeDriver::Handle(2));
  ReadAt(1);
  EXPECT_EQ(device_.gpu().identity.index, 2U);
  EXPECT_EQ(device_.gpu().readings.power_watts, Reading(100));
}

TEST_F(DeviceTest, ReadsSlowValuesAgainAfterItCouldNotBeRead) {
  ReadAt(0);
  device_.MarkUnread(Missing::kVersionMismatch);
  EXPECT_EQ(device_.gpu().readings.pcie_link_width_max, Reading(Missing::kVersionMismatch));
  ReadAt(1);
  EXPECT_EQ(device_.gpu().readings.pcie_link_width_max, Reading(16));
}

TEST_F(DeviceTest, StaysSkippedWhateverHappens) {
  device_.Skip(Missing::kTimedOut);
  ReadAt(0);
  device_.MarkUnread(Missing::kDriverError);
  EXPECT_TRUE(driver_.calls.empty());
  EXPECT_EQ(device_.gpu().readings.power_watts, Reading(Missing::kTimedOut));
}

}  // namespace
}  // namespace gpuassay
