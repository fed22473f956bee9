#include "attribution/node/proc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace gpuassay {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kTail =
    " S 7 41 40 0 -1 4194304 287 0 0 0 0 0 0 0 20 0 5 0 2236533 1097728 157 18446744073709551615";

ProcStat Parsed(std::string_view text) {
  const Result<ProcStat> stat = ParseProcStat(text);
  EXPECT_TRUE(stat.has_value()) << text;
  return stat ? *stat : ProcStat{};
}

std::string Refused(std::string_view text) {
  const Result<ProcStat> stat = ParseProcStat(text);
  return stat ? "accepted" : stat.error().what;
}

TEST(ProcStat, ReadsTheFieldsThatAreNeeded) {
  const ProcStat stat = Parsed("42 (python3)" + std::string(kTail));
  EXPECT_EQ(stat.pid, 42u);
  EXPECT_EQ(stat.name, "python3");
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent_pid, 7u);
  EXPECT_EQ(stat.process_group, 41u);
  EXPECT_EQ(stat.session, 40u);
  EXPECT_FALSE(stat.kernel_thread);
  EXPECT_EQ(stat.threads, 5u);
  EXPECT_EQ(stat.start_ticks, 2236533u);
}

TEST(ProcStat, ANameMayHoldWhatSeparatesFields) {
  for (const std::string name : {"python train) 3", ")", "a\nb) S 1", "((", "", " ", "1 (x) R 2"}) {
    const ProcStat stat = Parsed("42 (" + name + ")" + std::string(kTail));
    EXPECT_EQ(stat.name, name);
    EXPECT_EQ(stat.state, 'S') << name;
    EXPECT_EQ(stat.parent_pid, 7u) << name;
    EXPECT_EQ(stat.start_ticks, 2236533u) << name;
  }
}

TEST(ProcStat, TellsThreadsOfTheKernel) {
  EXPECT_TRUE(
      Parsed("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 18446744073709551615 0")
          .kernel_thread);
}

TEST(ProcStat, AProcessThatEndsHasNoGroup) {
  const ProcStat stat = Parsed("42 (x) X 0 -1 -1 0 -1 4194304 0 0 0 0 0 0 0 0 0 0 0 0 77 0 0");
  EXPECT_EQ(stat.process_group, 0u);
  EXPECT_EQ(stat.session, 0u);
  EXPECT_TRUE(stat.Dead());
}

TEST(ProcStat, SaysWhichFieldIsWrong) {
  EXPECT_EQ(Refused(""), "stat of a process: no name in brackets");
  EXPECT_EQ(Refused("42 (python3"), "stat of a process: no name in brackets");
  EXPECT_EQ(Refused("x (python3) S 1"), "stat of a process: the PID is missing or no number");
  EXPECT_EQ(Refused("99999999999 (a) S 1"), "stat of a process: the PID is missing or no number");
  EXPECT_EQ(Refused("42 (a) SS 1"),
            "stat of a process: the state (field 3) is missing or no number");
  EXPECT_EQ(Refused("42 (a) S -1"),
            "stat of a process: the parent (field 4) is missing or no number");
  EXPECT_EQ(Refused("42 (a) S 1 1 1 0 -1"),
            "stat of a process: the flags (field 9) is missing or no number");
  EXPECT_EQ(Refused("42 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 x 0 5 6"),
            "stat of a process: the number of threads (field 20) is missing or no number");
  EXPECT_EQ(Refused("42 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 18446744073709551616 6"),
            "stat of a process: the start (field 22) is missing or no number");
}

TEST(ProcStat, ATextThatIsCutInTheStartIsRefused) {
  EXPECT_EQ(Refused("42 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 2236"),
            "stat of a process: the start (field 22) is missing or no number");
  EXPECT_EQ(Refused("42 (a" + std::string(4096, ' ') + ")" + std::string(kTail)),
            "stat of a process: longer than 4096 bytes");
}

TEST(ProcStatus, ReadsUserAndNamespaces) {
  const Result<ProcStatus> status = ParseProcStatus(
      "Name:\ta\\nb\\\\c\nUmask:\t0022\nTgid:\t100\nPid:\t101\nUid:\t1000\t0\t0\t0\n"
      "NSpid:\t101\t16\t1\nvoluntary_ctxt_switches:\t31\n");
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->name, "a\nb\\c");
  EXPECT_EQ(status->tgid, 100u);
  EXPECT_EQ(status->real_uid, 1000u);
  EXPECT_EQ(status->namespace_pids, (std::vector<std::uint32_t>{101, 16, 1}));
  EXPECT_EQ(status->voluntary_switches, 31u);
}

TEST(ProcStatus, KeepsUnknownWhatIsNotThere) {
  const Result<ProcStatus> status = ParseProcStatus("Tgid:\t100\n");
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->real_uid, std::nullopt);
  EXPECT_TRUE(status->namespace_pids.empty());
  EXPECT_EQ(status->voluntary_switches, std::nullopt);
  EXPECT_EQ(ParseProcStatus("Name:\tx\n").error().what,
            "status of a process: Tgid is missing or no number");
}

TEST(Environment, KeepsOnlyTheNamesThatAreAskedFor) {
  constexpr std::string_view text = "SECRET=s\0SLURM_JOB_ID=4711\0noequals\0SLURM_JOB_ID=1\0E=\0"sv;
  const auto found = ParseEnvironment(text, {"SLURM_JOB_ID", "E", "ABSENT"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], std::pair(std::string("SLURM_JOB_ID"), std::string("4711")));
  EXPECT_EQ(found[1], std::pair(std::string("E"), std::string()));
}

TEST(Environment, CutsALongValue) {
  const auto found = ParseEnvironment("A=" + std::string(5000, 'x'), {"A"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].second.size(), 4096u);
}

TEST(CommandLine, JoinsArgumentsBySpaces) {
  EXPECT_EQ(ParseCommandLine("python3\0train.py\0--lr\0\0x\0"sv), "python3 train.py --lr  x");
  EXPECT_EQ(ParseCommandLine("trainer: step 3\0\0\0\0"sv), "trainer: step 3");
  EXPECT_EQ(ParseCommandLine(""), "");
}

TEST(CommandLine, IsCutAtACharacter) {
  EXPECT_EQ(ParseCommandLine("ab\xC3\xA9", 4), "ab\xC3\xA9");
  EXPECT_EQ(ParseCommandLine("ab\xC3\xA9z", 3), "ab");
  EXPECT_EQ(ParseCommandLine("ab\xE6\x97\xA5z", 4), "ab");
  EXPECT_EQ(ParseCommandLine("abcdef", 3), "abc");
  EXPECT_EQ(ParseCommandLine(std::string(600, 'x')).size(), 512u);
}

TEST(ProcIo, ReadsWhatReachedStorage) {
  const Result<ProcIo> io =
      ParseProcIo("rchar: 849\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n");
  ASSERT_TRUE(io.has_value());
  EXPECT_EQ(io->read_bytes, 4096u);
  EXPECT_EQ(io->written_bytes, 8192u);
  EXPECT_EQ(ParseProcIo("read_bytes: 1\n").error().what,
            "io of a process: write_bytes is missing or no number");
}

TEST(Proc, ReadsThisProcessFromTheLiveRoot) {
  const Proc proc(*RootFs::Open("/"), static_cast<double>(sysconf(_SC_CLK_TCK)));
  const std::uint32_t self = static_cast<std::uint32_t>(getpid());
  const Result<ProcStat> stat = proc.Stat(self);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->pid, self);
  EXPECT_EQ(stat->parent_pid, static_cast<std::uint32_t>(getppid()));
  EXPECT_EQ(stat->session, static_cast<std::uint32_t>(getsid(0)));
  EXPECT_EQ(stat->process_group, static_cast<std::uint32_t>(getpgrp()));
  EXPECT_EQ(proc.StatQuickly(self)->start_ticks, stat->start_ticks);
  EXPECT_EQ(proc.StartAfterBoot(self), proc.TicksToDuration(stat->start_ticks));
  EXPECT_EQ(proc.Status(self)->real_uid, getuid());
  EXPECT_TRUE(proc.Cgroup(self).has_value());
  EXPECT_TRUE(proc.CommandLine(self)->contains("attribution_node_tests"));
  EXPECT_TRUE(proc.Io(self).has_value());
  EXPECT_TRUE(std::ranges::binary_search(*proc.Pids(), self));
  EXPECT_TRUE(proc.PidNamespace(self)->starts_with("pid:["));
}

TEST(Proc, CountsTheThreadsOfThisProcess) {
  const Proc proc(*RootFs::Open("/"));
  const std::uint32_t self = static_cast<std::uint32_t>(getpid());
  const std::size_t before = proc.Threads(self)->size();
  std::jthread thread([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_EQ(proc.Threads(self)->size(), before + 1);
  EXPECT_EQ(proc.Stat(self)->threads, before + 1);
  EXPECT_EQ(proc.LiveThread(*proc.Stat(self)), self);
}

TEST(Proc, SaysThatAProcessIsNotThere) {
  const Proc proc(*RootFs::Open("/"));
  constexpr std::uint32_t kAbove = 4194305;  // the largest PID is 4194304
  EXPECT_EQ(proc.Stat(kAbove).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(proc.Stat(kAbove).error().what, "read /proc/4194305/stat: No such file or directory");
  EXPECT_EQ(proc.StartAfterBoot(kAbove), std::nullopt);
  EXPECT_EQ(proc.OpenFiles(kAbove, "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(proc.PidNamespace(kAbove), std::nullopt);
}

TEST(Proc, ConvertsTicksOfTheRecordedHost) {
  EXPECT_EQ(Proc(*RootFs::Open("/")).TicksToDuration(2236533), Duration(22365330000));
  EXPECT_EQ(Proc(*RootFs::Open("/"), 1000).TicksToDuration(3), Duration(3000));
  EXPECT_GT(Proc(*RootFs::Open("/")).TicksToDuration(UINT64_MAX), Duration(0));
}

}  // namespace
}  // namespace gpuassay
