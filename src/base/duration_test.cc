#include "base/duration.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Duration, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(*ParseDuration("1s"), seconds(1));
  EXPECT_EQ(*ParseDuration("1.5h"), seconds(5400));
  EXPECT_EQ(*ParseDuration("2d"), hours(48));
  EXPECT_EQ(*ParseDuration("30"), seconds(30));
  EXPECT_EQ(*ParseDuration("30000", milliseconds(1)), seconds(30));
}

TEST(Duration, RefusesEverythingElseWithAnExample) {
  for (const char* text : {"", "s", "-1s", "1 s", "1x", "nan", "inf", "9999999d", "1s1"}) {
    EXPECT_FALSE(ParseDuration(text).has_value()) << text;
  }
  EXPECT_EQ(ParseDuration("soon").error().what,
            "'soon' is not a duration; write for example 500ms, 1s, 30m or 2h");
}

TEST(Duration, IsWrittenInTheLargestWholeUnit) {
  EXPECT_EQ(FormatDuration(seconds(0)), "0s");
  EXPECT_EQ(FormatDuration(milliseconds(250)), "250ms");
  EXPECT_EQ(FormatDuration(seconds(90)), "90s");
  EXPECT_EQ(FormatDuration(seconds(120)), "2m");
  EXPECT_EQ(FormatDuration(hours(48)), "48h");
}

}  // namespace
}  // namespace gpuassay
