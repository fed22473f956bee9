#include "sources/nvml/gpm.h"

#include <gtest/gtest.h>

#include <limits>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class GpmTest : public testing::Test {
 protected:
  GpmTest() {
    driver_.nvmlGpmQueryDeviceSupport = [](nvmlDevice_t, nvmlGpmSupport_t* support) {
      EXPECT_EQ(support->version, 1U);
      support->isSupportedDevice = 1;
      return NVML_SUCCESS;
    };
    driver_.nvmlGpmSampleAlloc = [this](nvmlGpmSample_t* sample) {
      *sample = reinterpret_cast<nvmlGpmSample_t>(std::uintptr_t{++allocated_});
      return NVML_SUCCESS;
    };
    driver_.nvmlGpmSampleFree = [this](nvmlGpmSample_t) {
      ++freed_;
      return NVML_SUCCESS;
    };
    driver_.nvmlGpmSampleGet = [this](nvmlDevice_t, nvmlGpmSample_t sample) {
      taken_.push_back(reinterpret_cast<std::uintptr_t>(sample));
      return sample_code_;
    };
    driver_.nvmlGpmMetricsGet = [this](nvmlGpmMetricsGet_t* request) {
      EXPECT_EQ(request->version, 1U);
      first_ = reinterpret_cast<std::uintptr_t>(request->sample1);
      second_ = reinterpret_cast<std::uintptr_t>(request->sample2);
      for (unsigned int i = 0; i < request->numMetrics; ++i) {
        const auto found = values_.find(request->metrics[i].metricId);
        request->metrics[i].nvmlReturn =
            found == values_.end() ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
        request->metrics[i].value = found == values_.end() ? 0 : found->second;
      }
      return NVML_SUCCESS;
    };
  }
  GpuReadings Read(Duration then = seconds(1)) {
    if (!source_) source_ = driver_.Open(clock_);
    const Snapshot snapshot = source_->Read();
    clock_.Advance(then);
    return snapshot.gpus.at(0).readings;
  }

  VirtualClock clock_{WallTime(seconds(1'700'000'000))};
  FakeDriver driver_;
  std::unique_ptr<Source> source_;
  std::map<unsigned int, double> values_;
  nvmlReturn_t sample_code_ = NVML_SUCCESS;
  unsigned int allocated_ = 0;
  int freed_ = 0;
  std::vector<std::uintptr_t> taken_;
  std::uintptr_t first_ = 0, second_ = 0;
};

TEST_F(GpmTest, NeedsTwoSamples) {
  values_[NVML_GPM_METRIC_SM_UTIL] = 45.7;
  EXPECT_EQ(Read().sm_active_ratio, Reading(Missing::kNeverSampled));
  EXPECT_EQ(Read().sm_active_ratio, Reading(0.457));
  Read();
  // The two samples take turns: the older one is the first.
  EXPECT_EQ(taken_, (std::vector<std::uintptr_t>{2, 1, 2}));
  EXPECT_EQ(first_, 1U);
  EXPECT_EQ(second_, 2U);
}

TEST_F(GpmTest, ConvertsRatesToBytes) {
  values_[NVML_GPM_METRIC_PCIE_TX_PER_SEC] = 2;
  values_[NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC] = 3;
  Read();
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.pcie_transmit_bytes_per_second, Reading(2'097'152));
  EXPECT_EQ(readings.nvlink_receive_bytes_per_second, Reading(3'145'728));
}

TEST_F(GpmTest, KeepsItsValuesWhenSamplesWouldLieTooClose) {
  values_[NVML_GPM_METRIC_SM_UTIL] = 50;
  Read();
  Read(milliseconds(99));
  values_[NVML_GPM_METRIC_SM_UTIL] = 60;
  EXPECT_EQ(Read(milliseconds(1)).sm_active_ratio, Reading(0.5));
  EXPECT_EQ(taken_.size(), 2U);
  EXPECT_EQ(Read().sm_active_ratio, Reading(0.6));  // 100 ms after the last sample
}

TEST_F(GpmTest, RejectsWhatCannotBeTrue) {
  values_[NVML_GPM_METRIC_SM_UTIL] = std::numeric_limits<double>::quiet_NaN();
  values_[NVML_GPM_METRIC_SM_OCCUPANCY] = 140;
  values_[NVML_GPM_METRIC_ANY_TENSOR_UTIL] = 100.4;
  values_[NVML_GPM_METRIC_FP32_UTIL] = -1;
  Read();
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.sm_active_ratio, Reading(Missing::kImplausible));
  EXPECT_EQ(readings.sm_occupancy_ratio, Reading(Missing::kImplausible));
  EXPECT_EQ(readings.tensor_active_ratio, Reading(1));
  EXPECT_EQ(readings.fp32_active_ratio, Reading(Missing::kImplausible));
  EXPECT_EQ(readings.fp64_active_ratio, Reading(Missing::kNotSupported));
}

TEST_F(GpmTest, StartsAnewAfterASampleFailed) {
  values_[NVML_GPM_METRIC_SM_UTIL] = 50;
  Read();
  Read();
  sample_code_ = NVML_ERROR_NO_PERMISSION;
  EXPECT_EQ(Read().sm_active_ratio, Reading(Missing::kNoPermission));
  sample_code_ = NVML_SUCCESS;
  EXPECT_EQ(Read().sm_active_ratio, Reading(Missing::kNeverSampled));
  EXPECT_EQ(Read().sm_active_ratio, Reading(0.5));
}

TEST_F(GpmTest, TellsAnOldDriverFromAnOldGpu) {
  driver_.missing = {"nvmlGpmQueryDeviceSupport"};
  EXPECT_EQ(Read().sm_active_ratio, Reading(Missing::kDriverTooOld));
  source_.reset();
  driver_.nvmlDeviceGetArchitecture = [](nvmlDevice_t, unsigned int* architecture) {
    *architecture = 7;  // Ampere
    return NVML_SUCCESS;
  };
  EXPECT_EQ(Read().sm_active_ratio, Reading(Missing::kNotSupported));
}

TEST_F(GpmTest, IsNotSupportedWhereTheDriverSaysSo) {
  driver_.nvmlGpmQueryDeviceSupport = [](nvmlDevice_t, nvmlGpmSupport_t* support) {
    support->isSupportedDevice = 0;
    return NVML_SUCCESS;
  };
  EXPECT_EQ(Read().sm_active_ratio, Reading(Missing::kNotSupported));
  Read();
  EXPECT_EQ(allocated_, 0U);
  EXPECT_EQ(driver_.calls["nvmlGpmQueryDeviceSupport"], 1);
}

TEST_F(GpmTest, GivesItsSamplesBack) {
  Read();
  Read();
  EXPECT_EQ(allocated_, 2U);
  source_.reset();
  EXPECT_EQ(freed_, 2);
}

}  // namespace
}  // namespace gpuassay
