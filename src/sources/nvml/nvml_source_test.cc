#include "sources/nvml/nvml_source.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NvmlSourceTest : public testing::Test {
 protected:
  NvmlSourceTest() {
    driver_.nvmlDeviceGetPowerUsage = [this](nvmlDevice_t device, unsigned int* mw) {
      const unsigned int gpu = FakeDriver::IndexOf(device);
      *mw = 100'000 + gpu;
      return gpu == bad_gpu_ ? bad_code_ : NVML_SUCCESS;
    };
  }
  Snapshot Read() {
    if (!source_) source_ = driver_.Open(clock_);
    Snapshot snapshot = source_->Read();
    clock_.Advance(seconds(1));
    return snapshot;
  }

  VirtualClock clock_{WallTime(seconds(1'700'000'000))};
  FakeDriver driver_{2};
  std::unique_ptr<Source> source_;
  unsigned int bad_gpu_ = 99;
  nvmlReturn_t bad_code_ = NVML_SUCCESS;
};

TEST_F(NvmlSourceTest, TellsItsStatusAndTheNodesVersions) {
  driver_.nvmlSystemGetDriverVersion = [](char* text, unsigned int length) {
    PutText(text, length, "570.86.15");
    return NVML_SUCCESS;
  };
  driver_.nvmlSystemGetCudaDriverVersion_v2 = [](int* version) {
    *version = 12080;
    return NVML_SUCCESS;
  };
  driver_.missing = {"nvmlSystemGetNVMLVersion"};
  const Snapshot snapshot = Read();
  EXPECT_EQ(snapshot.time, WallTime(seconds(1'700'000'000)));
  EXPECT_EQ(snapshot.node.hostname, "node1");
  EXPECT_EQ(snapshot.node.driver_version, "570.86.15");
  EXPECT_EQ(snapshot.node.cuda_version, "12.8");
  EXPECT_EQ(snapshot.node.nvml_version, "");
  EXPECT_EQ(snapshot.capabilities_missing, std::vector<std::string>{"nvmlSystemGetNVMLVersion"});
  ASSERT_EQ(snapshot.sources.size(), 1U);
  EXPECT_EQ(snapshot.sources[0].name, "nvml");
  EXPECT_EQ(snapshot.sources[0].error, "");
  EXPECT_EQ(snapshot.sources[0].last_success, WallTime(seconds(1'700'000'000)));
  EXPECT_EQ(snapshot.sources[0].readings.up, Reading(1));
  EXPECT_EQ(snapshot.sources[0].readings.reads_total, Reading(1));
  EXPECT_EQ(snapshot.sources[0].readings.failures_total, Reading(0));
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.gpus[1].identity.uuid, "GPU-1");
  EXPECT_EQ(snapshot.gpus[1].readings.up, Reading(1));
  EXPECT_EQ(snapshot.gpus[1].readings.power_watts, Reading(100.001));
}

TEST_F(NvmlSourceTest, TriesAgainUntilTheDriverIsLoaded) {
  nvmlReturn_t init = NVML_ERROR_DRIVER_NOT_LOADED;
  driver_.nvmlInit_v2 = [&init] { return init; };
  Snapshot snapshot = Read();
  EXPECT_EQ(snapshot.sources[0].error, "nvmlInit_v2: driver not loaded (9)");
  EXPECT_EQ(snapshot.sources[0].readings.up, Reading(0));
  EXPECT_FALSE(snapshot.sources[0].last_success);
  EXPECT_TRUE(snapshot.gpus.empty());
  EXPECT_FALSE(source_->NeedsNewProcess());
  init = NVML_SUCCESS;
  snapshot = Read();
  EXPECT_EQ(snapshot.sources[0].error, "");
  EXPECT_EQ(snapshot.sources[0].readings.reads_total, Reading(2));
  EXPECT_EQ(snapshot.sources[0].readings.failures_total, Reading(1));
  EXPECT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(driver_.calls["nvmlInit_v2"], 2);
}

TEST_F(NvmlSourceTest, WantsANewProcessAfterAVersionMismatch) {
  Read();
  bad_gpu_ = 0;
  bad_code_ = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
  Snapshot snapshot = Read();
  EXPECT_TRUE(source_->NeedsNewProcess());
  EXPECT_EQ(snapshot.sources[0].error,
            "nvmlDeviceGetPowerUsage: driver and library versions differ (18)");
  EXPECT_EQ(snapshot.sources[0].missing, Missing::kVersionMismatch);
  EXPECT_EQ(snapshot.sources[0].last_success, WallTime(seconds(1'700'000'000)));
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.gpus[1].identity.uuid, "GPU-1");
  EXPECT_EQ(snapshot.gpus[1].readings.power_watts, Reading(Missing::kVersionMismatch));
  const int calls = driver_.calls["nvmlDeviceGetPowerUsage"];
  snapshot = Read();
  EXPECT_EQ(snapshot.sources[0].readings.up, Reading(0));
  EXPECT_EQ(snapshot.sources[0].error,
            "nvmlDeviceGetPowerUsage: driver and library versions differ (18)");
  EXPECT_EQ(driver_.calls["nvmlDeviceGetPowerUsage"], calls);
}

TEST_F(NvmlSourceTest, ShowsTheOtherGpuWhenOneIsLost) {
  Read();
  bad_gpu_ = 0;
  bad_code_ = NVML_ERROR_GPU_IS_LOST;
  const Snapshot snapshot = Read();
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.sources[0].readings.up, Reading(1));
  EXPECT_EQ(snapshot.gpus[0].identity.uuid, "GPU-0");
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(0));
  GpuReadings rest = snapshot.gpus[0].readings;
  rest.up = Missing::kGpuLost;
  ForEachReading(rest, [](Reading& reading) { EXPECT_EQ(reading, Reading(Missing::kGpuLost)); });
  EXPECT_EQ(snapshot.gpus[1].readings.up, Reading(1));
  EXPECT_EQ(snapshot.gpus[1].readings.power_watts, Reading(100.001));
}

TEST_F(NvmlSourceTest, AsksALostGpuOneQuestionPerCycleAndSeesItComeBack) {
  driver_.nvmlDeviceGetUtilizationRates = [this](nvmlDevice_t device, nvmlUtilization_t*) {
    return FakeDriver::IndexOf(device) == bad_gpu_ ? bad_code_ : NVML_SUCCESS;
  };
  driver_.nvmlDeviceGetMaxPcieLinkWidth = [this](nvmlDevice_t device, unsigned int* width) {
    *width = 16;
    return FakeDriver::IndexOf(device) == bad_gpu_ ? bad_code_ : NVML_SUCCESS;
  };
  Read();
  bad_gpu_ = 0;
  bad_code_ = NVML_ERROR_GPU_IS_LOST;
  Read();
  driver_.calls.clear();
  EXPECT_EQ(Read().gpus[0].readings.pcie_link_width_max, Reading(Missing::kGpuLost));
  EXPECT_EQ(driver_.calls["nvmlDeviceGetPowerUsage"], 1);  // of the other GPU
  bad_gpu_ = 99;
  const Snapshot snapshot = Read();
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(1));
  EXPECT_EQ(snapshot.gpus[0].readings.power_watts, Reading(100));
  // Slow values were gone with the GPU and are read at once.
  EXPECT_EQ(snapshot.gpus[0].readings.pcie_link_width_max, Reading(16));
}

TEST_F(NvmlSourceTest, KeepsAGpuThatTheDriverNoLongerCounts) {
  Read();
  driver_.nvmlDeviceGetCount_v2 = [](unsigned int* count) {
    *count = 1;
    return NVML_SUCCESS;
  };
  const Snapshot snapshot = Read();
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(1));
  EXPECT_EQ(snapshot.gpus[1].identity.uuid, "GPU-1");
  EXPECT_EQ(snapshot.gpus[1].readings.up, Reading(0));
  EXPECT_EQ(snapshot.gpus[1].readings.power_watts, Reading(Missing::kGpuLost));
}

TEST_F(NvmlSourceTest, ShowsAGpuThatWasLostFromTheStart) {
  nvmlReturn_t code = NVML_ERROR_GPU_IS_LOST;
  driver_.nvmlDeviceGetHandleByIndex_v2 = [&code](unsigned int index, nvmlDevice_t* device) {
    *device = FakeDriver::Handle(index);
    return index == 0 ? code : NVML_SUCCESS;
  };
  Snapshot snapshot = Read();
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].identity.index, 0U);
  EXPECT_EQ(snapshot.gpus[0].identity.uuid, "");
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(0));
  EXPECT_EQ(snapshot.gpus[1].readings.power_watts, Reading(100.001));
  code = NVML_SUCCESS;
  clock_.Advance(seconds(60));
  snapshot = Read();
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].identity.uuid, "GPU-0");
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(1));
}

TEST_F(NvmlSourceTest, DoesNotTouchAGpuThatItShallSkip) {
  std::set<unsigned int> touched;
  driver_.nvmlDeviceGetHandleByIndex_v2 = [&touched](unsigned int index, nvmlDevice_t* device) {
    touched.insert(index);
    *device = FakeDriver::Handle(index);
    return NVML_SUCCESS;
  };
  driver_.nvmlEventSetCreate = [](nvmlEventSet_t*) { return NVML_SUCCESS; };
  source_ = driver_.Open(clock_, {0});
  const Snapshot snapshot = Read();
  EXPECT_EQ(touched, std::set<unsigned int>{1});
  EXPECT_EQ(driver_.calls["nvmlDeviceGetPowerUsage"], 1);
  EXPECT_EQ(driver_.calls["nvmlDeviceGetSupportedEventTypes"], 1);
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].identity.index, 0U);
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(0));
  EXPECT_EQ(snapshot.gpus[0].readings.power_watts, Reading(Missing::kTimedOut));
  EXPECT_EQ(snapshot.gpus[1].readings.power_watts, Reading(100.001));
}

TEST_F(NvmlSourceTest, AsksNoMoreInACycleAfterATimeOut) {
  driver_.nvmlDeviceGetUtilizationRates = [](nvmlDevice_t, nvmlUtilization_t*) {
    return NVML_ERROR_TIMEOUT;
  };
  const Snapshot snapshot = Read();
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(0));
  EXPECT_EQ(snapshot.gpus[0].readings.power_watts, Reading(Missing::kTimedOut));
  EXPECT_EQ(driver_.calls["nvmlDeviceGetPowerUsage"], 0);
}

TEST_F(NvmlSourceTest, IsDownForAGpuThatNeedsAResetButShowsWhatItTells) {
  driver_.nvmlDeviceGetUtilizationRates = [](nvmlDevice_t, nvmlUtilization_t*) {
    return NVML_ERROR_RESET_REQUIRED;
  };
  const Snapshot snapshot = Read();
  EXPECT_EQ(snapshot.gpus[0].readings.up, Reading(0));
  EXPECT_EQ(snapshot.gpus[0].readings.utilization_ratio, Reading(Missing::kResetRequired));
  EXPECT_EQ(snapshot.gpus[0].readings.power_watts, Reading(100));
}

TEST_F(NvmlSourceTest, TellsWhyTheCountFailed) {
  Read();
  driver_.nvmlDeviceGetCount_v2 = [](unsigned int*) { return NVML_ERROR_UNKNOWN; };
  const Snapshot snapshot = Read();
  EXPECT_EQ(snapshot.sources[0].error, "nvmlDeviceGetCount_v2: unknown error (999)");
  EXPECT_EQ(snapshot.gpus[0].readings.power_watts, Reading(Missing::kDriverError));
}

TEST_F(NvmlSourceTest, InitialisesAgainWhenTheDriverForgotIt) {
  Read();
  driver_.nvmlDeviceGetCount_v2 = [](unsigned int*) { return NVML_ERROR_UNINITIALIZED; };
  EXPECT_EQ(Read().sources[0].error, "nvmlDeviceGetCount_v2: not initialised (1)");
  driver_.nvmlDeviceGetCount_v2 = [](unsigned int* count) {
    *count = 2;
    return NVML_SUCCESS;
  };
  const Snapshot snapshot = Read();
  EXPECT_EQ(driver_.calls["nvmlInit_v2"], 2);
  EXPECT_EQ(snapshot.sources[0].error, "");
  EXPECT_EQ(snapshot.gpus[1].readings.power_watts, Reading(100.001));
}

TEST_F(NvmlSourceTest, ReadsSlowValuesOnceAMinuteAndTheGpusInTurn) {
  driver_.nvmlDeviceGetMaxPcieLinkWidth = [](nvmlDevice_t, unsigned int* width) {
    *width = 16;
    return NVML_SUCCESS;
  };
  Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetMaxPcieLinkWidth"], 2);
  Snapshot snapshot;
  for (int second = 1; second < 30; ++second) snapshot = Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetMaxPcieLinkWidth"], 2);
  EXPECT_EQ(snapshot.gpus[1].readings.pcie_link_width_max, Reading(16));  // kept in between
  Read();                                                                 // GPU 1 after 30 s
  EXPECT_EQ(driver_.calls["nvmlDeviceGetMaxPcieLinkWidth"], 3);
  for (int second = 31; second < 60; ++second) Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetMaxPcieLinkWidth"], 3);
  Read();  // GPU 0 after 60 s
  EXPECT_EQ(driver_.calls["nvmlDeviceGetMaxPcieLinkWidth"], 4);
}

TEST_F(NvmlSourceTest, DoesNotAskAgainForWhatIsNotSupportedUntilTheNextSlowReading) {
  Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetFanSpeed"], 2);
  for (int second = 1; second < 30; ++second) Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetFanSpeed"], 2);
  Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetFanSpeed"], 3);
}

}  // namespace
}  // namespace gpuassay
