#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sim/driver/real_time.h"
#include "sim/driver/test_driver.h"

namespace gpuassay::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kEvents = R"(
gpus:
  - {model: a100-sxm4-80gb, mig: [1g.10gb]}
  - {model: a100-sxm4-80gb, count: 2}
  - {model: rtx-4090}
faults:
  - {kind: xid, at: 10s, gpu: 1, value: 31, count: 2, every: 5s}
  - {kind: ecc_uncorrected, at: 12s, gpu: 2, value: 1}
  - {kind: mig_reconfigure, at: 20s, gpu: 0, layout: [1g.10gb, 1g.10gb]}
  - {kind: gpu_lost, at: 30s, gpu: 2}
)";

constexpr unsigned long long kXid = nvmlEventTypeXidCriticalError;
constexpr unsigned long long kDoubleBit = nvmlEventTypeDoubleBitEccError;

nvmlEventSet_t NewSet() {
  nvmlEventSet_t set = nullptr;
  EXPECT_EQ(nvmlEventSetCreate(&set), NVML_SUCCESS);
  return set;
}

TEST(DriverEvents, AnXidComesWithItsCodeAndItsGpu) {
  TestDriver driver(kEvents);
  nvmlEventSet_t set = NewSet();
  ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(1), kXid, set), NVML_SUCCESS);
  nvmlEventData_t data = {};
  driver.AdvanceTo(seconds(11));
  EXPECT_EQ(nvmlEventSetWait_v2(set, &data, 0), NVML_SUCCESS);
  EXPECT_EQ(data.device, driver.Gpu(1));
  EXPECT_EQ(data.eventType, kXid);
  EXPECT_EQ(data.eventData, 31U);
  EXPECT_EQ(data.gpuInstanceId, 0xFFFFFFFFU);
  EXPECT_EQ(nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_TIMEOUT);
}

TEST(DriverEvents, WaitingEndsWithTheEventOrTheTimeOut) {
  TestDriver driver(kEvents);
  nvmlEventSet_t set = NewSet();
  ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(1), kXid, set), NVML_SUCCESS);
  nvmlEventData_t data = {};
  EXPECT_EQ(nvmlEventSetWait_v2(set, &data, 5000), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(driver.Now(), seconds(5));
  EXPECT_EQ(nvmlEventSetWait_v2(set, &data, 60000), NVML_SUCCESS);
  EXPECT_GE(driver.Now(), seconds(10));
  EXPECT_LE(driver.Now(), seconds(10) + milliseconds(167));
}

TEST(DriverEvents, OnlyWhatWasAskedForAndOnlyAfterItWasAskedFor) {
  TestDriver driver(kEvents);
  nvmlEventSet_t xids = NewSet();
  nvmlEventSet_t late = NewSet();
  ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(2), kXid, xids), NVML_SUCCESS);
  driver.AdvanceTo(seconds(13));
  ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(1), kXid, late), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(2), kDoubleBit, late), NVML_SUCCESS);
  nvmlEventData_t data = {};
  EXPECT_EQ(nvmlEventSetWait_v2(late, &data, 0), NVML_ERROR_TIMEOUT);
  driver.AdvanceTo(seconds(16));
  EXPECT_EQ(nvmlEventSetWait_v2(late, &data, 0), NVML_SUCCESS);  // the second Xid 31
  EXPECT_EQ(data.eventData, 31U);
}

TEST(DriverEvents, TwoSetsBothGetTheEvent) {
  TestDriver driver(kEvents);
  nvmlEventSet_t sets[2] = {NewSet(), NewSet()};
  for (nvmlEventSet_t set : sets) {
    ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(2), kDoubleBit, set), NVML_SUCCESS);
  }
  driver.AdvanceTo(seconds(13));
  for (nvmlEventSet_t set : sets) {
    nvmlEventData_t data = {};
    EXPECT_EQ(nvmlEventSetWait_v2(set, &data, 0), NVML_SUCCESS);
    EXPECT_EQ(data.eventType, kDoubleBit);
  }
  EXPECT_EQ(nvmlEventSetFree(sets[0]), NVML_SUCCESS);
  EXPECT_EQ(nvmlEventSetFree(sets[0]), NVML_ERROR_INVALID_ARGUMENT);
}

TEST(DriverEvents, ANewMigLayoutIsAnEvent) {
  TestDriver driver(kEvents);
  nvmlEventSet_t set = NewSet();
  ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(0), nvmlEventMigConfigChange, set), NVML_SUCCESS);
  driver.AdvanceTo(seconds(21));
  nvmlEventData_t data = {};
  EXPECT_EQ(nvmlEventSetWait_v2(set, &data, 0), NVML_SUCCESS);
  EXPECT_EQ(data.eventType, static_cast<unsigned long long>(nvmlEventMigConfigChange));
}

TEST(DriverEvents, TheLossOfARegisteredGpuIsTold) {
  TestDriver driver(kEvents);
  nvmlDevice_t third = driver.Gpu(2);
  nvmlEventSet_t set = NewSet();
  nvmlEventSet_t others = NewSet();
  ASSERT_EQ(nvmlDeviceRegisterEvents(third, nvmlEventTypeSingleBitEccError, set), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(1), nvmlEventTypeSingleBitEccError, others),
            NVML_SUCCESS);
  driver.AdvanceTo(seconds(31));
  nvmlEventData_t data = {};
  EXPECT_EQ(nvmlEventSetWait_v2(set, &data, 1000), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(data.device, third);
  EXPECT_EQ(nvmlEventSetWait_v2(others, &data, 1000), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(nvmlDeviceRegisterEvents(third, kXid, others), NVML_ERROR_GPU_IS_LOST);
}

TEST(DriverEvents, WhatAGpuCannotTellIsNotRegistered) {
  const TestDriver driver(kEvents);
  nvmlEventSet_t set = NewSet();
  unsigned long long types = 0;
  ASSERT_EQ(nvmlDeviceGetSupportedEventTypes(driver.Gpu(3), &types), NVML_SUCCESS);
  EXPECT_EQ(types & kXid, kXid);
  EXPECT_EQ(types & static_cast<unsigned long long>(nvmlEventMigConfigChange), 0U);
  EXPECT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(3), kXid | nvmlEventMigConfigChange, set),
            NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(3), 0, set), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceRegisterEvents(driver.Gpu(3), kXid, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

// A time source whose waits last until the test says so.
class HeldTime final : public TimeSource {
 public:
  Duration Now() override { return now_.load(); }
  WallTime WallAt(Duration t) override { return WallTime(t); }
  bool WaitUntil(Duration) override {
    waiting_ = true;
    waiting_.notify_all();
    released_.wait(false);
    return true;
  }
  void Set(Duration now) { now_ = now; }
  void Release() {
    released_ = true;
    released_.notify_all();
  }
  void AwaitWaiter() const { waiting_.wait(false); }

 private:
  std::atomic<Duration> now_ = Duration(0);
  std::atomic<bool> waiting_ = false;
  std::atomic<bool> released_ = false;
};

Engine EngineOf(std::string_view yaml) {
  Result<Scenario> scenario = ParseScenario(yaml, "test.yaml");
  EXPECT_TRUE(scenario.has_value());
  return Engine(std::move(*scenario));
}

TEST(DriverThreads, AHangingCallDoesNotHoldTheOthers) {
  HeldTime time;
  Install(EngineOf(R"(
gpus: [{model: a100-sxm4-80gb, count: 2}]
faults: [{kind: driver_hang, at: 10s, for: 10s, gpu: 1}]
)"),
          time);
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t gpus[2] = {};
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpus[0]), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &gpus[1]), NVML_SUCCESS);
  time.Set(seconds(12));
  nvmlReturn_t hung = -1;
  std::jthread caller([&] {
    unsigned int mw = 0;
    hung = nvmlDeviceGetPowerUsage(gpus[1], &mw);
  });
  time.AwaitWaiter();
  unsigned int mw = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(gpus[0], &mw), NVML_SUCCESS);
  time.Set(seconds(20));
  time.Release();
  caller.join();
  EXPECT_EQ(hung, NVML_SUCCESS);
  Uninstall();
}

TEST(DriverThreads, AWaitForEventsDoesNotHoldTheOthers) {
  HeldTime time;
  Install(EngineOf("gpus: [{model: a100-sxm4-80gb}]"), time);
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
  nvmlEventSet_t set = NewSet();
  ASSERT_EQ(nvmlDeviceRegisterEvents(gpu, kXid, set), NVML_SUCCESS);
  nvmlReturn_t waited = -1;
  std::jthread waiter([&] {
    nvmlEventData_t data;
    waited = nvmlEventSetWait_v2(set, &data, 1000);
  });
  time.AwaitWaiter();
  unsigned int mw = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(gpu, &mw), NVML_SUCCESS);
  time.Set(seconds(2));
  time.Release();
  waiter.join();
  EXPECT_EQ(waited, NVML_ERROR_TIMEOUT);
  Uninstall();
}

TEST(DriverTime, RealTimeRunsFasterByTheFactorAndStampsStayTheCallers) {
  const WallTime start = SystemClock().Wall() - seconds(10);
  const std::unique_ptr<TimeSource> time = MakeRealTime(60, start);
  const Duration now = time->Now();
  EXPECT_GE(now, seconds(600));
  EXPECT_EQ(time->WallAt(seconds(600)), start + seconds(10));
  EXPECT_TRUE(time->WaitUntil(now));
}

}  // namespace
}  // namespace gpuassay::sim
