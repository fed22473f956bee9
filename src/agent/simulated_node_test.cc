#include "agent/simulated_node.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "agent/test_story.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

TEST(SimulatedNode, AScenarioWithOnlyGpusHasNone) {
  const auto node = SimulatedNode::Start(TestStory(TestStory::kGpusOnly).path());
  ASSERT_TRUE(node) << node.error().what;
  EXPECT_EQ(*node, nullptr);
}

TEST(SimulatedNode, AMistakeInTheFileIsBadInput) {
  const auto node = SimulatedNode::Start(TestStory("gpus: 3\n").path());
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, ErrorCode::kMalformed);
  EXPECT_NE(node.error().what.find("story.yaml:1:"), std::string::npos) << node.error().what;
}

TEST(SimulatedNode, SaysWhenSomethingHasChanged) {
  const TestStory story;
  const auto node = SimulatedNode::Start(story.path());
  ASSERT_TRUE(node) << node.error().what;
  EXPECT_TRUE((*node)->MoveTo(seconds(0)));
  EXPECT_FALSE((*node)->MoveTo(seconds(4)));
  EXPECT_TRUE((*node)->MoveTo(seconds(5)));   // the pod
  EXPECT_TRUE((*node)->MoveTo(seconds(11)));  // its process
  EXPECT_FALSE((*node)->MoveTo(seconds(49)));
  EXPECT_TRUE((*node)->MoveTo(seconds(50)));
  EXPECT_TRUE((*node)->MoveTo(seconds(100)));
}

TEST(SimulatedNode, HasProcessesAndReportsWhileTheyRun) {
  const TestStory story;
  auto node = SimulatedNode::Start(story.path());
  ASSERT_TRUE(node) << node.error().what;
  const std::string process = (*node)->root() + "/proc/4711";
  MemoryReports reports;
  const SteadyTime now{};
  (*node)->MoveTo(seconds(0));
  (*node)->Report(now, reports);
  EXPECT_FALSE(std::filesystem::exists(process));
  EXPECT_TRUE(reports.Find(4711, now).empty());
  (*node)->MoveTo(seconds(20));
  (*node)->Report(now, reports);
  EXPECT_TRUE(std::filesystem::exists(process));
  ASSERT_EQ(reports.Find(4711, now).size(), 1U);
  EXPECT_EQ(reports.Find(4711, now)[0].reserved_bytes, std::uint64_t{3} << 30);
  EXPECT_EQ(reports.Find(4711, now)[0].allocated_bytes, std::uint64_t{2} << 30);
  const std::string root = (*node)->root();
  node->reset();
  EXPECT_FALSE(std::filesystem::exists(root));
}

}  // namespace
}  // namespace gpuassay
