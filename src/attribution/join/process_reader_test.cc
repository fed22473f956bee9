#include "attribution/join/process_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "attribution/join/test_root.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// All answers there are until `count` have come.
std::vector<ProcessReader::Answer> TakeAll(ProcessReader& reader, std::size_t count) {
  std::vector<ProcessReader::Answer> all;
  for (int i = 0; i < 100 && all.size() < count; ++i) {
    std::ranges::move(reader.Take(milliseconds(200)), std::back_inserter(all));
  }
  return all;
}

const ProcessReader::Answer& Of(const std::vector<ProcessReader::Answer>& all, std::uint32_t pid) {
  const auto found = std::ranges::find(all, pid, &ProcessReader::Answer::pid);
  Check(found != all.end(), "there is an answer for each process");
  return *found;
}

TEST(ProcessReader, ReadsWhatItIsAskedForWithNames) {
  const TestRoot root;
  root.Process(42, 500, PodCgroup('a'));
  root.MakeDirectory(fmt::format("var/log/pods/ml_train-0_{}/main", kPodUid));
  ProcessReader reader(root.Root());
  reader.Ask({42, 43});
  const auto answers = TakeAll(reader, 2);
  ASSERT_EQ(answers.size(), 2U);
  const ProcessFacts& facts = Of(answers, 42).learned->facts;
  EXPECT_EQ(facts.owner.pod->name, "train-0");
  EXPECT_EQ(facts.owner.container->name, "main");
  EXPECT_EQ(facts.name, "python3");
  EXPECT_FALSE(Of(answers, 42).hangs);
  EXPECT_FALSE(Of(answers, 43).learned);  // no such process
  EXPECT_TRUE(reader.Take(seconds(0)).empty());
}

TEST(ProcessReader, OneThatHangsIsGivenUpAndTheNextAreRead) {
  const TestRoot root;
  root.Process(42, 500);
  root.Hang(42);
  root.Process(43, 500);
  {
    ProcessReader reader(root.Root(), milliseconds(50));
    reader.Ask({42, 43});
    const auto answers = TakeAll(reader, 2);
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_TRUE(Of(answers, 42).hangs);
    EXPECT_EQ(Of(answers, 42).learned->facts.owner.systemd_unit, "train.service");
    EXPECT_FALSE(Of(answers, 43).hangs);
    EXPECT_EQ(reader.left(), 1U);
    root.LetGo(42);
    // The thread ends, and is not counted any more from the next question on.
    for (int i = 0; i < 2000 && reader.left() > 0; ++i) {
      reader.Ask({43});
      reader.Take(seconds(1));
    }
    EXPECT_EQ(reader.left(), 0U);
  }
}

TEST(ProcessReader, WhenTooManyHangOnlyWhatCannotBlockIsRead) {
  const TestRoot root;
  constexpr std::uint32_t kFirst = 100;
  constexpr std::uint32_t kCount = ProcessReader::kLeftMax + 3;
  std::vector<std::uint32_t> pids;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    pids.push_back(kFirst + i);
    root.Process(kFirst + i, 500);
    root.Hang(kFirst + i);
  }
  {
    ProcessReader reader(root.Root(), milliseconds(20));
    reader.Ask(pids);
    const auto answers = TakeAll(reader, kCount);
    EXPECT_EQ(answers.size(), kCount);
    for (const std::uint32_t pid : pids) {
      EXPECT_TRUE(Of(answers, pid).hangs);
      EXPECT_EQ(Of(answers, pid).learned->facts.owner.user, "");  // filled in by ProcessOwners
      EXPECT_EQ(Of(answers, pid).learned->real_uid, 1000U);
    }
    EXPECT_EQ(reader.left(), ProcessReader::kLeftMax);
  }
  for (std::size_t i = 0; i < ProcessReader::kLeftMax; ++i) root.LetGo(pids[i]);
}

TEST(ProcessReader, WhoAsksDoesNotWaitForOneThatHangs) {
  const TestRoot root;
  root.Process(42, 500);
  root.Hang(42);
  ProcessReader reader(root.Root(), std::chrono::hours(1));
  reader.Ask({42});
  EXPECT_TRUE(reader.Take(milliseconds(1)).empty());
  root.LetGo(42);
  EXPECT_EQ(TakeAll(reader, 1).size(), 1U);
}

}  // namespace
}  // namespace gpuassay
