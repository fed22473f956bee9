#include "attribution/node/process_owners.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "attribution/node/recorded_root.h"

namespace gpuassay {
namespace {

using namespace std::string_view_literals;

// A root with processes that a test writes and changes.
class ProcessOwnersTest : public testing::Test {
 protected:
  ProcessOwnersTest() {
    root_.Write("etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1000:1::/:/");
  }

  void Process(std::uint32_t pid, std::uint64_t start_ticks, std::string_view comm = "python3",
               std::string_view cgroup = "0::/system.slice/train.service\n",
               std::uint32_t uid = 1000) {
    Stat(pid, start_ticks, comm);
    root_.Write(Path(pid, "status"), fmt::format("Name:\t{}\nTgid:\t{}\nUid:\t{}\t0\t0\t0\n"
                                                 "NSpid:\t{}\n",
                                                 comm, pid, uid, pid));
    root_.Write(Path(pid, "cgroup"), cgroup);
  }
  void Stat(std::uint32_t pid, std::uint64_t start_ticks, std::string_view comm) {
    root_.Write(Path(pid, "stat"), fmt::format("{} ({}) S 1 {} {} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 "
                                               "{} 0 0\n",
                                               pid, comm, pid, pid, start_ticks));
  }
  static std::string Path(std::uint32_t pid, std::string_view file) {
    return fmt::format("proc/{}/{}", pid, file);
  }

  TemporaryDirectory root_;
};

TEST_F(ProcessOwnersTest, FindsUnitUserNameAndStart) {
  Process(42, 500);
  root_.Write(Path(42, "cmdline"), "/usr/bin/python3.11\0train.py\0"sv);
  ProcessOwners owners(root_.Root());
  const ProcessFacts* const facts = owners.Find(42);
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->owner.systemd_unit, "train.service");
  EXPECT_EQ(facts->owner.user, "alice");
  EXPECT_EQ(facts->name, "python3.11");
  EXPECT_EQ(facts->start_after_boot, std::chrono::seconds(5));
  EXPECT_FALSE(facts->other_pid_namespace);
  EXPECT_EQ(owners.Find(43), nullptr);
}

TEST_F(ProcessOwnersTest, WithoutACommandLineTheKernelsNameCounts) {
  Process(42, 500, "kernel work");
  root_.Write(Path(42, "cmdline"), "");
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(owners.Find(42)->name, "kernel work");
  Process(43, 500, "trainer");
  root_.Write(Path(43, "cmdline"), "trainer: step 3/10\0\0\0"sv);
  EXPECT_EQ(owners.Find(43)->name, "trainer:");
}

TEST_F(ProcessOwnersTest, APidThatIsUsedAgainIsAnotherProcess) {
  Process(42, 500);
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(owners.Find(42)->owner.systemd_unit, "train.service");
  Process(42, 501, "python3", "0::/system.slice/other.service\n", 0);
  EXPECT_EQ(owners.Find(42)->owner.systemd_unit, "other.service");
  EXPECT_EQ(owners.Find(42)->owner.user, "root");
}

TEST_F(ProcessOwnersTest, AKnownProcessIsNotReadAgainEachTime) {
  Process(42, 500);
  ProcessOwners owners(root_.Root());
  owners.Find(42);
  root_.Write(Path(42, "cgroup"), "0::/system.slice/other.service\n");
  int asked = 0;
  while (owners.Find(42)->owner.systemd_unit == "train.service") ++asked;
  EXPECT_EQ(asked, 4 + 42 % 4 - 1);  // the next call has read the cgroup
  EXPECT_EQ(owners.Find(42)->owner.systemd_unit, "other.service");
}

TEST_F(ProcessOwnersTest, AMoveIsNoticedHoweverLateItComes) {
  Process(42, 500);
  ProcessOwners owners(root_.Root());
  for (int i = 0; i < 2000; ++i) owners.Find(42);
  root_.Write(Path(42, "cgroup"), "0::/system.slice/other.service\n");
  std::uint32_t asked = 0;
  while (owners.Find(42)->owner.systemd_unit == "train.service") ++asked;
  EXPECT_LT(asked, ProcessOwners::kLookAgainMax);
  EXPECT_GT(asked, 0U);  // not each time
}

TEST_F(ProcessOwnersTest, AnExecIsNoticedByTheName) {
  Process(42, 500, "sh");
  root_.Write(Path(42, "environ"), "SLURM_JOB_ID=1\0"sv);
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(owners.Find(42)->owner.job->id, "1");
  root_.Write(Path(42, "environ"), "SLURM_JOB_ID=2\0"sv);
  EXPECT_EQ(owners.Find(42)->owner.job->id, "1");
  Stat(42, 500, "python3");
  EXPECT_EQ(owners.Find(42)->owner.job->id, "2");
}

TEST_F(ProcessOwnersTest, WhatIsNotKnownIsLearnedElsewhere) {
  Process(42, 500);
  Process(41, 500);
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(owners.FindKnown(42), nullptr);
  EXPECT_EQ(owners.FindKnown(42), nullptr);
  EXPECT_EQ(owners.FindKnown(41), nullptr);
  EXPECT_EQ(owners.FindKnown(43), nullptr);  // no such process: nothing to learn
  EXPECT_EQ(owners.TakeToLearn(), (std::vector<std::uint32_t>{41, 42}));
  EXPECT_TRUE(owners.TakeToLearn().empty());

  std::optional<LearnedProcess> learned = LearnProcess(Proc(root_.Root()), 42, ReadDepth::kAll);
  ASSERT_TRUE(learned.has_value());
  EXPECT_EQ(owners.Remember(std::move(*learned))->owner.user, "alice");
  ASSERT_NE(owners.FindKnown(42), nullptr);
  EXPECT_EQ(owners.FindKnown(42)->owner.systemd_unit, "train.service");
  EXPECT_TRUE(owners.TakeToLearn().empty());
}

TEST_F(ProcessOwnersTest, OldFactsAreGivenUntilTheNewOnesAreLearned) {
  Process(42, 500, "sh");
  ProcessOwners owners(root_.Root());
  owners.Find(42);
  Process(42, 500, "python3", "0::/system.slice/other.service\n");
  ASSERT_NE(owners.FindKnown(42), nullptr);
  EXPECT_EQ(owners.FindKnown(42)->owner.systemd_unit, "train.service");
  EXPECT_EQ(owners.TakeToLearn(), (std::vector<std::uint32_t>{42}));
  owners.Remember(*LearnProcess(Proc(root_.Root()), 42, ReadDepth::kAll));
  EXPECT_EQ(owners.FindKnown(42)->owner.systemd_unit, "other.service");
}

TEST_F(ProcessOwnersTest, WhatCannotBlockLeavesTheMemoryOfTheProcessAlone) {
  Process(42, 500);
  root_.Write(Path(42, "environ"), "NVIDIA_VISIBLE_DEVICES=all\0"sv);
  root_.Write(Path(42, "cmdline"), "/bin/trainer\0"sv);
  const auto learned = LearnProcess(Proc(root_.Root()), 42, ReadDepth::kWhatCannotBlock);
  ASSERT_TRUE(learned.has_value());
  EXPECT_EQ(learned->facts.name, "python3");
  EXPECT_EQ(learned->facts.nvidia_visible_devices, "");
  EXPECT_EQ(learned->facts.owner.systemd_unit, "train.service");
  EXPECT_EQ(learned->real_uid, 1000u);
}

TEST_F(ProcessOwnersTest, TheEnvironmentTellsTheJobWhereTheCgroupDoesNot) {
  Process(42, 500, "python3", "0::/system.slice/slurmd.service\n");
  root_.Write(Path(42, "environ"),
              "SLURM_JOB_ID=4711\0SLURM_STEP_ID=4294967291\0SLURM_JOB_GPUS=0,1\0"sv);
  ProcessOwners owners(root_.Root());
  const ProcessFacts* const facts = owners.Find(42);
  ASSERT_TRUE(facts->owner.job.has_value());
  EXPECT_EQ(*facts->owner.job, (JobIdentity{.kind = "slurm", .id = "4711", .step = "batch"}));
  EXPECT_EQ(facts->owner.systemd_unit, "");
  EXPECT_EQ(facts->slurm_gpus, "0,1");
}

TEST_F(ProcessOwnersTest, TheEnvironmentOfAnotherJobDoesNotCount) {
  Process(42, 500, "python3", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n");
  root_.Write(Path(42, "environ"),
              "SLURM_JOB_ID=6\0SLURM_ARRAY_JOB_ID=5\0SLURM_ARRAY_TASK_ID=1\0SLURM_JOB_GPUS=3\0"sv);
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(*owners.Find(42)->owner.job, (JobIdentity{.kind = "slurm", .id = "7", .step = "0"}));
  EXPECT_EQ(owners.Find(42)->slurm_gpus, "");
}

TEST_F(ProcessOwnersTest, AnArrayJobIsCalledAsUsersCallIt) {
  Process(42, 500, "python3", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n");
  root_.Write(Path(42, "environ"),
              "SLURM_JOB_ID=7\0SLURM_ARRAY_JOB_ID=5\0SLURM_ARRAY_TASK_ID=1\0"
              "SLURM_JOB_GPUS=2,3\0SLURM_STEP_GPUS=3\0"sv);
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(*owners.Find(42)->owner.job, (JobIdentity{.kind = "slurm", .id = "5_1", .step = "0"}));
  EXPECT_EQ(owners.Find(42)->slurm_gpus, "3");
}

TEST_F(ProcessOwnersTest, AJobOfTheEnvironmentIsANumber) {
  Process(42, 500);
  root_.Write(Path(42, "environ"), "SLURM_JOB_ID=my job\0"sv);
  ProcessOwners owners(root_.Root());
  EXPECT_FALSE(owners.Find(42)->owner.job.has_value());
}

TEST_F(ProcessOwnersTest, UsersAreReadAgainWhenTheFileChanges) {
  Process(42, 500);
  Process(43, 500, "python3", "0::/\n", 1001);
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(owners.Find(42)->owner.user, "alice");
  EXPECT_EQ(owners.Find(43)->owner.user, "1001");
  root_.Write("etc/passwd", "alice:x:1000:1::/:/\nbob:x:1001:1::/:/\nb:x:1001:1::/:/\n:x:1002:\n");
  Process(44, 500, "python3", "0::/\n", 1001);
  EXPECT_EQ(owners.Find(44)->owner.user, "bob");
}

TEST_F(ProcessOwnersTest, WithoutAFileOfUsersTheNumberIsTheName) {
  std::filesystem::remove(root_.path() + "/etc/passwd");
  Process(42, 500);
  EXPECT_EQ(ProcessOwners(root_.Root()).Find(42)->owner.user, "1000");
}

TEST_F(ProcessOwnersTest, AUserThatCannotBeReadIsUnknown) {
  Stat(42, 500, "python3");
  ProcessOwners owners(root_.Root());
  ASSERT_NE(owners.Find(42), nullptr);
  EXPECT_EQ(owners.Find(42)->owner.user, "");
}

TEST_F(ProcessOwnersTest, APidThatIsNotThereIsLookedForLessAndLessOften) {
  ProcessOwners owners(root_.Root());
  EXPECT_EQ(owners.FindKnown(42), nullptr);
  Process(42, 500);
  EXPECT_EQ(owners.FindKnown(42), nullptr);
  EXPECT_TRUE(owners.TakeToLearn().empty());  // not looked at again in the same cycle
  owners.BeginCycle();
  EXPECT_EQ(owners.FindKnown(42), nullptr);
  EXPECT_EQ(owners.TakeToLearn(), std::vector<std::uint32_t>{42});

  const auto cycles_until_seen = [&owners](std::uint32_t pid) {
    for (std::uint64_t cycle = 1; cycle < 1000; ++cycle) {
      owners.BeginCycle();
      owners.FindKnown(pid);
      if (!owners.TakeToLearn().empty()) return cycle;
    }
    return std::uint64_t{0};
  };
  for (int cycle = 0; cycle < 1000; ++cycle) {
    owners.BeginCycle();
    owners.FindKnown(43);
  }
  Process(43, 500);
  const std::uint64_t waited = cycles_until_seen(43);
  EXPECT_GT(waited, 1U);
  EXPECT_LE(waited, ProcessOwners::kAbsentCyclesMax);
}

TEST_F(ProcessOwnersTest, ForgetsWhatNobodyAsksFor) {
  Process(42, 500);
  Process(43, 500);
  ProcessOwners owners(root_.Root());
  owners.Find(42);
  owners.Find(43);
  owners.BeginCycle();
  EXPECT_EQ(owners.remembered(), 2u);
  owners.Find(43);
  owners.BeginCycle();
  EXPECT_EQ(owners.remembered(), 1u);
  std::filesystem::remove_all(root_.path() + "/proc/43");
  EXPECT_EQ(owners.Find(43), nullptr);
  EXPECT_EQ(owners.remembered(), 0u);
}

TEST_F(ProcessOwnersTest, RemembersABoundedNumber) {
  Process(1, 500);
  ProcessOwners owners(root_.Root());
  const LearnedProcess learned = *LearnProcess(Proc(root_.Root()), 1, ReadDepth::kAll);
  for (std::uint32_t pid = 1; pid <= ProcessOwners::kRememberedMax + 10; ++pid) {
    LearnedProcess other = learned;
    other.pid = pid;
    owners.Remember(std::move(other));
  }
  EXPECT_EQ(owners.remembered(), ProcessOwners::kRememberedMax);
}

TEST(ProcessOwners, FindsThisProcessInTheLiveRoot) {
  ProcessOwners owners(*RootFs::Open("/"), static_cast<double>(sysconf(_SC_CLK_TCK)));
  const ProcessFacts* const facts = owners.Find(static_cast<std::uint32_t>(getpid()));
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->name, "attribution_node_tests");
  EXPECT_NE(facts->owner.user, "");
  EXPECT_GT(facts->start_after_boot, Duration(0));
}

}  // namespace
}  // namespace gpuassay
