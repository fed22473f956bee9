#include "sources/nvml/process_utilization.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Sample = nvmlProcessUtilizationSample_t;

class ProcessUtilizationTest : public testing::Test {
 protected:
  ProcessUtilizationTest() {
    driver_.nvmlDeviceGetProcessUtilization = [this](nvmlDevice_t, Sample* samples,
                                                     unsigned int* count,
                                                     unsigned long long last_seen) -> nvmlReturn_t {
      last_seen_ = last_seen;
      if (code_ != NVML_SUCCESS) return code_;
      const unsigned int room = *count;
      *count = static_cast<unsigned int>(answer_.size());
      if (room < answer_.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
      if (answer_.empty()) return NVML_ERROR_NOT_FOUND;
      std::copy(answer_.begin(), answer_.end(), samples);
      return NVML_SUCCESS;
    };
    gpu_.processes.resize(2);
    gpu_.processes[0].pid = 10;
    gpu_.processes[1].pid = 20;
  }
  // The driver's stamp so long after the test's start.
  static unsigned long long At(milliseconds offset) {
    return 1'700'000'000'000'000ULL + static_cast<unsigned long long>(offset.count()) * 1000;
  }
  void ReadAt(milliseconds offset, std::vector<Sample> answer) {
    answer_ = std::move(answer);
    for (GpuProcess& process : gpu_.processes) process.readings = {};
    const Cycle cycle = {WallTime(seconds(1'700'000'000)) + offset, SteadyTime(offset)};
    calls_.BeginCycle();
    utilization_.Read(calls_, cycle, std::nullopt, gpu_);
  }
  Reading Sm(std::size_t process) const {
    return gpu_.processes[process].readings.sm_utilization_ratio;
  }

  FakeDriver driver_;
  NvmlLibrary library_ = *NvmlLibrary::FromResolver(driver_.Resolve(), "fake", nullptr);
  DeviceCalls calls_{library_, 0, FakeDriver::Handle(0)};
  ProcessUtilization utilization_;
  Gpu gpu_;
  std::vector<Sample> answer_;
  nvmlReturn_t code_ = NVML_SUCCESS;
  unsigned long long last_seen_ = 0;
};

TEST_F(ProcessUtilizationTest, UsesItsOwnLastSeenStamp) {
  ReadAt(seconds(1), {{10, At(milliseconds(900)), 40, 20, 3, 4}});
  EXPECT_EQ(last_seen_, 0U);
  ReadAt(seconds(2), {{10, At(milliseconds(1900)), 60, 30, 5, 6}});
  EXPECT_EQ(last_seen_, At(milliseconds(900)));
  EXPECT_EQ(Sm(0), Reading(0.6));
  EXPECT_EQ(gpu_.processes[0].readings.memory_utilization_ratio, Reading(0.3));
  EXPECT_EQ(gpu_.processes[0].readings.encoder_utilization_ratio, Reading(0.05));
  EXPECT_EQ(gpu_.processes[0].readings.decoder_utilization_ratio, Reading(0.06));
}

TEST_F(ProcessUtilizationTest, IsTrulyZeroWhenOnlyOthersHaveSamples) {
  ReadAt(seconds(1), {{10, At(milliseconds(900)), 40, 0, 0, 0}});
  EXPECT_EQ(Sm(1), Reading(0));
}

TEST_F(ProcessUtilizationTest, CountsTheQuietPeriodsOnceThePeriodIsKnown) {
  // Two samples of one process 200 ms apart: five periods a second.
  ReadAt(seconds(1),
         {{10, At(milliseconds(700)), 50, 0, 0, 0}, {10, At(milliseconds(900)), 50, 0, 0, 0}});
  EXPECT_NEAR(*Sm(0), 0.2, 1e-12);
  ReadAt(seconds(2), {{10, At(milliseconds(1300)), 50, 0, 0, 0},
                      {20, At(milliseconds(1300)), 50, 0, 0, 0},
                      {20, At(milliseconds(1500)), 100, 0, 0, 0}});
  EXPECT_NEAR(*Sm(0), 0.1, 1e-12);
  EXPECT_NEAR(*Sm(1), 0.3, 1e-12);
}

TEST_F(ProcessUtilizationTest, TakesOnlyTheNewestSecondOfTheFirstAnswer) {
  ReadAt(seconds(100),
         {{10, At(seconds(20)), 90, 0, 0, 0}, {10, At(milliseconds(99'900)), 30, 0, 0, 0}});
  EXPECT_EQ(Sm(0), Reading(0.3));
}

TEST_F(ProcessUtilizationTest, IsZeroWhenNobodyDidAnythingForASamplersPeriod) {
  ReadAt(seconds(1), {{10, At(milliseconds(900)), 40, 0, 0, 0}});
  ReadAt(seconds(2), {});
  EXPECT_EQ(Sm(0), Reading(0));
  EXPECT_EQ(Sm(1), Reading(0));
}

TEST_F(ProcessUtilizationTest, KeepsTheFormerValueWithinASamplersPeriod) {
  ReadAt(seconds(1), {{10, At(milliseconds(900)), 40, 0, 0, 0}});
  gpu_.processes[1].pid = 30;  // a new one
  ReadAt(milliseconds(1500), {});
  EXPECT_EQ(Sm(0), Reading(0.4));
  EXPECT_EQ(Sm(1), Reading(Missing::kNeverSampled));
  ReadAt(milliseconds(2000), {});  // a second after the last answer
  EXPECT_EQ(Sm(0), Reading(0));
}

TEST_F(ProcessUtilizationTest, IsUnknownWhenThereNeverWasASample) {
  ReadAt(seconds(1), {});
  EXPECT_EQ(Sm(0), Reading(Missing::kNeverSampled));
}

TEST_F(ProcessUtilizationTest, IsUnknownRightAfterAFailure) {
  ReadAt(seconds(1), {{10, At(milliseconds(900)), 40, 0, 0, 0}});
  code_ = NVML_ERROR_NO_PERMISSION;
  ReadAt(seconds(2), {});
  EXPECT_EQ(Sm(0), Reading(Missing::kNoPermission));
  code_ = NVML_SUCCESS;
  ReadAt(seconds(4), {});
  EXPECT_EQ(Sm(0), Reading(Missing::kNeverSampled));
}

TEST_F(ProcessUtilizationTest, RejectsMoreThanAHundredPercent) {
  ReadAt(seconds(1), {{10, At(milliseconds(900)), 4'000'000, 50, 0, 0},
                      {20, At(milliseconds(900)), 100, 0, 0, 0}});
  EXPECT_EQ(Sm(0), Reading(Missing::kImplausible));
  EXPECT_EQ(gpu_.processes[0].readings.memory_utilization_ratio, Reading(0.5));
  EXPECT_EQ(Sm(1), Reading(1));
}

TEST_F(ProcessUtilizationTest, IgnoresAndCountsPidsThatNoListContains) {
  ReadAt(seconds(1), {{5, At(milliseconds(900)), 80, 0, 0, 0},
                      {10, At(milliseconds(900)), 40, 0, 0, 0},
                      {15, At(milliseconds(900)), 80, 0, 0, 0},
                      {25, At(milliseconds(900)), 80, 0, 0, 0},
                      {0, 0, 0, 0, 0, 0}});
  EXPECT_EQ(Sm(0), Reading(0.4));
  EXPECT_EQ(Sm(1), Reading(0));
  EXPECT_EQ(utilization_.ignored_samples(), 3U);
}

TEST_F(ProcessUtilizationTest, GrowsItsBuffer) {
  std::vector<Sample> many;
  for (unsigned int pid = 1; pid <= 1000; ++pid)
    many.push_back({pid, At(milliseconds(900)), 1, 0, 0, 0});
  ReadAt(seconds(1), many);
  EXPECT_EQ(Sm(0), Reading(0.01));
  EXPECT_EQ(driver_.calls["nvmlDeviceGetProcessUtilization"], 2);
}

TEST_F(ProcessUtilizationTest, GoesOnAfterTheClockWasSetBack) {
  ReadAt(seconds(100), {{10, At(milliseconds(99'900)), 40, 0, 0, 0}});
  ReadAt(seconds(10), {{10, At(milliseconds(9'900)), 60, 0, 0, 0}});
  ReadAt(seconds(11), {{10, At(milliseconds(10'900)), 60, 0, 0, 0}});
  EXPECT_EQ(last_seen_, At(seconds(10)));
  EXPECT_EQ(Sm(0), Reading(0.6));
}

}  // namespace
}  // namespace gpuassay
