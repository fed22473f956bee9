#include "agent/worker_policy.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

using Action = WorkerPolicy::Action;

SteadyTime At(double seconds) {
  return SteadyTime(Duration(static_cast<Duration::rep>(seconds * 1e6)));
}

class WorkerPolicyTest : public testing::Test {
 protected:
  // Starts, hangs on `gpu` and is killed; returns the time of death.
  double HangOnce(double now, std::optional<std::uint32_t> gpu) {
    EXPECT_EQ(policy_.Decide(At(now)), Action::kStart);
    policy_.OnStarted(At(now));
    EXPECT_EQ(policy_.Decide(At(now + 19.9)), Action::kNone);
    EXPECT_EQ(policy_.Decide(At(now + 20)), Action::kKill);
    policy_.OnHangingGpu(At(now + 20), gpu);
    policy_.OnExit(At(now + 20), false);
    return now + 20;
  }
  WorkerPolicy policy_{WorkerPolicyOptions{}};
};

TEST_F(WorkerPolicyTest, StartsAtOnceAndStaysQuietWhileReadingsCome) {
  EXPECT_EQ(policy_.Decide(At(0)), Action::kStart);
  policy_.OnStarted(At(0));
  for (int second = 1; second < 100; ++second) {
    policy_.OnReading(At(second));
    EXPECT_EQ(policy_.Decide(At(second)), Action::kNone);
    EXPECT_FALSE(policy_.Hanging(At(second + 2.9)));
  }
}

TEST_F(WorkerPolicyTest, HangsAfterThreeSecondsAndIsKilledAfterTwenty) {
  policy_.OnStarted(At(0));
  policy_.OnReading(At(1));
  EXPECT_FALSE(policy_.Hanging(At(3.9)));
  EXPECT_TRUE(policy_.Hanging(At(4)));
  EXPECT_EQ(policy_.NextDecision(At(2)), At(4));
  EXPECT_EQ(policy_.NextDecision(At(4)), At(21));
  EXPECT_EQ(policy_.Decide(At(20.9)), Action::kNone);
  EXPECT_EQ(policy_.Decide(At(21)), Action::kKill);
  EXPECT_EQ(policy_.Decide(At(21.1)), Action::kNone);
}

TEST_F(WorkerPolicyTest, AnAnswerInTimeForgivesTheHang) {
  policy_.OnStarted(At(0));
  policy_.OnReading(At(19));
  EXPECT_FALSE(policy_.Hanging(At(19)));
  EXPECT_EQ(policy_.Decide(At(20)), Action::kNone);
}

TEST_F(WorkerPolicyTest, LeavesAWorkerThatDoesNotDieAndStopsAfterThree) {
  double now = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(policy_.Decide(At(now)), Action::kStart) << i;
    policy_.OnStarted(At(now));
    EXPECT_EQ(policy_.Decide(At(now + 20)), Action::kKill);
    EXPECT_EQ(policy_.Decide(At(now + 21.9)), Action::kNone);
    EXPECT_EQ(policy_.Decide(At(now + 22)), Action::kAbandon);
    policy_.OnAbandoned(At(now + 22));
    now += 22 + 100;
  }
  EXPECT_EQ(policy_.Decide(At(now + 1000)), Action::kNone);
  policy_.OnAbandonedDied();
  EXPECT_EQ(policy_.Decide(At(now + 1000)), Action::kStart);
}

TEST_F(WorkerPolicyTest, BacksOffBetweenFailuresUpToAMinute) {
  double now = 0;
  for (const double wait : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0}) {
    policy_.OnStarted(At(now));
    policy_.OnExit(At(now), false);
    EXPECT_EQ(policy_.Decide(At(now + wait - 0.1)), Action::kNone) << wait;
    EXPECT_EQ(policy_.NextDecision(At(now)), At(now + wait));
    now += wait;
    EXPECT_EQ(policy_.Decide(At(now)), Action::kStart) << wait;
  }
  policy_.OnStarted(At(now));
  policy_.OnReading(At(now));
  policy_.OnExit(At(now), false);
  EXPECT_EQ(policy_.Decide(At(now + 1)), Action::kStart);
}

TEST_F(WorkerPolicyTest, ASuccessorOnRequestIsNoFailure) {
  for (int i = 0; i < 5; ++i) {
    policy_.OnStarted(At(i * 2));
    policy_.OnExit(At(i * 2), true);
    EXPECT_EQ(policy_.Decide(At(i * 2 + 1)), Action::kStart);
  }
}

TEST_F(WorkerPolicyTest, LeavesOutAGpuOnlyWhenTwoWorkersInARowHungOnIt) {
  double now = HangOnce(0, 3) + 1;
  EXPECT_TRUE(policy_.skipped_gpus().empty());
  now = HangOnce(now, 4) + 2;
  EXPECT_TRUE(policy_.skipped_gpus().empty());
  now = HangOnce(now, 4) + 4;
  EXPECT_EQ(policy_.skipped_gpus(), std::vector<std::uint32_t>{4});
}

TEST_F(WorkerPolicyTest, BlamesNoGpuWhenTheWholeDriverHangs) {
  double now = HangOnce(0, std::nullopt) + 1;
  now = HangOnce(now, std::nullopt) + 2;
  EXPECT_TRUE(policy_.skipped_gpus().empty());
}

TEST_F(WorkerPolicyTest, TriesAQuarantinedGpuAgainAndForgivesOrDoubles) {
  double now = HangOnce(0, 4) + 1;
  now = HangOnce(now, 4);  // quarantined until now + 300
  policy_.OnStarted(At(now + 2));
  policy_.OnReading(At(now + 299));
  EXPECT_EQ(policy_.Decide(At(now + 299)), Action::kNone);
  EXPECT_EQ(policy_.skipped_gpus().size(), 1U);
  policy_.OnReading(At(now + 300));
  EXPECT_EQ(policy_.Decide(At(now + 300)), Action::kAskToEnd);
  EXPECT_EQ(policy_.Decide(At(now + 300)), Action::kNone);
  policy_.OnExit(At(now + 300), false);
  EXPECT_TRUE(policy_.skipped_gpus().empty());
  now = HangOnce(now + 301, 4);  // still hangs: out again, for 600 s
  EXPECT_EQ(policy_.skipped_gpus(), std::vector<std::uint32_t>{4});
  policy_.OnStarted(At(now + 10));
  policy_.OnReading(At(now + 599));
  EXPECT_EQ(policy_.Decide(At(now + 599)), Action::kNone);
  policy_.OnReading(At(now + 600));
  EXPECT_EQ(policy_.Decide(At(now + 600)), Action::kAskToEnd);
  policy_.OnExit(At(now + 600), false);
  policy_.OnStarted(At(now + 602));
  policy_.OnReading(At(now + 603));  // answered: forgiven
  policy_.OnExit(At(now + 604), false);
  now = HangOnce(now + 610, 4);
  EXPECT_TRUE(policy_.skipped_gpus().empty());
}

TEST_F(WorkerPolicyTest, ReleasedMeansNoWorkerUntilResumed) {
  policy_.OnStarted(At(0));
  policy_.OnReading(At(1));
  policy_.Release();
  EXPECT_EQ(policy_.Decide(At(1.5)), Action::kAskToEnd);
  EXPECT_EQ(policy_.Decide(At(3.4)), Action::kNone);
  EXPECT_EQ(policy_.NextDecision(At(2)), At(3.5));
  EXPECT_EQ(policy_.Decide(At(3.5)), Action::kKill);
  policy_.OnExit(At(3.6), false);
  EXPECT_EQ(policy_.Decide(At(1000)), Action::kNone);
  policy_.Resume(At(1001));
  EXPECT_EQ(policy_.Decide(At(1001)), Action::kStart);
}

}  // namespace
}  // namespace gpuassay
