#include "cli/options.h"

#include <gtest/gtest.h>

#include "cli/command.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DurationOption, ReadsADurationWithinItsBounds) {
  EXPECT_EQ(DurationOption("--every", "250ms", milliseconds(100)), milliseconds(250));
  EXPECT_EQ(DurationOption("--every", "100ms", milliseconds(100)), milliseconds(100));
  EXPECT_EQ(DurationOption("--for", "2", seconds(0)), seconds(2));
}

TEST(DurationOption, NamesTheOptionAndWhatIsAllowed) {
  EXPECT_EQ(DurationOption("--every", "99ms", milliseconds(100), seconds(60)).error().what,
            "--every: '99ms' is not between 100ms and 1m");
  EXPECT_EQ(DurationOption("--every", "61s", milliseconds(100), seconds(60)).error().what,
            "--every: '61s' is not between 100ms and 1m");
  const auto error = DurationOption("--for", "soon", seconds(0)).error();
  EXPECT_EQ(error.code, ErrorCode::kMalformed);
  EXPECT_TRUE(error.what.starts_with("--for: 'soon' is not a duration")) << error.what;
}

TEST(WantsColour, NotWhereNobodyLooks) { EXPECT_FALSE(WantsColour(-1)); }

TEST(ReportError, BadInputIsCode2AndEverythingElseCode1) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReportError("record", {ErrorCode::kMalformed, "x.rec: what is wrong"}), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "gpuassay record: x.rec: what is wrong\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReportError("record", {ErrorCode::kIo, "disk full"}), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "gpuassay record: disk full\n");
}

}  // namespace
}  // namespace gpuassay
