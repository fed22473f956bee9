#include "sources/replay/neutral.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "model/snapshot_codec.h"
#include "model/snapshot_json.h"
#include "sources/replay/recording.h"

namespace gpuassay {
namespace {

constexpr std::uint32_t kPid = 2745931;

Snapshot Site() {
  Snapshot snapshot;
  snapshot.time = WallTime(std::chrono::seconds(1767225600));
  snapshot.node = {"gpu-node-17.corp.example", "570.86.15", "12.570.86.15", "12.8"};
  snapshot.sources.push_back(
      {"nvml", {}, "/srv/alice/lib/libnvidia-ml.so.1: refused", Missing::kNoPermission, {}});
  for (std::uint32_t index = 0; index < 2; ++index) {
    Gpu& gpu = snapshot.gpus.emplace_back();
    gpu.identity.index = index;
    gpu.identity.name = "NVIDIA A100-SXM4-80GB";
    gpu.identity.uuid = "GPU-5a17b3c4-77de-0a01-9f3e-4471dd0e5b0" + std::to_string(index);
    gpu.identity.serial = "165052200334" + std::to_string(index);
    gpu.identity.pci_bus_id = index == 0 ? "00000000:C7:00.0" : "00000000:CB:00.0";
    gpu.readings.power_watts = 100.0;
    gpu.processes.push_back({kPid, ProcessType::kCompute, 9, 0, "train_secret.py", {}, {}, {}});
    gpu.processes[0].start_after_boot = Duration(1'234'560'000);
    ProcessOwner& owner = gpu.processes[0].owner;
    owner.container = {"4f5c9d11" + std::string(56, 'e'), "orion-main", "orion-containerd"};
    owner.pod = {"team-orion", "orion-train-0", "0d5e5b4a-8a55-4c0d-9c51-c0aa7ffe1234"};
    owner.job = {"OrionJob", "orion-train", "orion-step"};
    owner.user = "alice";
    owner.systemd_unit = "orion-train.service";
  }
  snapshot.gpus[1].mig.push_back(
      {{0, 9, 0, "MIG-9f0c2d11-0d5e-5b4a-8a55-cc0de51c0aa7", "1g.10gb"}, {}});
  snapshot.events.push_back(
      {snapshot.time, EventKind::kXid, snapshot.gpus[1].identity.uuid, 79, {}});
  return snapshot;
}

TEST(Neutral, ReplacesWhatIdentifiesASiteByStandInsOfTheSameForm) {
  Snapshot snapshot = Site();
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot));
  EXPECT_EQ(snapshot.node.hostname, "host-1");
  EXPECT_EQ(snapshot.node.driver_version, "570.86.15");
  EXPECT_EQ(snapshot.sources[0].error, "error text left out of a neutral recording");
  EXPECT_EQ(snapshot.sources[0].missing, Missing::kNoPermission);
  EXPECT_EQ(snapshot.gpus[0].identity.uuid, "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(snapshot.gpus[1].identity.uuid, "GPU-00000000-0000-0000-0000-000000000002");
  EXPECT_EQ(snapshot.gpus[1].identity.serial, "0000000000002");
  EXPECT_EQ(snapshot.gpus[0].identity.pci_bus_id, "00000000:01:00.0");
  EXPECT_EQ(snapshot.gpus[1].identity.pci_bus_id, "00000000:02:00.0");
  EXPECT_EQ(snapshot.gpus[1].mig[0].identity.uuid, "MIG-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(snapshot.gpus[1].mig[0].identity.profile, "1g.10gb");
  EXPECT_EQ(snapshot.gpus[0].processes[0].pid, 1001u);
  EXPECT_EQ(snapshot.gpus[1].processes[0].pid, 1001u);
  EXPECT_EQ(snapshot.gpus[0].processes[0].name, "process-1");
  EXPECT_EQ(snapshot.gpus[0].readings.power_watts, Reading(100.0));
  EXPECT_EQ(snapshot.time, WallTime(std::chrono::seconds(1767225600)));
}

TEST(Neutral, AnOwnerIsReplacedByStandInsOfTheSameForm) {
  Snapshot snapshot = Site();
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot));
  const GpuProcess& process = snapshot.gpus[0].processes[0];
  EXPECT_EQ(process.start_after_boot, Duration(1'234'560'000));
  EXPECT_EQ(process.owner.container,
            (ContainerIdentity{"0000000000000000000000000000000000000000000000000000000000000001",
                               "container-1", "runtime-1"}));
  EXPECT_EQ(process.owner.pod,
            (PodIdentity{"namespace-1", "pod-1", "00000000-0000-0000-0000-000000000001"}));
  EXPECT_EQ(process.owner.job, (JobIdentity{"kind-1", "job-1", "step-1"}));
  EXPECT_EQ(process.owner.user, "user-1");
  EXPECT_EQ(process.owner.systemd_unit, "unit-1.service");
  EXPECT_EQ(snapshot.gpus[1].processes[0].owner, process.owner);
}

TEST(Neutral, PublicWordsOfAnOwnerStay) {
  Snapshot snapshot;
  Gpu& gpu = snapshot.gpus.emplace_back();
  for (std::uint32_t pid = 1; pid <= 3; ++pid) {
    GpuProcess& process = gpu.processes.emplace_back();
    process.pid = pid;
    process.owner.container = {"", "", pid == 1 ? "cri-o" : "docker"};
    process.owner.job = {pid == 1 ? "slurm" : "PyTorchJob", "",
                         pid == 1 ? "batch" : (pid == 2 ? "17" : "123456")};
  }
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot));
  EXPECT_EQ(gpu.processes[0].owner.container, (ContainerIdentity{"", "", "cri-o"}));
  EXPECT_EQ(gpu.processes[1].owner.container, (ContainerIdentity{"", "", "docker"}));
  EXPECT_EQ(gpu.processes[0].owner.job, (JobIdentity{"slurm", "", "batch"}));
  EXPECT_EQ(gpu.processes[1].owner.job, (JobIdentity{"PyTorchJob", "", "17"}));
  EXPECT_EQ(gpu.processes[2].owner.job, (JobIdentity{"PyTorchJob", "", "step-1"}));
}

TEST(Neutral, TwoPodsOfOneNamespaceStayTwoPodsOfOneNamespace) {
  Snapshot snapshot = Site();
  snapshot.gpus[1].processes[0].owner.pod->name = "other";
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot));
  EXPECT_EQ(snapshot.gpus[0].processes[0].owner.pod->name, "pod-1");
  EXPECT_EQ(snapshot.gpus[1].processes[0].owner.pod->name, "pod-2");
  EXPECT_EQ(snapshot.gpus[1].processes[0].owner.pod->namespace_name, "namespace-1");
}

TEST(Neutral, AnEventStillPointsToItsGpu) {
  Snapshot snapshot = Site();
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot));
  EXPECT_EQ(snapshot.events[0].gpu_uuid, snapshot.gpus[1].identity.uuid);
}

TEST(Neutral, StandInsAreTheSameInEveryFrame) {
  Snapshot first = Site();
  Snapshot second = Site();
  std::swap(second.gpus[0], second.gpus[1]);
  second.gpus[0].processes.push_back({17, ProcessType::kCompute, {}, {}, "other", {}, {}, {}});
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(first));
  ASSERT_TRUE(neutralizer.Apply(second));
  EXPECT_EQ(second.gpus[1].identity.uuid, first.gpus[0].identity.uuid);
  EXPECT_EQ(second.gpus[0].identity.pci_bus_id, first.gpus[1].identity.pci_bus_id);
  EXPECT_EQ(second.gpus[0].processes[0].pid, 1001u);
  EXPECT_EQ(second.gpus[0].processes[1].pid, 1002u);
  EXPECT_EQ(second.gpus[0].processes[1].name, "process-2");
}

TEST(Neutral, WhatIsUnknownStaysUnknown) {
  Snapshot snapshot;
  snapshot.gpus.emplace_back().processes.resize(2);
  ProcessOwner& nameless = snapshot.gpus[0].processes[1].owner;
  nameless.container.emplace();
  nameless.pod.emplace();
  nameless.job.emplace();
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot));
  EXPECT_EQ(snapshot.node.hostname, "");
  EXPECT_EQ(snapshot.gpus[0].identity.uuid, "");
  EXPECT_EQ(snapshot.gpus[0].identity.serial, "");
  EXPECT_EQ(snapshot.gpus[0].identity.pci_bus_id, "");
  EXPECT_EQ(snapshot.gpus[0].processes[0].name, "");
  EXPECT_EQ(snapshot.gpus[0].processes[0].start_after_boot, std::nullopt);
  EXPECT_EQ(snapshot.gpus[0].processes[0].owner, ProcessOwner{});
  EXPECT_EQ(snapshot.gpus[0].processes[1].owner.container, ContainerIdentity{});
  EXPECT_EQ(snapshot.gpus[0].processes[1].owner.pod, PodIdentity{});
  EXPECT_EQ(snapshot.gpus[0].processes[1].owner.job, JobIdentity{});
}

TEST(Neutral, MoreThan256GpusKeepUniqueAddresses) {
  Neutralizer neutralizer;
  Snapshot snapshot;
  for (int n = 1; n <= 300; ++n) {
    snapshot.gpus.assign(1, Gpu{});
    snapshot.gpus[0].identity.pci_bus_id = "address " + std::to_string(n);
    ASSERT_TRUE(neutralizer.Apply(snapshot));
  }
  EXPECT_EQ(snapshot.gpus[0].identity.pci_bus_id, "00000001:2C:00.0");
}

TEST(Neutral, ARecordingHoldsNoneOfTheOriginals) {
  const std::string path = testing::TempDir() + "neutral-" + std::to_string(getpid());
  std::filesystem::remove(path);
  auto writer = RecordingWriter::Create(path, {.neutral = true});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->Write(Site()));
  ASSERT_TRUE((*writer)->Close());

  const VirtualClock clock{WallTime{}};
  auto source = OpenReplay(path, ReplayPace::kAsFastAsRead, clock);
  std::filesystem::remove(path);
  ASSERT_TRUE(source) << source.error().what;
  // Both forms of the frame: its bytes hold all there is, its JSON has the numbers as text.
  const Snapshot snapshot = (*source)->Read();
  std::string all;
  EncodeSnapshot(snapshot, all);
  all += SnapshotJson(snapshot);
  for (const std::string original :
       {"gpu-node", "corp", "alice", "5a17b3c4", "16505220033", "C7:00", "CB:00", "9f0c2d11",
        "secret", "2745931", "4f5c9d11", "0d5e5b4a", "rion"}) {
    EXPECT_EQ(all.find(original), std::string::npos) << original;
  }
  const std::string pid_bytes = {'\x4b', '\xe6', '\x29', '\0'};
  std::string untouched;
  EncodeSnapshot(Site(), untouched);
  EXPECT_NE(untouched.find(pid_bytes), std::string::npos);
  EXPECT_EQ(all.find(pid_bytes), std::string::npos);
}

TEST(Neutral, TooManyDifferentPidsAreRefusedNotMixedUp) {
  Neutralizer neutralizer;
  Snapshot snapshot;
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.processes.resize(Neutralizer::kStandInsMax);
  for (std::uint32_t pid = 0; GpuProcess & process : gpu.processes) process.pid = ++pid;
  EXPECT_TRUE(neutralizer.Apply(snapshot));
  gpu.processes.resize(1);
  gpu.processes[0].pid = 0;
  EXPECT_FALSE(neutralizer.Apply(snapshot));
}

TEST(Neutralizer, LeavesNothingOfASiteInWhatTheSchedulerTold) {
  Snapshot snapshot;
  snapshot.gpus.emplace_back().identity.uuid = "GPU-604ac76c";
  auto scheduler = std::make_shared<Scheduler>();
  scheduler->allocatable.push_back({"nvidia.com/gpu", "GPU-604ac76c::2", 2, "GPU-604ac76c", ""});
  Allocation& allocation = scheduler->allocations.emplace_back();
  allocation.unit = {"acme.example/gpu", "nvidia0/gi1", std::nullopt, "GPU-604ac76c", "MIG-77"};
  allocation.claim = "acme-claim";
  allocation.owner.pod = {"acme", "acme-train", "0d5e5b4a"};
  Pod& pod = scheduler->pods.emplace_back();
  pod.identity = {"acme", "acme-train", "0d5e5b4a"};
  pod.controller = {"Job", "acme-train", ""};
  pod.containers.push_back({"acme-main", "4f5c"});
  pod.requests.push_back({"acme-main", "acme.example/gpu", 1});
  pod.labels = {{"team", "acme"}};
  snapshot.scheduler = scheduler;
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot).has_value());
  EXPECT_EQ(snapshot.scheduler->allocatable[0].device_id,
            "GPU-00000000-0000-0000-0000-000000000001::2");
  EXPECT_EQ(snapshot.scheduler->allocatable[0].gpu_uuid, snapshot.gpus[0].identity.uuid);
  EXPECT_EQ(snapshot.scheduler->allocations[0].unit.resource, "resource-1");
  EXPECT_EQ(snapshot.scheduler->allocations[0].claim, "claim-1");
  EXPECT_EQ(snapshot.scheduler->pods[0].identity.name,
            snapshot.scheduler->allocations[0].owner.pod->name);
  EXPECT_EQ(SnapshotJson(snapshot).find("acme"), std::string::npos);
  EXPECT_EQ(scheduler->pods[0].identity.name, "acme-train") << "what others share is left alone";
}

TEST(Neutralizer, RenamesHoldersAndDropsWhatIsDerived) {
  Snapshot snapshot;
  Gpu& gpu = snapshot.gpus.emplace_back();
  DeviceHolder& holder = gpu.holders.emplace_back();
  holder.pid = 27341;
  holder.parent_pid = 1;
  holder.name = "acme-train";
  holder.owner.user = "acme";
  gpu.owners.emplace_back().owner.user = "acme";
  Neutralizer neutralizer;
  ASSERT_TRUE(neutralizer.Apply(snapshot).has_value());
  EXPECT_EQ(gpu.holders[0].pid, 1001u);
  EXPECT_EQ(gpu.holders[0].parent_pid, 1u);
  EXPECT_TRUE(gpu.owners.empty());
  EXPECT_EQ(SnapshotJson(snapshot).find("acme"), std::string::npos);
}

}  // namespace
}  // namespace gpuassay
