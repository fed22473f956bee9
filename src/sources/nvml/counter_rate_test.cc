#include "sources/nvml/counter_rate.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

constexpr unsigned int kField = NVML_FI_DEV_PCIE_COUNT_TX_BYTES;

class CounterRateTest : public testing::Test {
 protected:
  CounterRateTest() { driver_.AnswerFields(); }
  Reading At(int second, FakeDriver::Field answer) {
    driver_.fields[{kField, 0}] = answer;
    calls_.BeginCycle();
    batch_.Ask(calls_);
    return rate_.Update(batch_, field_, 1024, SteadyTime(seconds(second)));
  }

  FakeDriver driver_;
  NvmlLibrary library_ = *NvmlLibrary::FromResolver(driver_.Resolve(), "fake", nullptr);
  DeviceCalls calls_{library_, 0, FakeDriver::Handle(0)};
  FieldBatch batch_;
  std::size_t field_ = batch_.Add(kField);
  CounterRate rate_;
};

TEST_F(CounterRateTest, NeedsTwoReadings) {
  EXPECT_EQ(At(1, {NVML_SUCCESS, 100, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG}),
            Reading(Missing::kNeverSampled));
  EXPECT_EQ(At(3, {NVML_SUCCESS, 110, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG}), Reading(5120));
}

TEST_F(CounterRateTest, KeepsItsValueAtTheSameInstant) {
  At(1, {NVML_SUCCESS, 100, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG});
  At(2, {NVML_SUCCESS, 101, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG});
  EXPECT_EQ(At(2, {NVML_SUCCESS, 109, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG}), Reading(1024));
}

TEST_F(CounterRateTest, StartsAnewAfterAReset) {
  At(1, {NVML_SUCCESS, 100, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG});
  EXPECT_EQ(At(2, {NVML_SUCCESS, 5, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG}),
            Reading(Missing::kNeverSampled));
  EXPECT_EQ(At(3, {NVML_SUCCESS, 6, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG}), Reading(1024));
}

TEST_F(CounterRateTest, FollowsANarrowCounterOverItsEnd) {
  At(1, {NVML_SUCCESS, 4'294'967'290U, NVML_VALUE_TYPE_UNSIGNED_INT});
  EXPECT_EQ(At(2, {NVML_SUCCESS, 4, NVML_VALUE_TYPE_UNSIGNED_INT}), Reading(10 * 1024));
}

TEST_F(CounterRateTest, TellsWhyThereIsNone) {
  At(1, {NVML_SUCCESS, 100, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG});
  EXPECT_EQ(At(2, {NVML_ERROR_NO_PERMISSION, 0, 0}), Reading(Missing::kNoPermission));
  EXPECT_EQ(At(3, {NVML_SUCCESS, 200, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG}),
            Reading(Missing::kNeverSampled));
}

}  // namespace
}  // namespace gpuassay
