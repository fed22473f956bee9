#include "sources/nvml/fields.h"

#include <gtest/gtest.h>

#include <bit>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

class FieldsTest : public testing::Test {
 protected:
  FieldsTest() { driver_.AnswerFields(); }
  void Ask() {
    calls_.BeginCycle();
    batch_.Ask(calls_);
  }

  FakeDriver driver_;
  NvmlLibrary library_ = *NvmlLibrary::FromResolver(driver_.Resolve(), "fake", nullptr);
  DeviceCalls calls_{library_, 0, FakeDriver::Handle(0)};
  FieldBatch batch_;
};

TEST_F(FieldsTest, IsUnknownBeforeTheFirstQuestion) {
  const std::size_t field = batch_.Add(1);
  EXPECT_EQ(batch_.Get(field), Reading(Missing::kNeverSampled));
}

TEST_F(FieldsTest, ReadsEveryTypeOfValue) {
  const auto value = [&](unsigned int type, unsigned long long bits) {
    driver_.fields[{7, 0}] = {NVML_SUCCESS, bits, type};
    batch_.Clear();
    const std::size_t field = batch_.Add(7);
    Ask();
    return batch_.Get(field);
  };
  EXPECT_EQ(value(NVML_VALUE_TYPE_DOUBLE, std::bit_cast<unsigned long long>(2.5)), Reading(2.5));
  EXPECT_EQ(value(NVML_VALUE_TYPE_UNSIGNED_INT, 42), Reading(42));
  EXPECT_EQ(value(NVML_VALUE_TYPE_UNSIGNED_LONG, 43), Reading(43));
  EXPECT_EQ(value(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 1ULL << 40), Reading(1099511627776.0));
  EXPECT_EQ(value(NVML_VALUE_TYPE_SIGNED_LONG_LONG, static_cast<unsigned long long>(-3LL)),
            Reading(-3));
  EXPECT_EQ(value(NVML_VALUE_TYPE_SIGNED_INT, static_cast<unsigned int>(-8)), Reading(-8));
  EXPECT_EQ(value(NVML_VALUE_TYPE_UNSIGNED_SHORT, 9), Reading(9));
  EXPECT_EQ(value(77, 9), Reading(Missing::kDriverError));
  EXPECT_EQ(value(NVML_VALUE_TYPE_UNSIGNED_INT, 0xFFFFFFFF), Reading(Missing::kImplausible));
  EXPECT_EQ(value(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, ~0ULL), Reading(Missing::kImplausible));
}

TEST_F(FieldsTest, KeepsLargeCountsExact) {
  driver_.fields[{7, 0}].value = (1ULL << 60) + 1;
  const std::size_t field = batch_.Add(7);
  Ask();
  EXPECT_EQ(batch_.Count(field), (1ULL << 60) + 1);
}

TEST_F(FieldsTest, TellsScopesApart) {
  driver_.fields[{165, 0}].value = 1;
  driver_.fields[{165, 3}].value = 2;
  const std::size_t first = batch_.Add(165, 0);
  const std::size_t second = batch_.Add(165, 3);
  Ask();
  EXPECT_EQ(batch_.Get(first), Reading(1));
  EXPECT_EQ(batch_.Get(second), Reading(2));
}

TEST_F(FieldsTest, AsksARefusedFieldAgainOnlyWhenTold) {
  driver_.fields[{1, 0}].value = 5;
  const std::size_t known = batch_.Add(1);
  const std::size_t refused = batch_.Add(2);
  Ask();
  driver_.fields[{2, 0}].value = 6;
  Ask();
  EXPECT_EQ(batch_.Get(known), Reading(5));
  EXPECT_EQ(batch_.Get(refused), Reading(Missing::kNotSupported));
  batch_.ForgetRefusals();
  Ask();
  EXPECT_EQ(batch_.Get(refused), Reading(6));
}

TEST_F(FieldsTest, DoesNotCallWhenNothingIsLeftToAsk) {
  batch_.Add(2);
  Ask();
  Ask();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetFieldValues"], 1);
}

TEST_F(FieldsTest, GivesTheErrorOfTheWholeCallToAllFields) {
  driver_.nvmlDeviceGetFieldValues = [](nvmlDevice_t, int, nvmlFieldValue_t*) {
    return NVML_ERROR_NO_PERMISSION;
  };
  const std::size_t field = batch_.Add(1);
  Ask();
  EXPECT_EQ(batch_.Get(field), Reading(Missing::kNoPermission));
}

}  // namespace
}  // namespace gpuassay
