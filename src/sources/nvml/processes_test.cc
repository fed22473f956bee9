#include "sources/nvml/processes.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

constexpr unsigned int kNone = 0xFFFFFFFF;
constexpr unsigned long long kMib = 1048576;

// Writes `list` by the protocol of the process lists.
template <class Info>
nvmlReturn_t Give(const std::vector<Info>& list, unsigned int* count, Info* out) {
  const unsigned int room = *count;
  *count = static_cast<unsigned int>(list.size());
  if (room < list.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::copy(list.begin(), list.end(), out);
  return NVML_SUCCESS;
}

class ProcessesTest : public testing::Test {
 protected:
  ProcessesTest() {
    driver_.nvmlDeviceGetComputeRunningProcesses_v3 = [this](nvmlDevice_t, unsigned int* count,
                                                             nvmlProcessInfo_t* out) {
      return Give(compute_, count, out);
    };
    driver_.nvmlDeviceGetGraphicsRunningProcesses_v3 = [this](nvmlDevice_t, unsigned int* count,
                                                              nvmlProcessInfo_t* out) {
      return Give(graphics_, count, out);
    };
    driver_.nvmlDeviceGetMPSComputeRunningProcesses_v3 = [this](nvmlDevice_t, unsigned int* count,
                                                                nvmlProcessInfo_t* out) {
      return Give(mps_, count, out);
    };
    driver_.nvmlSystemGetProcessName = [](unsigned int pid, char* name, unsigned int length) {
      PutText(name, length, "program" + std::to_string(pid));
      return NVML_SUCCESS;
    };
  }
  Gpu Read() {
    if (!source_) source_ = driver_.Open(clock_);
    Snapshot snapshot = source_->Read();
    clock_.Advance(seconds(1));
    return snapshot.gpus.at(0);
  }

  VirtualClock clock_{WallTime(seconds(1'700'000'000))};
  FakeDriver driver_;
  std::unique_ptr<Source> source_;
  std::vector<nvmlProcessInfo_t> compute_, graphics_, mps_;
};

TEST_F(ProcessesTest, JoinsTheListsByPid) {
  compute_ = {{300, 2896 * kMib, kNone, kNone}, {100, 4234 * kMib, kNone, kNone}};
  graphics_ = {{100, 4234 * kMib, kNone, kNone}, {200, 50 * kMib, kNone, kNone}};
  mps_ = {{400, 10 * kMib, kNone, kNone}};
  const Gpu gpu = Read();
  ASSERT_EQ(gpu.processes.size(), 4U);
  EXPECT_EQ(gpu.processes[0].pid, 100U);
  EXPECT_EQ(gpu.processes[0].type, ProcessType::kComputeAndGraphics);
  EXPECT_EQ(gpu.processes[0].name, "program100");
  EXPECT_EQ(gpu.processes[0].readings.memory_used_bytes, Reading(4234.0 * kMib));
  EXPECT_FALSE(gpu.processes[0].gpu_instance_id);
  EXPECT_EQ(gpu.processes[1].type, ProcessType::kGraphics);
  EXPECT_EQ(gpu.processes[2].type, ProcessType::kCompute);
  EXPECT_EQ(gpu.processes[3].type, ProcessType::kMps);
  EXPECT_EQ(gpu.readings.process_count, Reading(4));
  EXPECT_EQ(gpu.processes_dropped, 0U);
}

TEST_F(ProcessesTest, GrowsItsBufferWhenTheListIsLonger) {
  for (unsigned int pid = 1; pid <= 1000; ++pid) compute_.push_back({pid, kMib, kNone, kNone});
  EXPECT_EQ(Read().processes.size(), 1000U);
  EXPECT_EQ(driver_.calls["nvmlDeviceGetComputeRunningProcesses_v3"], 2);
  EXPECT_EQ(Read().processes.size(), 1000U);
  EXPECT_EQ(driver_.calls["nvmlDeviceGetComputeRunningProcesses_v3"], 3);
}

TEST_F(ProcessesTest, GivesUpOnAListThatKeepsGrowing) {
  driver_.nvmlDeviceGetComputeRunningProcesses_v3 = [](nvmlDevice_t, unsigned int* count,
                                                       nvmlProcessInfo_t*) {
    *count *= 3;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  };
  const Gpu gpu = Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetComputeRunningProcesses_v3"], 4);
  EXPECT_EQ(gpu.readings.process_count, Reading(Missing::kDriverError));
}

TEST_F(ProcessesTest, CountsWhatItDropsBeyondTheBound) {
  for (unsigned int pid = 1; pid <= 4100; ++pid) compute_.push_back({pid, kMib, kNone, kNone});
  const Gpu gpu = Read();
  EXPECT_EQ(gpu.processes.size(), 4096U);
  EXPECT_EQ(gpu.processes_dropped, 4U);
  EXPECT_EQ(gpu.readings.process_count, Reading(4100));
}

TEST_F(ProcessesTest, ReadsTheOldListsOfAnOldDriver) {
  driver_.missing = {
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
      "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
      "nvmlDeviceGetMPSComputeRunningProcesses_v3"};
  driver_.nvmlDeviceGetComputeRunningProcesses = [](nvmlDevice_t, unsigned int* count,
                                                    nvmlProcessInfo_v1_t* out) {
    return Give<nvmlProcessInfo_v1_t>({{7, 20 * kMib}, {8, ~0ULL}}, count, out);
  };
  const Gpu gpu = Read();
  ASSERT_EQ(gpu.processes.size(), 2U);
  EXPECT_EQ(gpu.processes[0].readings.memory_used_bytes, Reading(20.0 * kMib));
  EXPECT_EQ(gpu.processes[1].readings.memory_used_bytes, Reading(Missing::kNotSupported));
  EXPECT_FALSE(gpu.processes[0].gpu_instance_id);
  EXPECT_EQ(gpu.readings.process_count, Reading(2));
}

TEST_F(ProcessesTest, ReadsTheMiddleListsWhereTheNewestAreMissing) {
  driver_.missing = {"nvmlDeviceGetComputeRunningProcesses_v3"};
  driver_.nvmlDeviceGetComputeRunningProcesses_v2 = [](nvmlDevice_t, unsigned int* count,
                                                       nvmlProcessInfo_t* out) {
    return Give<nvmlProcessInfo_t>({{7, 20 * kMib, 3, 0}}, count, out);
  };
  const Gpu gpu = Read();
  ASSERT_EQ(gpu.processes.size(), 1U);
  EXPECT_EQ(gpu.processes[0].gpu_instance_id, 3U);
}

TEST_F(ProcessesTest, HasNoCountWithoutTheComputeList) {
  driver_.nvmlDeviceGetComputeRunningProcesses_v3 =
      [](nvmlDevice_t, unsigned int*, nvmlProcessInfo_t*) { return NVML_ERROR_NO_PERMISSION; };
  graphics_ = {{200, kMib, kNone, kNone}};
  const Gpu gpu = Read();
  EXPECT_EQ(gpu.processes.size(), 1U);
  EXPECT_EQ(gpu.readings.process_count, Reading(Missing::kNoPermission));
}

TEST_F(ProcessesTest, AsksForANameOnceAndForgetsItWithThePid) {
  compute_ = {{100, kMib, kNone, kNone}, {200, kMib, kNone, kNone}};
  Read();
  Read();
  EXPECT_EQ(driver_.calls["nvmlSystemGetProcessName"], 2);
  compute_ = {{200, kMib, kNone, kNone}};
  Read();
  compute_ = {{100, kMib, kNone, kNone}, {200, kMib, kNone, kNone}};
  EXPECT_EQ(Read().processes[0].name, "program100");
  EXPECT_EQ(driver_.calls["nvmlSystemGetProcessName"], 3);
}

TEST_F(ProcessesTest, AsksAgainAfterAMinuteForANameItDidNotGet) {
  driver_.nvmlSystemGetProcessName = [](unsigned int, char*, unsigned int) {
    return NVML_ERROR_NO_PERMISSION;
  };
  compute_ = {{100, kMib, kNone, kNone}};
  EXPECT_EQ(Read().processes[0].name, "");
  for (int second = 1; second < 60; ++second) Read();
  EXPECT_EQ(driver_.calls["nvmlSystemGetProcessName"], 1);
  Read();
  EXPECT_EQ(driver_.calls["nvmlSystemGetProcessName"], 2);
}

}  // namespace
}  // namespace gpuassay
