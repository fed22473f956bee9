#include "agent/node_join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "agent/test_story.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

class NodeJoinTest : public testing::Test {
 protected:
  Result<std::unique_ptr<NodeJoin>> Open(const SourceSpec& source, const NodeOptions& options = {},
                                         NodeJoin::Pace pace = NodeJoin::Pace::kOneShot,
                                         double speed = 1) {
    return NodeJoin::Open(source, options, pace, clock_, speed);
  }
  SourceSpec Story() const { return {SourceSpec::Kind::kSimulator, story_.path()}; }

  // What the driver of the story lists at that time.
  static Snapshot At(Duration t) {
    Snapshot snapshot;
    snapshot.steady = SteadyTime(t);
    Gpu& gpu = snapshot.gpus.emplace_back();
    gpu.identity.minor_number = 0;
    gpu.processes.emplace_back().pid = 4711;
    return snapshot;
  }
  static const SourceStatus* Find(const Snapshot& snapshot, std::string_view name) {
    const auto found = std::ranges::find(snapshot.sources, name, &SourceStatus::name);
    return found == snapshot.sources.end() ? nullptr : &*found;
  }

  TestStory story_;
  SystemClock clock_;
};

TEST_F(NodeJoinTest, ARecordingAndAttributionThatIsOffHaveNone) {
  const auto replay = Open({SourceSpec::Kind::kReplay, "x.rec"});
  ASSERT_TRUE(replay);
  EXPECT_EQ(*replay, nullptr);
  NodeOptions off;
  off.attribution = false;
  const auto none = Open({SourceSpec::Kind::kNvml, ""}, off);
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, nullptr);
  const TestStory gpus(TestStory::kGpusOnly);
  const auto only_gpus = Open({SourceSpec::Kind::kSimulator, gpus.path()});
  ASSERT_TRUE(only_gpus);
  EXPECT_EQ(*only_gpus, nullptr);
}

TEST_F(NodeJoinTest, WhatWasNamedAndCannotBeReadIsBadInput) {
  NodeOptions options;
  options.root = "/nowhere/at/all";
  const auto root = Open({SourceSpec::Kind::kNvml, ""}, options);
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().code, ErrorCode::kMalformed);
  options = {};
  options.kubeconfig = story_.path();
  const auto kubeconfig = Open({SourceSpec::Kind::kNvml, ""}, options);
  ASSERT_FALSE(kubeconfig);
  EXPECT_EQ(kubeconfig.error().code, ErrorCode::kMalformed);
  EXPECT_NE(kubeconfig.error().what.find("story.yaml"), std::string::npos);
}

TEST_F(NodeJoinTest, AScenarioHasANodeThatFollowsItsTime) {
  const auto join = Open(Story());
  ASSERT_TRUE(join) << join.error().what;
  Snapshot snapshot = At(seconds(1));
  (*join)->Apply(snapshot);
  EXPECT_EQ(snapshot.gpus[0].processes[0].owner, ProcessOwner{});
  ASSERT_NE(snapshot.scheduler, nullptr);
  EXPECT_TRUE(snapshot.scheduler->pods.empty());
  snapshot = At(seconds(20));
  (*join)->Apply(snapshot);
  const ProcessOwner& owner = snapshot.gpus[0].processes[0].owner;
  ASSERT_TRUE(owner.pod.has_value());
  EXPECT_EQ(owner.pod->name, "train");
  EXPECT_EQ(owner.pod->namespace_name, "ml");
  ASSERT_EQ(snapshot.scheduler->allocations.size(), 1U);
  EXPECT_EQ(snapshot.scheduler->allocations[0].owner.pod->name, "train");
  for (const char* const name : {"procfs", "pod_resources", "kubernetes_api"}) {
    const SourceStatus* const source = Find(snapshot, name);
    ASSERT_NE(source, nullptr) << name;
    EXPECT_EQ(source->error, "") << name;
    EXPECT_EQ(source->last_success, snapshot.time) << name;
  }
  const std::string uuid = snapshot.scheduler->allocations[0].unit.device_id;
  snapshot = At(seconds(21));
  snapshot.gpus[0].identity.uuid = uuid;
  (*join)->Apply(snapshot);
  EXPECT_EQ(snapshot.scheduler->allocations[0].unit.gpu_uuid, uuid);
  EXPECT_EQ(snapshot.gpus[0].processes[0].readings.memory_pool_reserved_bytes,
            Reading(3.0 * (1 << 30)));
  snapshot = At(seconds(70));
  (*join)->Apply(snapshot);
  EXPECT_TRUE(snapshot.scheduler->pods.empty());
}

TEST_F(NodeJoinTest, ANamedRootTakesThePlaceOfTheScenarios) {
  const TemporaryDirectory root;
  root.MakeDirectory("proc");
  NodeOptions options;
  options.root = root.path();
  const auto join = Open(Story(), options);
  ASSERT_TRUE(join) << join.error().what;
  Snapshot snapshot = At(seconds(20));
  (*join)->Apply(snapshot);
  EXPECT_EQ(snapshot.gpus[0].processes[0].owner, ProcessOwner{});
  EXPECT_EQ(Find(snapshot, "pod_resources"), nullptr);
}

TEST_F(NodeJoinTest, ALiveScenarioRunsAtItsSpeedAndBeginsAnewWithItsSource) {
  const auto join = Open(Story(), {}, NodeJoin::Pace::kLive, 10);
  ASSERT_TRUE(join) << join.error().what;
  const auto pod_at = [&](Duration steady) {
    Snapshot snapshot = At(steady);
    (*join)->Apply(snapshot);
    const ProcessOwner& owner = snapshot.gpus[0].processes[0].owner;
    return owner.pod.has_value() ? owner.pod->name : "";
  };
  EXPECT_EQ(pod_at(seconds(1000)), "");
  EXPECT_EQ(pod_at(seconds(1002)), "train");  // 20 s of the scenario: named by its logs at once
  (*join)->SourceStarts();
  EXPECT_EQ(pod_at(seconds(1003)), "");
  EXPECT_EQ(pod_at(seconds(1005)), "train");
}

}  // namespace
}  // namespace gpuassay
