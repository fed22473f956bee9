#include "web/pages.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SourceStatus Source(std::string name) {
  SourceStatus source;
  source.name = std::move(name);
  return source;
}

TEST(Pages, HealthHasALinePerSource) {
  Snapshot snapshot;
  snapshot.sources = {Source("nvml"), Source("replay"), Source("simulator")};
  snapshot.sources[0].last_success = WallTime(seconds(100));
  snapshot.sources[1].error = "bad\nfile";
  snapshot.sources[2].error = "driver hangs";
  snapshot.sources[2].last_success = WallTime(seconds(90));
  EXPECT_EQ(HealthText(snapshot, WallTime(milliseconds(100'400))),
            "ok\n"
            "nvml: up, read 0.4 s ago\n"
            "replay: bad file, never read\n"
            "simulator: driver hangs, read 10.4 s ago\n");
}

TEST(Pages, AgeIsNotNegativeWhenTheWallClockWasSetBack) {
  Snapshot snapshot;
  snapshot.sources = {Source("nvml")};
  snapshot.sources[0].last_success = WallTime(seconds(100));
  EXPECT_EQ(HealthText(snapshot, WallTime(seconds(50))), "ok\nnvml: up, read 0.0 s ago\n");
}

TEST(Pages, TheIndexAndTheListOfPathsNameTheSamePages) {
  for (const std::string path :
       {"/metrics", "/healthz", "/readyz", "/api/v1/snapshot", "/api/v1/views"}) {
    EXPECT_NE(IndexHtml().find("<a href=\"" + path + "\">"), std::string::npos);
    EXPECT_NE(PathsText().find("\n" + path + "\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace gpuassay
