#include "agent/completion.h"

#include <gtest/gtest.h>

#include <chrono>

#include "agent/test_story.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

Snapshot At(Duration t) {
  Snapshot snapshot;
  snapshot.steady = SteadyTime(t);
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.identity.uuid = "GPU-1";
  gpu.identity.minor_number = 0;
  gpu.readings.up = 1;
  gpu.readings.utilization_mean_ratio = 0.5;
  gpu.readings.memory_used_bytes = 1000;
  gpu.readings.process_count = 1;
  gpu.processes.emplace_back().pid = 4711;
  gpu.processes[0].readings.memory_used_bytes = 600;
  gpu.processes[0].readings.sm_utilization_ratio = 0.5;
  return snapshot;
}

const OwnerUsage* Find(const Gpu& gpu, OwnerKind kind) {
  for (const OwnerUsage& usage : gpu.owners) {
    if (usage.kind == kind) return &usage;
  }
  return nullptr;
}

TEST(Completion, IntegralsAndSharesNeedNoNode) {
  Completion completion;
  Snapshot snapshot = At(seconds(0));
  completion.Apply(snapshot);
  snapshot = At(seconds(1));
  completion.Apply(snapshot);
  EXPECT_EQ(snapshot.gpus[0].readings.busy_seconds_total, Reading(0.5));
  ASSERT_NE(Find(snapshot.gpus[0], OwnerKind::kUnattributed), nullptr);
  EXPECT_EQ(Find(snapshot.gpus[0], OwnerKind::kUnattributed)->readings.memory_used_bytes,
            Reading(400));
  Snapshot raw = At(seconds(2));
  completion.Join(raw);
  EXPECT_TRUE(raw.gpus[0].owners.empty());
}

TEST(Completion, SharesGoToTheOwnersThatTheNodeTells) {
  const TestStory story;
  const SystemClock clock;
  auto join = NodeJoin::Open({SourceSpec::Kind::kSimulator, story.path()}, {},
                             NodeJoin::Pace::kOneShot, clock);
  ASSERT_TRUE(join) << join.error().what;
  Completion completion(seconds(1), std::move(*join));
  Snapshot snapshot = At(seconds(20));
  completion.Apply(snapshot);
  snapshot = At(seconds(21));
  completion.Apply(snapshot);
  const OwnerUsage* const usage = Find(snapshot.gpus[0], OwnerKind::kContainer);
  ASSERT_NE(usage, nullptr);
  EXPECT_EQ(usage->owner.pod->name, "train");
  EXPECT_EQ(usage->readings.memory_used_bytes, Reading(600));
}

}  // namespace
}  // namespace gpuassay
