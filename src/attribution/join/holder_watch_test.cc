#include "attribution/join/holder_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "attribution/join/test_root.h"

namespace gpuassay {
namespace {

constexpr HolderWatchOptions kOnce = {
    .self_pid = 0, .interval = std::chrono::seconds(30), .in_background = false};

Snapshot OneGpu() {
  Snapshot snapshot;
  snapshot.gpus.emplace_back().identity.minor_number = 0;
  return snapshot;
}

std::vector<std::uint32_t> Pids(const Gpu& gpu) {
  std::vector<std::uint32_t> pids;
  for (const DeviceHolder& holder : gpu.holders) pids.push_back(holder.pid);
  return pids;
}

TEST(HolderWatch, FindsWhoHoldsTheDeviceFileAndIsNotListed) {
  const TestRoot root;
  root.Process(42, 500);
  root.Open(42, 3, "/dev/nvidia0");
  root.Process(43, 500);
  root.Open(43, 3, "/dev/null");
  root.Process(44, 500);
  root.Open(44, 3, "/dev/nvidiactl");  // a control file is no GPU
  root.Process(45, 500);
  root.Open(45, 3, "/dev/nvidia1");  // another GPU
  HolderWatch watch(root.Root(), kOnce);
  watch.Scan();
  Snapshot snapshot = OneGpu();
  watch.Fill(snapshot);
  EXPECT_EQ(Pids(snapshot.gpus[0]), std::vector<std::uint32_t>{42});
  EXPECT_EQ(snapshot.gpus[0].holders[0].owner.systemd_unit, "train.service");
  EXPECT_EQ(watch.trouble(), "");
}

TEST(HolderWatch, ListedProcessesAndTheirChildrenAreNoHolders) {
  const TestRoot root;
  root.Process(42, 500);
  root.Open(42, 3, "/dev/nvidia0");
  root.Process(43, 501, kTrainUnit, 42);  // inherited the file
  root.Open(43, 3, "/dev/nvidia0");
  HolderWatch watch(root.Root(), kOnce);
  watch.Scan();
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].processes.emplace_back().pid = 42;
  watch.Fill(snapshot);
  EXPECT_TRUE(snapshot.gpus[0].holders.empty());
}

TEST(HolderWatch, OneThatHasEndedSinceIsNoHolder) {
  const TestRoot root;
  root.Process(42, 500);
  root.Open(42, 3, "/dev/nvidia0");
  HolderWatch watch(root.Root(), kOnce);
  watch.Scan();
  root.Process(42, 900);  // another process with its PID
  Snapshot snapshot = OneGpu();
  watch.Fill(snapshot);
  EXPECT_TRUE(snapshot.gpus[0].holders.empty());
  root.End(42);
  watch.Fill(snapshot);
  EXPECT_TRUE(snapshot.gpus[0].holders.empty());
}

TEST(HolderWatch, AContainerThatIsGoneIsTold) {
  const TestRoot root;
  root.Process(42, 500, PodCgroup('a'));
  root.Open(42, 3, "/dev/nvidia0");
  root.MakeDirectory("var/lib/kubelet/pods/" + std::string(kPodUid));
  HolderWatch watch(root.Root(), kOnce);
  watch.Scan();
  Snapshot snapshot = OneGpu();
  watch.Fill(snapshot);
  ASSERT_EQ(snapshot.gpus[0].holders.size(), 1U);
  EXPECT_NE(snapshot.gpus[0].holders[0].kind, HolderKind::kContainerGone);
  std::filesystem::remove_all(root.path() + "/var/lib/kubelet/pods/" + std::string(kPodUid));
  watch.Scan();
  snapshot = OneGpu();
  watch.Fill(snapshot);
  ASSERT_EQ(snapshot.gpus[0].holders.size(), 1U);
  EXPECT_EQ(snapshot.gpus[0].holders[0].kind, HolderKind::kContainerGone);
}

TEST(HolderWatch, LooksByItselfInTheBackground) {
  const TestRoot root;
  root.Process(42, 500);
  root.Open(42, 3, "/dev/nvidia0");
  HolderWatch watch(
      root.Root(),
      {.self_pid = 0, .interval = std::chrono::milliseconds(5), .in_background = true});
  Snapshot snapshot = OneGpu();
  for (int i = 0; i < 2000 && snapshot.gpus[0].holders.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    watch.Fill(snapshot);
  }
  EXPECT_EQ(Pids(snapshot.gpus[0]), std::vector<std::uint32_t>{42});
}

// A watch that looks once, and then only for a reason.
class HolderWatchReasons : public testing::Test {
 protected:
  HolderWatchReasons() {
    Hold(42);
    snapshot_.gpus[0].processes.emplace_back().pid = 7;
    SetMemory(1000, 900);
    watch_ = std::make_unique<HolderWatch>(
        root_.Root(), HolderWatchOptions{.interval = std::chrono::milliseconds(1),
                                         .quiet_interval = std::chrono::hours(1)});
    EXPECT_TRUE(IsFound(42, 2000));
    Hold(43);
  }

  void Hold(std::uint32_t pid) {
    root_.Process(pid, 500);
    root_.Open(pid, 3, "/dev/nvidia0");
  }
  void SetMemory(double used_mib, Reading of_process_mib) {
    constexpr double kMib = 1024.0 * 1024;
    snapshot_.gpus[0].readings.memory_used_bytes = used_mib * kMib;
    Reading& bytes = snapshot_.gpus[0].processes[0].readings.memory_used_bytes;
    bytes = of_process_mib;
    if (bytes) bytes = *bytes * kMib;
  }
  // Whether a snapshot among so many, five milliseconds apart, tells of it.
  bool IsFound(std::uint32_t pid, int snapshots) {
    for (int i = 0; i < snapshots; ++i) {
      Snapshot snapshot = snapshot_;
      watch_->Fill(snapshot);
      const std::vector<std::uint32_t> pids = Pids(snapshot.gpus[0]);
      if (std::ranges::find(pids, pid) != pids.end()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  const TestRoot root_;
  Snapshot snapshot_ = OneGpu();
  std::unique_ptr<HolderWatch> watch_;
};

TEST_F(HolderWatchReasons, WhenAllMemoryIsListedThereIsNone) {
  EXPECT_FALSE(IsFound(43, 10));
  SetMemory(1100, 900);  // less than anybody is told of
  EXPECT_FALSE(IsFound(43, 10));
}

TEST_F(HolderWatchReasons, MemoryThatNobodyListedHolds) {
  SetMemory(1156, 900);
  EXPECT_TRUE(IsFound(43, 2000));
}

TEST_F(HolderWatchReasons, AProcessWhoseMemoryIsUnknown) {
  SetMemory(1000, Missing::kNotSupported);
  EXPECT_TRUE(IsFound(43, 2000));
}

TEST_F(HolderWatchReasons, AProcessThatHasLeftTheList) {
  snapshot_.gpus[0].processes[0].pid = 8;
  EXPECT_TRUE(IsFound(43, 2000));
}

TEST(HolderWatch, WithoutProcNobodyKnows) {
  const TestRoot root;
  HolderWatch watch(root.Root(), kOnce);
  watch.Scan();
  EXPECT_TRUE(watch.trouble().starts_with("who holds device files is not known: "))
      << watch.trouble();
  EXPECT_NE(watch.trouble().find("/proc"), std::string::npos) << watch.trouble();
}

}  // namespace
}  // namespace gpuassay
