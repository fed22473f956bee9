#include "web/connection_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ConnectionWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair_.data()), 0);
    watch_.Opened(pair_[0]);
  }
  void TearDown() override {
    watch_.Closed(pair_[0]);
    close(pair_[0]);
    close(pair_[1]);
  }
  // The other end reads the end of the stream.
  bool ShutDown() {
    watch_.ShutDownOverdue();
    char byte = 0;
    return recv(pair_[1], &byte, 1, 0) == 0;
  }

  VirtualClock clock_{WallTime()};
  ConnectionWatch watch_{clock_, seconds(30)};
  std::array<int, 2> pair_{};
};

TEST_F(ConnectionWatchTest, ShutsDownAfterTheLimitAndNotAtIt) {
  clock_.Advance(seconds(30));
  EXPECT_FALSE(ShutDown());
  clock_.Advance(milliseconds(1));
  EXPECT_TRUE(ShutDown());
}

TEST_F(ConnectionWatchTest, AnAnswerStartsTheTimeAnew) {
  clock_.Advance(seconds(29));
  watch_.Answered(pair_[0]);
  clock_.Advance(seconds(29));
  EXPECT_FALSE(ShutDown());
  clock_.Advance(seconds(2));
  EXPECT_TRUE(ShutDown());
}

TEST_F(ConnectionWatchTest, AClosedConnectionIsLeftAlone) {
  watch_.Closed(pair_[0]);
  watch_.Answered(pair_[0]);
  clock_.Advance(seconds(100));
  EXPECT_FALSE(ShutDown());
}

}  // namespace
}  // namespace gpuassay
