#include "sources/nvml/device_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using enum NvmlFunction;

class DeviceCallsTest : public testing::Test {
 protected:
  DeviceCallsTest() {
    driver_.nvmlDeviceGetClockInfo = [this](nvmlDevice_t, unsigned int type, unsigned int* mhz) {
      *mhz = 1000;
      return codes_[type];
    };
  }
  Reading Clock(unsigned int type) {
    return calls_.AskNumber<nvmlDeviceGetClockInfo>(1e6, type, type);
  }

  FakeDriver driver_;
  NvmlLibrary library_ = *NvmlLibrary::FromResolver(driver_.Resolve(), "fake", nullptr);
  DeviceCalls calls_{library_, 3, FakeDriver::Handle(0)};
  std::map<unsigned int, nvmlReturn_t> codes_;
};

TEST_F(DeviceCallsTest, RemembersWhatIsNotSupportedByVariant) {
  codes_[NVML_CLOCK_VIDEO] = NVML_ERROR_NOT_SUPPORTED;
  EXPECT_EQ(Clock(NVML_CLOCK_VIDEO), Reading(Missing::kNotSupported));
  EXPECT_EQ(Clock(NVML_CLOCK_VIDEO), Reading(Missing::kNotSupported));
  EXPECT_EQ(Clock(NVML_CLOCK_SM), Reading(1e9));
  EXPECT_EQ(driver_.calls["nvmlDeviceGetClockInfo"], 2);
  codes_.clear();
  calls_.ForgetRefusals();
  EXPECT_EQ(Clock(NVML_CLOCK_VIDEO), Reading(1e9));
}

TEST_F(DeviceCallsTest, StopsForTheCycleWhenTheGpuIsLost) {
  codes_[NVML_CLOCK_SM] = NVML_ERROR_GPU_IS_LOST;
  EXPECT_EQ(Clock(NVML_CLOCK_SM), Reading(Missing::kGpuLost));
  EXPECT_EQ(Clock(NVML_CLOCK_MEM), Reading(Missing::kGpuLost));
  EXPECT_EQ(driver_.calls["nvmlDeviceGetClockInfo"], 1);
  EXPECT_TRUE(calls_.lost());
  calls_.BeginCycle();
  EXPECT_FALSE(calls_.lost());
  EXPECT_EQ(Clock(NVML_CLOCK_MEM), Reading(1e9));
}

TEST_F(DeviceCallsTest, StopsForTheCycleAfterATimeOut) {
  codes_[NVML_CLOCK_SM] = NVML_ERROR_TIMEOUT;
  Clock(NVML_CLOCK_SM);
  EXPECT_EQ(Clock(NVML_CLOCK_MEM), Reading(Missing::kTimedOut));
  EXPECT_FALSE(calls_.lost());
}

TEST_F(DeviceCallsTest, GoesOnWhenAResetIsRequired) {
  codes_[NVML_CLOCK_SM] = NVML_ERROR_RESET_REQUIRED;
  EXPECT_EQ(Clock(NVML_CLOCK_SM), Reading(Missing::kResetRequired));
  EXPECT_EQ(Clock(NVML_CLOCK_MEM), Reading(1e9));
  EXPECT_TRUE(calls_.reset_required());
}

TEST_F(DeviceCallsTest, LogsAnUnexpectedErrorOncePerChange) {
  testing::internal::CaptureStderr();
  Clock(NVML_CLOCK_SM);
  codes_[NVML_CLOCK_SM] = NVML_ERROR_UNKNOWN;
  Clock(NVML_CLOCK_SM);
  Clock(NVML_CLOCK_SM);
  codes_[NVML_CLOCK_SM] = NVML_SUCCESS;
  Clock(NVML_CLOCK_SM);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 2);
  EXPECT_NE(log.find("warning: GPU 3: nvmlDeviceGetClockInfo: unknown error (999)\n"),
            std::string::npos);
  EXPECT_NE(log.find("info: GPU 3: nvmlDeviceGetClockInfo answers again\n"), std::string::npos);
}

TEST_F(DeviceCallsTest, RejectsTheBlankValue) {
  driver_.nvmlDeviceGetPowerUsage = [](nvmlDevice_t, unsigned int* mw) {
    *mw = 0xFFFFFFFF;
    return NVML_SUCCESS;
  };
  EXPECT_EQ(calls_.AskNumber<nvmlDeviceGetPowerUsage>(1e-3, 0), Reading(Missing::kImplausible));
}

TEST(RatioFromPercent, EndsAtAHundred) {
  EXPECT_EQ(RatioFromPercent(0), Reading(0));
  EXPECT_EQ(RatioFromPercent(100), Reading(1));
  EXPECT_EQ(RatioFromPercent(101), Reading(Missing::kImplausible));
}

}  // namespace
}  // namespace gpuassay
