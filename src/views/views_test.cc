#include "views/views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "views/disagreements.h"

namespace gpuassay {
namespace {

using Kind = DisagreementKind;
constexpr double kMebibyte = 1048576;

std::string TextOfKind(const std::vector<Disagreement>& list, Kind kind) {
  const auto found = std::ranges::find(list, kind, &Disagreement::kind);
  return found == list.end() ? "" : found->text;
}
std::string OnDevice(const Snapshot& snapshot, Kind kind) {
  return TextOfKind(MakeViews(snapshot).devices.at(0).disagreements, kind);
}

ProcessOwner OfPod(const std::string& name) {
  ProcessOwner owner;
  owner.pod = {"ml", name, "uid-" + name};
  return owner;
}

GpuProcess Process(std::uint32_t pid, ProcessOwner owner) {
  GpuProcess process;
  process.pid = pid;
  process.name = "python";
  process.owner = std::move(owner);
  process.readings.memory_used_bytes = 100 * kMebibyte;
  return process;
}

// One GPU, handed out to ml/a as `replicas` units.
Snapshot Node(std::uint32_t replicas = 1) {
  Snapshot snapshot;
  snapshot.gpus.resize(1);
  snapshot.gpus[0].identity.uuid = "GPU-0";
  snapshot.gpus[0].identity.name = "NVIDIA A10";
  Scheduler scheduler;
  for (std::uint32_t i = 0; i < replicas; ++i) {
    scheduler.allocatable.push_back({"nvidia.com/gpu", "GPU-0", i, "GPU-0", ""});
  }
  Allocation one;
  one.unit = scheduler.allocatable[0];
  one.owner = OfPod("a");
  scheduler.allocations.push_back(one);
  snapshot.scheduler = std::make_shared<const Scheduler>(scheduler);
  return snapshot;
}

TEST(Disagreements, AnAllocatedGpuWithoutAProcessOfItsPodIsHeld) {
  Snapshot snapshot = Node();
  EXPECT_EQ(OnDevice(snapshot, Kind::kHeldWithoutProcess),
            "ml/a was given GPU 0 and has no process on it");
  snapshot.gpus[0].processes = {Process(7, OfPod("a"))};
  EXPECT_EQ(OnDevice(snapshot, Kind::kHeldWithoutProcess), "");
}

TEST(Disagreements, APodThatWasGivenNoGpuAndUsesOneIsNamed) {
  Snapshot snapshot = Node();
  snapshot.gpus[0].processes = {Process(7, OfPod("a"))};
  EXPECT_EQ(OnDevice(snapshot, Kind::kUsedWithoutAllocation), "");
  snapshot.gpus[0].processes = {Process(8, OfPod("b"))};
  EXPECT_EQ(OnDevice(snapshot, Kind::kUsedWithoutAllocation),
            "ml/b was given no GPU and holds 100 MiB of GPU 0: PID 8 (python)");
}

TEST(Disagreements, AProcessOutsideKubernetesOnItsGpuIsNamed) {
  Snapshot snapshot = Node();
  ProcessOwner alice;
  alice.user = "alice";
  snapshot.gpus[0].processes = {Process(9, alice)};
  EXPECT_EQ(OnDevice(snapshot, Kind::kOutsideScheduler),
            "PID 9 (python) of user alice holds 100 MiB of GPU 0, which Kubernetes hands out as "
            "nvidia.com/gpu");
  snapshot.scheduler = nullptr;
  EXPECT_EQ(OnDevice(snapshot, Kind::kOutsideScheduler), "");
}

TEST(Disagreements, AnMpsServerNeedsNoDeviceOfItsOwn) {
  Snapshot snapshot = Node();
  ProcessOwner unit;
  unit.systemd_unit = "nvidia-mps.service";
  snapshot.gpus[0].processes = {Process(9, unit), Process(10, OfPod("mps-control-daemon"))};
  for (GpuProcess& process : snapshot.gpus[0].processes) process.name = "nvidia-cuda-mps-server";
  EXPECT_EQ(OnDevice(snapshot, Kind::kOutsideScheduler), "");
  EXPECT_EQ(OnDevice(snapshot, Kind::kUsedWithoutAllocation), "");
  for (GpuProcess& process : snapshot.gpus[0].processes) process.name = "python";
  EXPECT_NE(OnDevice(snapshot, Kind::kOutsideScheduler), "");
  EXPECT_NE(OnDevice(snapshot, Kind::kUsedWithoutAllocation), "");
}

TEST(Disagreements, APodThatKubernetesNoLongerHasIsNamed) {
  const auto found = [](const std::string& known_uid) {
    Snapshot snapshot = Node();
    Scheduler scheduler = *snapshot.scheduler;
    scheduler.pods.resize(1);
    scheduler.pods[0].identity = {"ml", "a", known_uid};
    snapshot.scheduler = std::make_shared<const Scheduler>(scheduler);
    snapshot.gpus[0].processes = {Process(7, OfPod("a"))};
    return OnDevice(snapshot, Kind::kContainerGone);
  };
  EXPECT_EQ(found("uid-a"), "");
  EXPECT_EQ(found("uid-of-its-successor"),
            "PID 7 (python) runs on GPU 0 for ml/a, which Kubernetes no longer has");
  EXPECT_EQ(found(""), "");  // the kubelet tells no UIDs
}

TEST(Disagreements, WorkWithoutAProcessIsNamed) {
  Snapshot snapshot = Node();
  snapshot.gpus[0].readings.utilization_mean_ratio = 0;
  EXPECT_EQ(OnDevice(snapshot, Kind::kBusyWithoutProcess), "");
  snapshot.gpus[0].readings.utilization_mean_ratio = 0.4;
  EXPECT_EQ(OnDevice(snapshot, Kind::kBusyWithoutProcess),
            "GPU 0 is 40 % busy and the driver lists no process: their PIDs are not visible from "
            "here");
  snapshot.gpus[0].processes = {Process(7, {})};
  EXPECT_EQ(OnDevice(snapshot, Kind::kBusyWithoutProcess), "");
}

TEST(Disagreements, ADeviceThatIsNotHereIsOfTheNode) {
  Snapshot snapshot = Node();
  EXPECT_EQ(TextOfKind(MakeViews(snapshot).disagreements, Kind::kUnknownDevice), "");
  Scheduler scheduler = *snapshot.scheduler;
  scheduler.allocations[0].unit = {"nvidia.com/gpu", "GPU-9", {}, "", ""};
  snapshot.scheduler = std::make_shared<const Scheduler>(scheduler);
  EXPECT_EQ(TextOfKind(MakeViews(snapshot).disagreements, Kind::kUnknownDevice),
            "ml/a was given GPU-9 of nvidia.com/gpu, and no device here is called so: a GPU or a "
            "MIG layout has changed since");
}

TEST(Disagreements, FourReplicasAreOneDevice) {
  EXPECT_EQ(OnDevice(Node(4), Kind::kUnitsAreOneDevice),
            "4 units of nvidia.com/gpu are one device, GPU 0 (NVIDIA A10): its memory is not "
            "divided, and a pod with two of them gets no more of it");
  EXPECT_EQ(OnDevice(Node(1), Kind::kUnitsAreOneDevice), "");
  const Views views = MakeViews(Node(4));
  EXPECT_EQ(views.resources.at(0).units, 4U);
  EXPECT_EQ(views.resources.at(0).devices, 1U);
}

TEST(Disagreements, MemoryNobodyOwnsCountsFromHalfAGibibyte) {
  Snapshot snapshot = Node();
  snapshot.gpus[0].readings.memory_unattributed_bytes = 512 * kMebibyte - 1;
  EXPECT_EQ(OnDevice(snapshot, Kind::kMemoryNobodyOwns), "");
  snapshot.gpus[0].readings.memory_unattributed_bytes = 512 * kMebibyte;
  EXPECT_TRUE(OnDevice(snapshot, Kind::kMemoryNobodyOwns)
                  .starts_with("512 MiB of GPU 0 are used and no listed process accounts for "
                               "them; nobody has the device open."));
}

TEST(Disagreements, APoolAQuarterLargerThanItsDataIsNamed) {
  Snapshot snapshot = Node();
  GpuProcess process = Process(7, OfPod("a"));
  process.readings.memory_pool_reserved_bytes = 1250 * kMebibyte;
  process.readings.memory_pool_allocated_bytes = 1000 * kMebibyte;
  snapshot.gpus[0].processes = {process};
  EXPECT_EQ(OnDevice(snapshot, Kind::kPoolLargerThanData),
            "the pool of PID 7 (python) has taken 1250 MiB of GPU 0 and holds 1000 MiB of data");
  snapshot.gpus[0].processes[0].readings.memory_pool_reserved_bytes = 1249 * kMebibyte;
  EXPECT_EQ(OnDevice(snapshot, Kind::kPoolLargerThanData), "");
}

TEST(Disagreements, EightProcessesAreMany) {
  Snapshot snapshot = Node();
  for (std::uint32_t i = 0; i < 7; ++i) snapshot.gpus[0].processes.push_back(Process(i, {}));
  EXPECT_EQ(OnDevice(snapshot, Kind::kManySharers), "");
  snapshot.gpus[0].processes.push_back(Process(7, {}));
  EXPECT_EQ(OnDevice(snapshot, Kind::kManySharers),
            "8 processes share GPU 0, how many of them work is not known");
  for (GpuProcess& process : snapshot.gpus[0].processes) process.readings.sm_share_ratio = 0;
  EXPECT_EQ(OnDevice(snapshot, Kind::kManySharers),
            "8 processes share GPU 0, 0 ran a kernel since the last reading");
}

TEST(Disagreements, AFailingSourceOtherThanTheDriverIsOfTheNode) {
  Snapshot snapshot = Node();
  snapshot.sources.resize(2);
  snapshot.sources[0].error = "driver";
  EXPECT_TRUE(MakeViews(snapshot).disagreements.empty());
  snapshot.sources[1].name = "kubelet";
  snapshot.sources[1].error = "refused";
  EXPECT_EQ(TextOfKind(MakeViews(snapshot).disagreements, Kind::kSchedulerUnreachable),
            "kubelet: refused");
}

TEST(Disagreements, AGpuInNoResourceIsNamedWhileOthersAreHandedOut) {
  Snapshot snapshot = Node();
  EXPECT_EQ(OnDevice(snapshot, Kind::kNotHandedOut), "");
  snapshot.gpus.resize(2);
  snapshot.gpus[1].identity.index = 1;
  snapshot.gpus[1].identity.uuid = "GPU-1";
  EXPECT_EQ(TextOfKind(MakeViews(snapshot).devices.at(1).disagreements, Kind::kNotHandedOut),
            "GPU 1 is in no resource of this node while others are: the device plugin leaves it "
            "out or holds it for unhealthy");
}

TEST(Disagreements, APodOnAnotherDeviceThanItsOwnIsNamed) {
  Snapshot snapshot = Node();
  snapshot.gpus.resize(2);
  snapshot.gpus[1].identity.index = 1;
  snapshot.gpus[1].identity.uuid = "GPU-1";
  snapshot.gpus[1].processes = {Process(7, OfPod("a"))};
  EXPECT_EQ(TextOfKind(MakeViews(snapshot).devices.at(1).disagreements, Kind::kUsedOtherDevice),
            "ml/a was given GPU 0 and holds 100 MiB of GPU 1: PID 7 (python)");
  std::swap(snapshot.gpus[0].processes, snapshot.gpus[1].processes);
  EXPECT_EQ(OnDevice(snapshot, Kind::kUsedOtherDevice), "");
}

TEST(Disagreements, MemoryIsComparedWithWhatThePodAskedFor) {
  const auto found = [](double asked_mebibytes, Kind kind) {
    Snapshot snapshot = Node();
    Scheduler scheduler = *snapshot.scheduler;
    scheduler.pods.resize(1);
    scheduler.pods[0].identity = *OfPod("a").pod;
    scheduler.pods[0].memory_request_bytes = asked_mebibytes * kMebibyte;
    snapshot.scheduler = std::make_shared<const Scheduler>(scheduler);
    snapshot.gpus[0].processes = {Process(7, OfPod("a"))};
    return TextOfKind(MakeViews(snapshot).pods.at(0).disagreements, kind);
  };
  EXPECT_EQ(found(99, Kind::kMemoryOverRequest),
            "ml/a asked for 99 MiB of device memory and uses 100 MiB");
  EXPECT_EQ(found(100, Kind::kMemoryOverRequest), "");
  EXPECT_EQ(found(199, Kind::kMemoryUnderRequest), "");
  EXPECT_EQ(found(200, Kind::kMemoryUnderRequest),
            "ml/a asked for 200 MiB of device memory and uses 100 MiB: 2.0 times as much as it "
            "uses");
}

}  // namespace
}  // namespace gpuassay
