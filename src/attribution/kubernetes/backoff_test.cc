#include "attribution/kubernetes/backoff.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

using std::chrono::seconds;

TEST(Backoff, DoublesUpToItsMaximum) {
  Backoff backoff(seconds(2), seconds(10));
  EXPECT_EQ(backoff.Next(), seconds(2));
  EXPECT_EQ(backoff.Next(), seconds(4));
  EXPECT_EQ(backoff.Next(), seconds(8));
  EXPECT_EQ(backoff.Next(), seconds(10));
  EXPECT_EQ(backoff.Next(), seconds(10));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), seconds(2));
}

TEST(Backoff, TakesTheMinimumWhenTheMaximumIsLess) {
  Backoff backoff(seconds(4), seconds(1));
  EXPECT_EQ(backoff.Next(), seconds(4));
  EXPECT_EQ(backoff.Next(), seconds(4));
}

}  // namespace
}  // namespace gpuassay
