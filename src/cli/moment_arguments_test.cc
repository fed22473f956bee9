#include "cli/moment_arguments.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

using std::chrono::seconds;

TEST(MomentArguments, DefaultsAreTheDriverNow) {
  const Result<MomentRequest> request = MakeMomentRequest({});
  ASSERT_TRUE(request) << request.error().what;
  EXPECT_EQ(request->source.kind, SourceSpec::Kind::kNvml);
  EXPECT_EQ(request->interval, seconds(1));
  EXPECT_EQ(request->timeout, seconds(15));
  EXPECT_EQ(request->at, std::nullopt);
  EXPECT_TRUE(request->node.attribution);
}

std::string ErrorOf(const MomentArguments& arguments) {
  const Result<MomentRequest> request = MakeMomentRequest(arguments);
  return request ? "" : request.error().what;
}

TEST(MomentArguments, BadOnesAreNamed) {
  EXPECT_EQ(ErrorOf({.source = "amd"}).substr(0, 12), "source 'amd'");
  EXPECT_EQ(ErrorOf({.interval = "1ms"}), "--interval: '1ms' is not between 100ms and 10s");
  EXPECT_EQ(ErrorOf({.at = "soon"}).substr(0, 5), "--at:");
  EXPECT_EQ(ErrorOf({.timeout = "0s"}).substr(0, 10), "--timeout:");
  EXPECT_EQ(ErrorOf({.node = {.attribution = "some"}}).substr(0, 14), "--attribution:");
}

TEST(MomentArguments, ADriverThatAnsweredWithAnErrorIsAFailure) {
  Snapshot snapshot;
  EXPECT_TRUE(CheckDriverWasRead(snapshot));
  snapshot.sources.emplace_back().error = "nvmlInit_v2: driver not loaded (9)";
  const Result<void> result = CheckDriverWasRead(snapshot);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what,
            "the driver could not be read: nvmlInit_v2: driver not loaded (9)");
}

}  // namespace
}  // namespace gpuassay
