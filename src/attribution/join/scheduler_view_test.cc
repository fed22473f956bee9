#include "attribution/join/scheduler_view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace gpuassay {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

const std::string kMig = "MIG-00000000-0000-0000-0000-000000000009";

std::string Uuid(std::uint32_t number) {
  return fmt::format("GPU-00000000-0000-0000-0000-{:012}", number);
}

Gpu MakeGpu(std::uint32_t index) {
  Gpu gpu;
  gpu.identity.index = index;
  gpu.identity.uuid = Uuid(index);
  gpu.identity.minor_number = 7 - index;  // never rely on the order
  gpu.readings.memory_total_bytes = 80 * kGib;
  return gpu;
}

std::vector<Gpu> TwoGpus() {
  std::vector<Gpu> gpus = {MakeGpu(0), MakeGpu(1)};
  MigInstance& mig = gpus[1].mig.emplace_back();
  mig.identity = {2, 9, 0, kMig, "1g.10gb"};
  return gpus;
}

Allocation Given(std::string device_id, const PodIdentity& pod = {"ml", "train", "uid"}) {
  Allocation allocation;
  allocation.unit.resource = "nvidia.com/gpu";
  allocation.unit.device_id = std::move(device_id);
  allocation.owner.pod = pod;
  return allocation;
}

SchedulerPtr Told(std::vector<Allocation> allocations, std::vector<Pod> pods = {}) {
  auto told = std::make_shared<Scheduler>();
  told->allocations = std::move(allocations);
  told->pods = std::move(pods);
  return told;
}

TEST(SchedulerView, DeviceIdsBecomeDevices) {
  SchedulerView view;
  const SchedulerPtr resolved =
      view.Resolve(Told({Given(Uuid(1) + "::3"), Given(kMig), Given(Uuid(7))}), {}, TwoGpus());
  ASSERT_EQ(resolved->allocations.size(), 3U);
  EXPECT_EQ(resolved->allocations[0].unit.gpu_uuid, Uuid(1));
  EXPECT_EQ(resolved->allocations[0].unit.replica, 3U);
  EXPECT_EQ(resolved->allocations[1].unit.gpu_uuid, Uuid(1));
  EXPECT_EQ(resolved->allocations[1].unit.mig_uuid, kMig);
  EXPECT_EQ(resolved->allocations[2].unit.gpu_uuid, "");  // none is called so
}

TEST(SchedulerView, ThePointerChangesOnlyWithTheContent) {
  SchedulerView view;
  std::vector<Gpu> gpus = TwoGpus();
  const SchedulerPtr told = Told({Given(Uuid(1))});
  const SchedulerPtr first = view.Resolve(told, {}, gpus);
  gpus[0].readings.power_watts = 300;  // nothing to do with devices
  EXPECT_EQ(view.Resolve(told, {}, gpus), first);
  gpus[1].identity.uuid = "GPU-other";
  const SchedulerPtr second = view.Resolve(told, {}, gpus);
  EXPECT_NE(second, first);
  EXPECT_EQ(second->allocations[0].unit.gpu_uuid, "");
}

TEST(SchedulerView, NobodyHasToldAnything) {
  SchedulerView view;
  EXPECT_EQ(view.Resolve(nullptr, {}, TwoGpus()), nullptr);
  EnvironmentClaim all;
  all.owner.container = {"aa", "", "docker"};
  all.visible_devices = "all";
  EXPECT_EQ(view.Resolve(nullptr, {all}, TwoGpus()), nullptr);
}

TEST(SchedulerView, SlurmCountsDeviceFiles) {
  EnvironmentClaim claim;
  claim.owner.job = {"slurm", "4711", "0"};
  claim.owner.user = "alice";
  claim.slurm_gpus = "6-7,3";
  SchedulerView view;
  const SchedulerPtr resolved = view.Resolve(nullptr, {claim}, TwoGpus());
  ASSERT_EQ(resolved->allocations.size(), 3U);
  EXPECT_EQ(resolved->allocations[0].unit.device_id, "3");
  EXPECT_EQ(resolved->allocations[0].unit.gpu_uuid, "");  // no such file
  EXPECT_EQ(resolved->allocations[1].unit.gpu_uuid, Uuid(1));
  EXPECT_EQ(resolved->allocations[2].unit.gpu_uuid, Uuid(0));
  EXPECT_EQ(resolved->allocations[2].scheduler, SchedulerKind::kSlurm);
  EXPECT_EQ(resolved->allocations[2].owner.job->id, "4711");
  EXPECT_EQ(resolved->allocations[2].owner.user, "alice");
}

TEST(SchedulerView, ContainersOutsideKubernetesTellByTheirEnvironment) {
  EnvironmentClaim claim;
  claim.owner.container = {"aa", "web", "docker"};
  claim.visible_devices = Uuid(1) + ",0";
  SchedulerView view;
  const SchedulerPtr resolved = view.Resolve(Told({}), {claim}, TwoGpus());
  ASSERT_EQ(resolved->allocations.size(), 2U);
  EXPECT_EQ(resolved->allocations[0].scheduler, SchedulerKind::kContainerRuntime);
  EXPECT_EQ(resolved->allocations[0].unit.gpu_uuid, Uuid(1));
  EXPECT_EQ(resolved->allocations[1].unit.gpu_uuid, Uuid(0));
}

TEST(SchedulerView, OfPodsTheEnvironmentCountsOnlyWhileKubernetesIsSilent) {
  EnvironmentClaim claim;
  claim.owner.pod = {"", "", "uid"};
  claim.owner.container = {"aa", "", "containerd"};
  claim.visible_devices = Uuid(1);
  SchedulerView view;
  EXPECT_EQ(view.Resolve(nullptr, {claim}, TwoGpus())->allocations.size(), 1U);
  EXPECT_EQ(view.Resolve(Told({}), {claim}, TwoGpus())->allocations.size(), 0U);
}

Pod Asking(std::string resource, double amount) {
  Pod pod;
  pod.identity = {"ml", "train", "uid"};
  pod.requests = {{"main", std::move(resource), amount}};
  return pod;
}

TEST(SchedulerView, PartsOfADeviceBecomeBytes) {
  SchedulerView view;
  std::vector<Gpu> gpus = TwoGpus();
  const auto bytes = [&](Pod pod, std::vector<Allocation> given) {
    return view.Resolve(Told(std::move(given), {std::move(pod)}), {}, gpus)
        ->pods[0]
        .memory_request_bytes;
  };
  // HAMi: a quarter of each device that it was given.
  EXPECT_EQ(bytes(Asking("nvidia.com/gpumem-percentage", 25), {Given(Uuid(0))}), 20 * kGib);
  EXPECT_EQ(bytes(Asking("nvidia.com/gpumem-percentage", 25), {Given(Uuid(0)), Given(Uuid(1))}),
            40 * kGib);
  EXPECT_EQ(bytes(Asking("nvidia.com/gpumem-percentage", 25), {}), std::nullopt);
  EXPECT_EQ(bytes(Asking("nvidia.com/gpumem-percentage", 25), {Given(Uuid(9))}), std::nullopt);
  EXPECT_EQ(bytes(Asking("nvidia.com/gpu", 1), {Given(Uuid(0))}), std::nullopt);
  // KAI: a part of any device; which one does not matter when all are alike.
  EXPECT_EQ(bytes(Asking("gpu-fraction", 0.5), {}), 40 * kGib);
  Pod two = Asking("gpu-fraction", 0.5);
  two.requests.push_back({"main", "gpu-fraction-num-devices", 2});
  EXPECT_EQ(bytes(two, {}), 80 * kGib);
  gpus[1].readings.memory_total_bytes = 40 * kGib;
  EXPECT_EQ(bytes(Asking("gpu-fraction", 0.5), {}), std::nullopt);
}

TEST(SchedulerView, ListsOfSlurmAndRuntimesAreReadOrNot) {
  EXPECT_EQ(ParseSlurmGpus("0,2-3,2"), (std::vector<std::uint32_t>{0, 2, 3}));
  for (const char* const bad : {"", "a", "1-", "-1", "3-1", "0-4294967295", "1,,2", "1 2"}) {
    EXPECT_TRUE(ParseSlurmGpus(bad).empty()) << bad;
  }
  EXPECT_EQ(ParseVisibleDevices("GPU-1,,none,3"), (std::vector<std::string>{"GPU-1", "3"}));
  EXPECT_TRUE(ParseVisibleDevices("all").empty());
  EXPECT_TRUE(ParseVisibleDevices("void").empty());
  EXPECT_TRUE(ParseVisibleDevices(std::string(300, 'x')).empty());
}

}  // namespace
}  // namespace gpuassay
