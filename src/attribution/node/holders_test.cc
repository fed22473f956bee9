#include "attribution/node/holders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "attribution/node/recorded_root.h"

namespace gpuassay {
namespace {

// --- recorded roots ------------------------------------------------------------------------------

std::filesystem::path RootFile(std::string_view name) {
  return fmt::format("{}/tests/roots/{}.root", GPUASSAY_SOURCE_DIR, name);
}

HolderScan Scan(const RootFs& root, HolderOptions options = {}) {
  options.hangs_after = std::min<Duration>(options.hangs_after, std::chrono::milliseconds(1));
  ProcessOwners owners(root);
  Result<HolderScan> scan = ScanHolders(Proc(root), owners, options);
  Check(scan.has_value(), "this root has processes");
  return std::move(*scan);
}

const DeviceHolder* HolderOf(const HolderScan& scan, std::uint32_t pid) {
  const auto found = std::ranges::find(scan.found, pid,
                                       [](const HolderScan::Found& one) { return one.holder.pid; });
  return found == scan.found.end() ? nullptr : &found->holder;
}

// What this scan alone can know: the process whose container is gone has lost its parent, too.
std::string KindToBeFound(const std::string& expected) {
  return expected == "container_gone" ? "orphan" : expected;
}

TEST(Holders, EachRecordedHolderIsOfItsKind) {
  std::size_t holders = 0;
  for (const std::filesystem::path& file :
       RecordedRootFiles(std::string(GPUASSAY_SOURCE_DIR) + "/tests/roots")) {
    const TemporaryDirectory directory;
    const RecordedRoot recorded(file, directory);
    const HolderScan scan = Scan(directory.Root());
    EXPECT_EQ(scan.unreadable, 0u) << file;
    for (const RecordedRoot::Expectation& expected : recorded.expectations()) {
      const auto kind = expected.values.find("holder");
      if (kind == expected.values.end()) continue;
      ++holders;
      const DeviceHolder* const holder = HolderOf(scan, expected.pid);
      ASSERT_NE(holder, nullptr) << file << " " << expected.pid;
      EXPECT_EQ(HolderKindName(holder->kind), KindToBeFound(kind->second)) << file;
      const auto alive = expected.values.find("threads_alive");
      EXPECT_EQ(std::to_string(holder->threads_alive),
                alive == expected.values.end() ? "1" : alive->second);
    }
  }
  EXPECT_EQ(holders, 6u);
}

TEST(Holders, ADefunctLeaderIsToldWithItsOwnerAndTheFilesOfItsThreads) {
  const TemporaryDirectory directory;
  const RecordedRoot recorded(RootFile("process-defunct-leader"), directory);
  const HolderScan scan = Scan(directory.Root());
  ASSERT_EQ(scan.found.size(), 1u);
  const DeviceHolder& holder = scan.found[0].holder;
  EXPECT_EQ(holder.pid, 28611u);
  EXPECT_EQ(holder.parent_pid, 28628u);
  EXPECT_EQ(holder.name, "python3");
  EXPECT_EQ(holder.state, 'Z');
  EXPECT_EQ(holder.clean_up, CleanUp::kEndProcess);
  EXPECT_EQ(holder.start_after_boot, Duration(std::chrono::milliseconds(22364720)));
  EXPECT_EQ(*holder.owner.job, (JobIdentity{.kind = "slurm", .id = "4740", .step = "0"}));
  EXPECT_EQ(holder.owner.user, "alice");
  EXPECT_EQ(scan.found[0].files,
            (std::vector<std::string>{"/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"}));
}

TEST(Holders, OfMpsOnlyTheServerHoldsTheGpuAndEndingItInterruptsItsClients) {
  const TemporaryDirectory directory;
  const RecordedRoot recorded(RootFile("process-mps"), directory);
  const HolderScan scan = Scan(directory.Root());
  EXPECT_EQ(HolderOf(scan, 28625), nullptr);  // the control daemon
  ASSERT_NE(HolderOf(scan, 28632), nullptr);
  EXPECT_EQ(HolderOf(scan, 28632)->clean_up, CleanUp::kEndMpsServer);
  ASSERT_NE(HolderOf(scan, 28639), nullptr);  // a client
  EXPECT_EQ(HolderOf(scan, 28639)->clean_up, CleanUp::kEndProcess);
}

// --- roots that a test writes --------------------------------------------------------------------

// A process of user 0 with one open file.
void Write(const TemporaryDirectory& root, std::uint32_t pid, char state, std::uint32_t parent,
           std::uint32_t session, std::string_view file = "/dev/nvidia0") {
  const std::string at = fmt::format("proc/{}/", pid);
  root.Write(at + "stat", fmt::format("{} (python3) {} {} {} {} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 "
                                      "500 0 0\n",
                                      pid, state, parent, session, session));
  root.Write(at + "status", fmt::format("Name:\tpython3\nTgid:\t{}\nUid:\t0\t0\t0\t0\nNSpid:\t{}\n"
                                        "voluntary_ctxt_switches:\t7\n",
                                        pid, pid));
  root.Link(at + "fd/3", std::string(file));
}

TEST(Holders, OnlyDeviceFilesOfGpusCount) {
  const TemporaryDirectory root;
  Write(root, 40, 'S', 1, 40, "/dev/null");
  Write(root, 41, 'S', 1, 41, "/dev/nvme0n1");
  Write(root, 42, 'S', 1, 42, "/dev/nvidia0 (deleted)");
  Write(root, 43, 'S', 1, 43, "/data/dev/nvidia0");
  Write(root, 44, 'S', 1, 44, "/dev/nvidia-caps/nvidia-cap3");
  const HolderScan scan = Scan(root.Root());
  ASSERT_EQ(scan.found.size(), 2u);
  EXPECT_EQ(scan.found[0].holder.pid, 42u);
  EXPECT_EQ(scan.found[0].holder.kind, HolderKind::kOther);
  EXPECT_EQ(scan.found[0].files, std::vector<std::string>{"/dev/nvidia0"});
  EXPECT_EQ(scan.found[1].holder.pid, 44u);
}

TEST(Holders, AnOrphanHasLostTheLeaderOfItsSessionAndItsParent) {
  const TemporaryDirectory root;
  Write(root, 2, 'S', 1, 2, "/dev/null");  // systemd --user: a subreaper
  Write(root, 3, 'S', 1, 3, "/dev/null");  // a shell
  Write(root, 4, 'Z', 3, 4, "/dev/null");  // has ended; nobody has waited for it
  Write(root, 50, 'S', 1, 50);             // a daemon: leads its own session
  Write(root, 51, 'S', 1, 3);              // its shell lives
  Write(root, 52, 'S', 1, 99);
  Write(root, 53, 'S', 2, 99);
  Write(root, 54, 'S', 2, 4);
  Write(root, 55, 'S', 3, 3);
  Write(root, 56, 'S', 0, 99);  // its parent is in a namespace that this root does not show
  Write(root, 57, 'S', 2, 0);   // as its session
  const HolderScan scan = Scan(root.Root());
  std::vector<std::uint32_t> orphans;
  for (const HolderScan::Found& found : scan.found) {
    if (found.holder.kind == HolderKind::kOrphan) orphans.push_back(found.holder.pid);
  }
  EXPECT_EQ(scan.found.size(), 8u);
  EXPECT_EQ(orphans, (std::vector<std::uint32_t>{52, 53, 54}));
}

TEST(Holders, ADaemonOfAServiceIsNoOrphanUnlessItsJobOrContainerIsKnown) {
  const TemporaryDirectory root;
  const std::string id(64, 'a');
  const std::array<std::string, 5> cgroups = {
      "/system.slice/nvidia-persistenced.service",
      "/system.slice/slurmd.service/docker-" + id + ".scope",
      "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0",
      "/user.slice/user-1000.slice/session-3.scope", "/"};
  std::string orphans;
  for (std::uint32_t i = 0; i < cgroups.size(); ++i) {
    Write(root, 50 + i, 'S', 1, 99);
    root.Write(fmt::format("proc/{}/cgroup", 50 + i), "0::" + cgroups[i] + "\n");
  }
  for (const HolderScan::Found& found : Scan(root.Root()).found) {
    if (found.holder.kind == HolderKind::kOrphan) orphans += fmt::format("{} ", found.holder.pid);
  }
  EXPECT_EQ(orphans, "51 52 53 54 ");
}

TEST(Holders, APidThatIsYoungerThanTheProcessIsNotItsLeader) {
  const TemporaryDirectory root;
  Write(root, 50, 'S', 1, 99);
  Write(root, 99, 'S', 1, 99, "/dev/null");
  EXPECT_EQ(Scan(root.Root()).found.at(0).holder.kind, HolderKind::kOther);
  root.Write("proc/99/stat", "99 (bash) S 1 99 99 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 501 0 0\n");
  EXPECT_EQ(Scan(root.Root()).found.at(0).holder.kind, HolderKind::kOrphan);
}

TEST(Holders, WhoIsTakenInByTheInitOfAContainerIsNoOrphan) {
  const TemporaryDirectory root;
  Write(root, 60, 'S', 1, 60, "/dev/null");
  root.Write("proc/60/status", "Name:\ttini\nTgid:\t60\nUid:\t0\t0\t0\t0\nNSpid:\t60\t1\n");
  Write(root, 61, 'S', 60, 99);
  EXPECT_EQ(Scan(root.Root()).found.at(0).holder.kind, HolderKind::kOther);
}

TEST(Holders, AThreadThatHangsLeavesOnlyAReboot) {
  const TemporaryDirectory root;
  Write(root, 70, 'D', 1, 70);
  Write(root, 71, 'S', 1, 71);
  root.Write("proc/71/task/71/stat", "");
  root.Write("proc/71/task/72/stat", "72 (cuda) D 1 71 71 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 500 0\n");
  Write(root, 73, 'D', 1, 99);  // also an orphan
  const HolderScan scan = Scan(root.Root());
  ASSERT_EQ(scan.found.size(), 3u);
  EXPECT_EQ(scan.found[0].holder.kind, HolderKind::kUninterruptible);
  EXPECT_EQ(scan.found[1].holder.kind, HolderKind::kUninterruptible);
  EXPECT_EQ(scan.found[2].holder.kind, HolderKind::kOrphan);
  for (const HolderScan::Found& found : scan.found) {
    EXPECT_EQ(found.holder.clean_up, CleanUp::kReboot) << found.holder.pid;
  }
}

TEST(Holders, WhoHasBeenWokenDoesNotHang) {
  const TemporaryDirectory root;
  Write(root, 70, 'D', 1, 70);
  // It waits, is woken and waits again, all the time.
  const std::jthread waits([&root](const std::stop_token& stop) {
    for (int switches = 8; !stop.stop_requested(); ++switches) {
      root.Write("proc/new", fmt::format("Tgid:\t70\nvoluntary_ctxt_switches:\t{}\n", switches));
      std::filesystem::rename(root.path() + "/proc/new", root.path() + "/proc/70/status");
    }
  });
  HolderOptions options;
  options.hangs_after = std::chrono::minutes(4);  // the test would be ended before
  ProcessOwners owners(root.Root());
  const Result<HolderScan> scan = ScanHolders(Proc(root.Root()), owners, options);
  ASSERT_TRUE(scan.has_value());
  ASSERT_EQ(scan->found.size(), 1u);
  EXPECT_EQ(scan->found[0].holder.kind, HolderKind::kOther);
  EXPECT_EQ(scan->found[0].holder.clean_up, CleanUp::kEndProcess);
}

TEST(Holders, SelfAndItsChildrenAreLeftOut) {
  const TemporaryDirectory root;
  Write(root, 80, 'S', 1, 80);
  Write(root, 81, 'S', 80, 80);
  Write(root, 82, 'S', 0, 82);
  HolderOptions options;
  options.self_pid = 80;
  const HolderScan scan = Scan(root.Root(), options);
  ASSERT_EQ(scan.found.size(), 1u);
  EXPECT_EQ(scan.found[0].holder.pid, 82u);
  EXPECT_EQ(Scan(root.Root()).found.size(), 3u);
}

TEST(Holders, WhatCannotBeReadIsCounted) {
  const TemporaryDirectory root;
  Write(root, 90, 'S', 1, 90);
  Write(root, 91, 'S', 1, 91);
  std::filesystem::remove_all(root.path() + "/proc/91/fd");
  root.Link("proc/91/fd", "fd");  // a loop of links: an error, for root too
  Write(root, 92, 'S', 1, 92);
  std::filesystem::remove_all(root.path() + "/proc/92/fd");  // it is just ending
  const HolderScan scan = Scan(root.Root());
  EXPECT_EQ(scan.found.size(), 1u);
  EXPECT_EQ(scan.unreadable, 1u);
}

TEST(Holders, WhatIsTooMuchIsCountedAsNotLookedAt) {
  const TemporaryDirectory root;
  for (std::uint32_t i = 0; i <= HolderScan::kFoundMax; ++i) Write(root, 2 + i, 'S', 1, 2 + i);
  const HolderScan scan = Scan(root.Root());
  EXPECT_EQ(scan.found.size(), HolderScan::kFoundMax);
  EXPECT_EQ(scan.unreadable, 1u);
}

TEST(Holders, HiddenProcessesAreNoneThatAreNotThere) {
  const TemporaryDirectory root;
  Write(root, 90, 'S', 1, 90);
  root.Link("proc/self", "90");
  EXPECT_EQ(Scan(root.Root()).unreadable, 1u);
  root.MakeDirectory("proc/1");
  EXPECT_EQ(Scan(root.Root()).unreadable, 0u);
}

TEST(Holders, WithoutProcNothingIsKnown) {
  const TemporaryDirectory root;
  ProcessOwners owners(root.Root());
  const Result<HolderScan> scan = ScanHolders(Proc(root.Root()), owners, {});
  ASSERT_FALSE(scan.has_value());
  EXPECT_EQ(scan.error().code, ErrorCode::kNotFound);
}

TEST(Holders, TheMinorIsTheNumberOfTheFile) {
  EXPECT_EQ(MinorOfDeviceFile("/dev/nvidia0"), 0u);
  EXPECT_EQ(MinorOfDeviceFile("/dev/nvidia255"), 255u);
  for (const std::string_view other :
       {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia",
        "/dev/nvidia01", "/dev/nvidia0x", "/dev/nvidia-1", "/dev/nvidia4294967296", "/dev/null",
        "/dev/nvidia0/", ""}) {
    EXPECT_EQ(MinorOfDeviceFile(other), std::nullopt) << other;
  }
}

// --- real processes ------------------------------------------------------------------------------

// Starts processes that have a stand-in device file open, in this machine's /proc. They end with
// this; and by themselves, should the test be killed.
class RealHolders : public testing::Test {
 protected:
  static constexpr unsigned kSecondsMax = 120;

  RealHolders() {
    // Orphans come to this process.
    Check(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "processes can be taken in");
    directory_.Write("dev/nvidia0", "");
    directory_.Write("dev/nvidiactl", "");
    directory_.Write("dev/nvme0n1", "");
  }
  ~RealHolders() override {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
  }

  // Runs `body` in a child; its argument writes a PID, which is returned. A body that returns ends
  // the child. Without a PID: the PID of the child, after it has ended or executed a program.
  std::uint32_t Start(const std::function<void(std::function<void(pid_t)>)>& body) {
    std::array<int, 2> pipe_fds = {};
    Check(pipe2(pipe_fds.data(), O_CLOEXEC) == 0, "a pipe can be made");
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSecondsMax);
      body([&](pid_t pid) { Check(write(pipe_fds[1], &pid, sizeof pid) == sizeof pid, "told"); });
      _exit(0);
    }
    pids_.push_back(child);
    close(pipe_fds[1]);
    pid_t told = child;
    const ssize_t got = read(pipe_fds[0], &told, sizeof told);
    close(pipe_fds[0]);
    if (got == sizeof told && told != child) pids_.push_back(told);
    return static_cast<std::uint32_t>(told);
  }

  int Open(const char* name) const {
    const int fd = open((directory_.path() + "/dev/" + name).c_str(), O_RDONLY);
    Check(fd >= 0, "a stand-in file can be opened");
    return fd;
  }

  [[noreturn]] static void Stay() {
    for (;;) pause();
  }

  HolderScan Look(std::uint32_t self_pid = 0) const {
    HolderOptions options;
    options.self_pid = self_pid;
    device_directory_ = directory_.path() + "/dev";
    options.device_directory = device_directory_;
    return Scan(*RootFs::Open("/"), options);
  }

  // Looks until the holder is of this kind, or for long enough.
  DeviceHolder LookUntil(std::uint32_t pid, HolderKind kind) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kSecondsMax / 2);
    for (;;) {
      const HolderScan scan = Look();
      const DeviceHolder* const holder = HolderOf(scan, pid);
      const bool over = std::chrono::steady_clock::now() > deadline;
      if (holder != nullptr && (holder->kind == kind || over)) return *holder;
      if (over) return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  TemporaryDirectory directory_;
  mutable std::string device_directory_;
  std::vector<pid_t> pids_;
};

TEST_F(RealHolders, AProcessWithTheFileOpenIsFoundAndOneWithAnotherFileIsNot) {
  const std::uint32_t holder = Start([this](const auto& tell) {
    Open("nvidia0");
    Open("nvidiactl");
    tell(getpid());
    Stay();
  });
  Start([this](const auto& tell) {
    Open("nvme0n1");
    open("/dev/null", O_RDONLY);
    tell(getpid());
    Stay();
  });
  const HolderScan scan = Look();
  ASSERT_EQ(scan.found.size(), 1u);
  EXPECT_EQ(scan.found[0].holder.pid, holder);
  EXPECT_EQ(scan.found[0].holder.parent_pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(scan.found[0].holder.kind, HolderKind::kOther);
  EXPECT_EQ(scan.found[0].holder.clean_up, CleanUp::kEndProcess);
  EXPECT_EQ(scan.found[0].holder.threads_alive, 1u);
  EXPECT_EQ(scan.found[0].files.size(), 2u);
}

TEST_F(RealHolders, ThisProcessAndItsChildrenAreLeftOut) {
  const int fd = Open("nvidia0");
  Start([](const auto& tell) {
    tell(getpid());
    Stay();
  });
  EXPECT_EQ(Look().found.size(), 2u);
  EXPECT_EQ(Look(static_cast<std::uint32_t>(getpid())).found.size(), 0u);
  close(fd);
}

TEST_F(RealHolders, ADefunctLeaderHoldsTheFileByItsThread) {
  const std::uint32_t pid = Start([this](const auto& tell) {
    Open("nvidia0");
    std::thread([] { Stay(); }).detach();
    tell(getpid());
    syscall(SYS_exit, 0);  // of this thread alone
  });
  const DeviceHolder holder = LookUntil(pid, HolderKind::kDefunctLeader);
  EXPECT_EQ(holder.kind, HolderKind::kDefunctLeader);
  EXPECT_EQ(holder.state, 'Z');
  EXPECT_GE(holder.threads_alive, 1u);  // a sanitizer has one of its own
  EXPECT_EQ(holder.clean_up, CleanUp::kEndProcess);
}

TEST_F(RealHolders, AnOrphanKeepsTheFileItInherited) {
  const std::uint32_t pid = Start([this](const auto& tell) {
    setsid();
    Open("nvidia0");
    const pid_t first = getpid();
    if (fork() != 0) return;
    alarm(kSecondsMax);
    while (getppid() == first) sched_yield();
    tell(getpid());
    Stay();
  });
  // Where this test runs in a service, what it leaves behind is the service's.
  ProcessOwners owners(*RootFs::Open("/"));
  const ProcessFacts* const self = owners.Find(static_cast<std::uint32_t>(getpid()));
  ASSERT_NE(self, nullptr);
  const bool in_service = self->owner.systemd_unit.ends_with(".service");
  const HolderKind kind = in_service ? HolderKind::kOther : HolderKind::kOrphan;
  const DeviceHolder holder = LookUntil(pid, kind);
  EXPECT_EQ(holder.kind, kind);
  EXPECT_EQ(holder.parent_pid, static_cast<std::uint32_t>(getpid()));
}

TEST_F(RealHolders, WhoOutlivesTheFirstOfAPipelineIsNoOrphan) {
  const std::uint32_t pid = Start([this](const auto& tell) {
    setpgid(0, 0);
    Open("nvidia0");
    const pid_t first = getpid();
    if (fork() != 0) return;
    alarm(kSecondsMax);
    while (getppid() == first) sched_yield();
    tell(getpid());
    Stay();
  });
  // Its group leader is gone, but the process that has it now is of its session, as a shell is.
  EXPECT_EQ(LookUntil(pid, HolderKind::kOther).kind, HolderKind::kOther);
}

TEST_F(RealHolders, AProcessInAnotherPidNamespaceIsFoundByItsNumberHere) {
  const std::uint32_t pid = Start([this](const auto& tell) {
    const bool allowed = unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
    if (!allowed) return;
    std::array<int, 2> ready = {};
    Check(pipe(ready.data()) == 0, "a pipe can be made");
    const pid_t inner = fork();
    if (inner == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Open("nvidia0");
      Check(write(ready[1], "x", 1) == 1, "told");
      Stay();
    }
    char byte = 0;
    Check(read(ready[0], &byte, 1) == 1, "the inner process is ready");
    tell(inner);
    Stay();
  });
  if (static_cast<pid_t>(pid) == pids_.front()) {
    // Not allowed here: then as it was recorded where it is.
    const TemporaryDirectory directory;
    const RecordedRoot recorded(RootFile("process-other-pid-namespace"), directory);
    EXPECT_EQ(Scan(directory.Root()).found.at(0).holder.kind, HolderKind::kOtherPidNamespace);
    return;
  }
  EXPECT_EQ(LookUntil(pid, HolderKind::kOtherPidNamespace).kind, HolderKind::kOtherPidNamespace);
}

TEST_F(RealHolders, AnMpsServerIsKnownByItsCommandLine) {
  const std::uint32_t pid = Start([this](const auto&) {
    Open("nvidia0");
    const std::string seconds = std::to_string(kSecondsMax);
    execlp("sleep", "nvidia-cuda-mps-server", seconds.c_str(), nullptr);
  });
  const DeviceHolder holder = LookUntil(pid, HolderKind::kMpsServer);
  EXPECT_EQ(holder.kind, HolderKind::kMpsServer);
  EXPECT_EQ(holder.clean_up, CleanUp::kEndMpsServer);
}

// Whoever starts a process as vfork does waits for it in state D.
TEST_F(RealHolders, AProcessInStateDIsToldAsOneThatCannotBeEnded) {
  const std::uint32_t pid = Start([this](const auto& tell) {
    const int fd = Open("nvidia0");
    tell(getpid());
    const pid_t first = getpid();
    // As fork, but that this process waits until the other has ended.
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) {
      close(fd);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(kSecondsMax);
      while (getppid() == first) pause();
    }
  });
  // The first such look may have read its state just before it began to wait.
  LookUntil(pid, HolderKind::kUninterruptible);
  const DeviceHolder holder = LookUntil(pid, HolderKind::kUninterruptible);
  EXPECT_EQ(holder.kind, HolderKind::kUninterruptible);
  EXPECT_EQ(holder.state, 'D');
  EXPECT_EQ(holder.clean_up, CleanUp::kReboot);
}

TEST_F(RealHolders, WhoMayNotReadOtherProcessesSaysSo) {
  // Another user's process, read by a child that is nobody. Who is not root reads root's process 1.
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsMax);
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0) Check(setresuid(kNobody, kNobody, kNobody) == 0, "privileges can be left");
    _exit(Scan(*RootFs::Open("/")).unreadable > 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gpuassay
