#include "model/reading.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gpuassay {
namespace {

TEST(Reading, IsNeverSampledUntilSomebodyFillsIt) {
  const Reading reading;
  EXPECT_FALSE(reading.has_value());
  EXPECT_EQ(reading.missing(), Missing::kNeverSampled);
  EXPECT_EQ(reading.get(), std::nullopt);
}

TEST(Reading, ZeroIsAValueAndNotTheSameAsMissing) {
  const Reading zero = 0.0;
  EXPECT_TRUE(zero.has_value());
  EXPECT_EQ(*zero, 0.0);
  EXPECT_NE(zero, Reading());
}

TEST(Reading, TwoMissingReadingsAreEqualWhenTheReasonIs) {
  EXPECT_EQ(Reading(Missing::kGpuLost), Reading(Missing::kGpuLost));
  EXPECT_NE(Reading(Missing::kGpuLost), Reading(Missing::kTimedOut));
}

TEST(ReadingDeathTest, TheValueOfAMissingReadingIsABug) {
  const Reading reading = Missing::kGpuLost;
  EXPECT_DEATH(static_cast<void>(*reading), "value of a missing reading");
}

TEST(Missing, EveryReasonHasANameOfItsOwnAndASentence) {
  std::set<std::string_view> names;
  for (int reason = 0; reason < kMissingCount; ++reason) {
    const auto missing = static_cast<Missing>(reason);
    names.insert(MissingName(missing));
    EXPECT_GT(MissingText(missing).size(), 20u) << MissingName(missing);
  }
  EXPECT_EQ(names.size(), 14u);
  EXPECT_EQ(MissingName(Missing::kPausedForProfiler), "paused_for_profiler");
  EXPECT_EQ(MissingName(Missing::kVersionMismatch), "version_mismatch");
}

}  // namespace
}  // namespace gpuassay
