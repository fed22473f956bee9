#include "sources/nvml/utilization.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

class UtilizationTest : public testing::Test {
 protected:
  UtilizationTest() {
    driver_.nvmlDeviceGetSamples = [this](nvmlDevice_t, unsigned int type,
                                          unsigned long long last_seen, unsigned int* value_type,
                                          unsigned int* count, nvmlSample_t* samples) {
      EXPECT_EQ(type, 1U);
      last_seen_ = last_seen;
      *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
      unsigned int written = 0;
      for (const auto& [at, percent] : samples_) {
        if (at <= last_seen) continue;
        samples[written].timeStamp = at;
        samples[written++].sampleValue.uiVal = percent;
      }
      EXPECT_LE(written, *count);
      *count = written;
      return written > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
    };
  }
  Reading Mean(const Reading& current) {
    const Cycle cycle = {WallTime(seconds(1'700'000'000)), SteadyTime(seconds(1))};
    calls_.BeginCycle();
    return utilization_.Mean(calls_, cycle, current);
  }

  FakeDriver driver_;
  NvmlLibrary library_ = *NvmlLibrary::FromResolver(driver_.Resolve(), "fake", nullptr);
  DeviceCalls calls_{library_, 0, FakeDriver::Handle(0)};
  UtilizationSamples utilization_;
  std::vector<std::pair<unsigned long long, unsigned int>> samples_;
  unsigned long long last_seen_ = 0;
};

TEST_F(UtilizationTest, IsTheDriversValueAtFirstAndThenTheMeanOfWhatIsNew) {
  samples_ = {{1'000'000, 100}, {1'166'667, 100}};
  EXPECT_EQ(Mean(0.5), Reading(0.5));
  EXPECT_EQ(utilization_.period(), Duration(166'667));
  samples_.insert(samples_.end(), {{1'333'333, 0}, {1'500'000, 90}, {1'666'667, 60}});
  EXPECT_EQ(Mean(0.6), Reading(0.5));
  EXPECT_EQ(last_seen_, 1'166'667U);
}

TEST_F(UtilizationTest, IsTheDriversValueWhileNothingIsNew) {
  samples_ = {{1'000'000, 100}};
  Mean(0.5);
  EXPECT_EQ(Mean(0.7), Reading(0.7));
}

TEST_F(UtilizationTest, LeavesOutWhatCannotBeTrue) {
  samples_ = {{1'000'000, 100}};
  Mean(0.5);
  samples_ = {{2'000'000, 4'294'967'295U}, {2'166'667, 80}};
  EXPECT_EQ(Mean(0.5), Reading(0.8));
  samples_ = {{3'000'000, 101}};
  EXPECT_EQ(Mean(0.5), Reading(Missing::kImplausible));
}

TEST_F(UtilizationTest, IsTheDriversValueWhereThereAreNoSamples) {
  driver_.nvmlDeviceGetSamples = nullptr;
  EXPECT_EQ(Mean(0.4), Reading(0.4));
  EXPECT_EQ(Mean(Missing::kNotSupported), Reading(Missing::kNotSupported));
}

TEST_F(UtilizationTest, TellsWhyWhenTheSamplesFail) {
  driver_.nvmlDeviceGetSamples = [](nvmlDevice_t, unsigned int, unsigned long long, unsigned int*,
                                    unsigned int*,
                                    nvmlSample_t*) { return NVML_ERROR_NO_PERMISSION; };
  EXPECT_EQ(Mean(0.4), Reading(Missing::kNoPermission));
}

}  // namespace
}  // namespace gpuassay
