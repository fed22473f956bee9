// The cases of sharing and ownership that gpuassay promises to answer, from the scenario to what a
// person is told, with literal numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "cli/source_reading.h"
#include "views/usage.h"
#include "views/views.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

constexpr double kMib = 1024.0 * 1024.0;

Snapshot ReadScenarioAt(const std::string& name, Duration at) {
  Result<ScenarioRun> run = ScenarioRun::Open(name);
  EXPECT_TRUE(run) << (run ? "" : run.error().what);
  run->ReadAt(seconds(0));
  run->ReadAt(at - seconds(1));
  return run->ReadAt(at);
}

std::map<std::string, UsageNumbers> ByPod(const Snapshot& snapshot) {
  std::map<std::string, UsageNumbers> rows;
  const Usage usage = MakeUsage(snapshot, UsageBy::kPod);
  for (const UsageRow& row : usage.gpus.at(0).rows) {
    rows[row.name] = row.numbers;
  }
  return rows;
}

// Texts of all disagreements of one kind, one per line.
std::string TextOf(const Views& views, DisagreementKind kind) {
  std::string text;
  const auto add = [&](const std::vector<Disagreement>& list) {
    for (const Disagreement& one : list) {
      if (one.kind == kind) text += one.text + "\n";
    }
  };
  for (const DeviceView& device : views.devices) add(device.disagreements);
  for (const PodView& pod : views.pods) add(pod.disagreements);
  add(views.disagreements);
  return text;
}

TEST(AttributionCases, ThreePodsOnOneT4ShareItsUtilisationAndMemory) {
  const Snapshot snapshot = ReadScenarioAt("t4-three-processes", seconds(60));
  const GpuUsage usage = MakeUsage(snapshot, UsageBy::kPod).gpus.at(0);
  auto rows = ByPod(snapshot);
  EXPECT_EQ(rows["ml/training-job-1"].memory_used_bytes, Reading(4234 * kMib));
  EXPECT_EQ(rows["serving/inference-svc"].memory_used_bytes, Reading(2896 * kMib));
  EXPECT_EQ(rows["notebooks/notebook-3"].memory_used_bytes, Reading(1104 * kMib));
  EXPECT_EQ(usage.device.memory_used_bytes, Reading(8234 * kMib));
  EXPECT_EQ(usage.sum.memory_used_bytes, Reading(8234 * kMib));
  EXPECT_EQ(usage.device.sm_share_ratio, Reading(0.78));
  EXPECT_NEAR(*usage.sum.sm_share_ratio, 0.78, 1e-12);
  EXPECT_NEAR(*usage.sum.power_watts, *usage.device.power_watts, 1e-9);
  EXPECT_NEAR(*usage.sum.energy_joules_total, *usage.device.energy_joules_total, 1e-6);
}

TEST(AttributionCases, FourReplicasOfOneT4HaveFourUtilisations) {
  const Snapshot snapshot = ReadScenarioAt("time-sliced-replicas", seconds(60));
  auto rows = ByPod(snapshot);
  EXPECT_NEAR(*rows["team/replica-a"].sm_share_ratio, 0.40, 1e-12);
  EXPECT_NEAR(*rows["team/replica-b"].sm_share_ratio, 0.25, 1e-12);
  EXPECT_NEAR(*rows["team/replica-c"].sm_share_ratio, 0.10, 1e-12);
  EXPECT_NEAR(*rows["team/replica-d"].sm_share_ratio, 0.05, 1e-12);
  EXPECT_EQ(snapshot.gpus[0].readings.utilization_mean_ratio, Reading(0.8));
  const Views views = MakeViews(snapshot);
  ASSERT_EQ(views.resources.size(), 1U);
  EXPECT_EQ(views.resources[0].units, 4U);
  EXPECT_EQ(views.resources[0].devices, 1U);
}

TEST(AttributionCases, ThreeLevelsOfMemoryAreThreeTrueNumbers) {
  const Views views = MakeViews(ReadScenarioAt("memory-three-levels", seconds(60)));
  ASSERT_EQ(views.pods.size(), 1U);
  EXPECT_EQ(views.pods[0].pod.memory_request_bytes, 8192 * kMib);
  EXPECT_NEAR(*views.pods[0].pool_reserved_bytes, 4.00e9, 1);
  EXPECT_NEAR(*views.pods[0].pool_allocated_bytes, 2.34e9, 1);
  EXPECT_GT(*views.pods[0].memory_used_bytes, 4.00e9);
}

TEST(AttributionCases, MemoryOfADeletedPodIsHeldByADefunctProcess) {
  const Snapshot snapshot = ReadScenarioAt("orphan-memory-pod-deleted", seconds(60));
  EXPECT_TRUE(snapshot.gpus[0].processes.empty());
  EXPECT_EQ(snapshot.gpus[0].readings.memory_unattributed_bytes, Reading(4234 * kMib));
  ASSERT_EQ(snapshot.gpus[0].holders.size(), 1U);
  EXPECT_EQ(snapshot.gpus[0].holders[0].pid, 27341U);
  EXPECT_EQ(snapshot.gpus[0].holders[0].kind, HolderKind::kDefunctLeader);
  EXPECT_EQ(snapshot.gpus[0].holders[0].clean_up, CleanUp::kEndProcess);
  const std::string text = TextOf(MakeViews(snapshot), DisagreementKind::kMemoryNobodyOwns);
  EXPECT_NE(text.find("4234 MiB of GPU 0"), std::string::npos) << text;
  EXPECT_NE(text.find("<defunct>"), std::string::npos) << text;
}

TEST(AttributionCases, MemoryThatNobodyHoldsNeedsAReset) {
  const Snapshot snapshot = ReadScenarioAt("orphan-memory-no-holder", seconds(60));
  EXPECT_TRUE(snapshot.gpus[0].holders.empty());
  EXPECT_EQ(snapshot.gpus[0].readings.memory_unattributed_bytes, Reading(4234 * kMib));
  const std::string text = TextOf(MakeViews(snapshot), DisagreementKind::kMemoryNobodyOwns);
  EXPECT_NE(text.find("4234 MiB of GPU 0"), std::string::npos) << text;
}

TEST(AttributionCases, HoldersAreToldByKindWithTheLeastThatFreesTheMemory) {
  const Snapshot snapshot = ReadScenarioAt("orphan-memory-holders", seconds(60));
  std::map<std::uint32_t, std::pair<HolderKind, CleanUp>> holders;
  for (const Gpu& gpu : snapshot.gpus) {
    for (const DeviceHolder& holder : gpu.holders) {
      holders[holder.pid] = {holder.kind, holder.clean_up};
    }
  }
  bool orphan = false;
  bool mps = false;
  bool other_namespace = false;
  for (const auto& [pid, what] : holders) {
    orphan = orphan || what == std::pair(HolderKind::kOrphan, CleanUp::kEndProcess);
    mps = mps || what == std::pair(HolderKind::kMpsServer, CleanUp::kEndMpsServer);
    other_namespace = other_namespace || what.first == HolderKind::kOtherPidNamespace ||
                      what.first == HolderKind::kContainerGone;
  }
  EXPECT_TRUE(orphan);
  EXPECT_TRUE(mps);
  EXPECT_TRUE(other_namespace);
}

const DeviceView* InstanceOfPod(const Views& views, const std::string& pod) {
  for (const DeviceView& device : views.devices) {
    for (const Allocation& allocation : device.allocations) {
      if (allocation.owner.pod && allocation.owner.pod->name == pod) return &device;
    }
  }
  return nullptr;
}

TEST(AttributionCases, PodsAndMigInstancesAreFoundInBothDirections) {
  const Views views = MakeViews(ReadScenarioAt("mig-mixed-pods", seconds(60)));
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> resources;
  for (const ResourceView& one : views.resources) {
    resources[one.resource] = {one.units, one.allocated};
  }
  EXPECT_EQ(resources["nvidia.com/mig-1g.5gb"], (std::pair(2U, 2U)));
  EXPECT_EQ(resources["nvidia.com/mig-2g.10gb"], (std::pair(1U, 1U)));
  EXPECT_EQ(resources["nvidia.com/mig-3g.20gb"], (std::pair(1U, 0U)));
  const DeviceView* const device = InstanceOfPod(views, "slow-inference");
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->mig->profile, "1g.5gb");
  const auto pod = std::ranges::find_if(
      views.pods, [](const PodView& one) { return one.pod.identity.name == "slow-inference"; });
  ASSERT_NE(pod, views.pods.end());
  ASSERT_EQ(pod->units.size(), 1U);
  EXPECT_EQ(pod->units[0].mig_uuid, device->mig->uuid);
}

TEST(AttributionCases, TheBusyOneOfTwoInstancesIsThatOfSlowInference) {
  const Views views = MakeViews(ReadScenarioAt("mig-h100-pods", seconds(60)));
  const DeviceView* const slow = InstanceOfPod(views, "slow-inference");
  const DeviceView* const quiet = InstanceOfPod(views, "quiet-inference");
  ASSERT_NE(slow, nullptr);
  ASSERT_NE(quiet, nullptr);
  EXPECT_NEAR(*slow->busy_ratio, 0.99, 0.005);
  EXPECT_NEAR(*quiet->busy_ratio, 0.15, 0.005);
  EXPECT_NE(slow->mig->uuid, quiet->mig->uuid);
  EXPECT_EQ(slow->mig->profile, quiet->mig->profile);
}

TEST(AttributionCases, TwelveSharersAreSaidAndTheirSamplesAddUp) {
  Result<ScenarioRun> run = ScenarioRun::Open("twelve-sharers");
  ASSERT_TRUE(run) << run.error().what;
  run->ReadAt(seconds(0));
  const double expected[] = {0.45, 0, 0.67, 0, 0.23};
  for (int second = 1; second <= 5; ++second) {
    const Snapshot snapshot = run->ReadAt(seconds(second));
    const Gpu& gpu = snapshot.gpus.at(0);
    EXPECT_EQ(gpu.processes.size(), 12U);
    EXPECT_NEAR(*gpu.processes[0].readings.sm_utilization_ratio, expected[second - 1], 1e-9);
    double sum = 0;
    for (const OwnerUsage& usage : gpu.owners) {
      if (usage.readings.sm_share_ratio) sum += *usage.readings.sm_share_ratio;
    }
    EXPECT_NEAR(sum, *gpu.readings.utilization_mean_ratio, 1e-9);
    const std::string text = TextOf(MakeViews(snapshot), DisagreementKind::kManySharers);
    EXPECT_NE(text.find("12"), std::string::npos) << text;
  }
}

TEST(AttributionCases, WhoAskedForNothingAppearsWithItsOwner) {
  const Snapshot snapshot = ReadScenarioAt("unrequested-gpu-use", seconds(60));
  const Views views = MakeViews(snapshot);
  const std::string pod = TextOf(views, DisagreementKind::kUsedWithoutAllocation);
  EXPECT_FALSE(pod.empty());
  const std::string host = TextOf(views, DisagreementKind::kOutsideScheduler);
  EXPECT_NE(host.find("alice"), std::string::npos) << host;
  bool has_pod_without_device = false;
  for (const PodView& view : views.pods) {
    has_pod_without_device = has_pod_without_device || (view.units.empty() && view.processes > 0);
  }
  EXPECT_TRUE(has_pod_without_device);
}

TEST(AttributionCases, AskedForAgainstUsedMemory) {
  const Views views = MakeViews(ReadScenarioAt("hami-fractions", seconds(60)));
  double asked = 0;
  double used = 0;
  for (const PodView& pod : views.pods) {
    ASSERT_TRUE(pod.pod.memory_request_bytes);
    asked += *pod.pod.memory_request_bytes;
    used += *pod.memory_used_bytes;
  }
  EXPECT_EQ(asked, (8192 + 8192 + 16384 + 4096) * kMib);
  EXPECT_EQ(used, (2340 + 1890 + 4530 + 1200) * kMib);
  EXPECT_FALSE(TextOf(views, DisagreementKind::kMemoryUnderRequest).empty());
}

TEST(AttributionCases, ADegradedKubernetesSaysWhatIsMissingAndComesBack) {
  Result<ScenarioRun> run = ScenarioRun::Open("degraded-kubernetes");
  ASSERT_TRUE(run) << run.error().what;
  const auto errors_at = [&](Duration t) {
    const Snapshot snapshot = run->ReadAt(t);
    std::string errors;
    for (const SourceStatus& source : snapshot.sources) {
      if (source.name == "pod_resources" || source.name == "kubernetes_api") {
        if (!source.error.empty()) errors += source.name + " ";
      }
    }
    EXPECT_TRUE(snapshot.gpus[0].processes[0].owner.pod) << "the cgroup tells the pod";
    EXPECT_EQ(TextOf(MakeViews(snapshot), DisagreementKind::kUsedWithoutAllocation), "");
    return errors;
  };
  EXPECT_EQ(errors_at(seconds(10)), "");
  EXPECT_EQ(errors_at(seconds(30)), "kubernetes_api ");
  EXPECT_EQ(errors_at(seconds(50)), "pod_resources ");
  EXPECT_EQ(errors_at(seconds(70)), "pod_resources ");
  EXPECT_EQ(errors_at(seconds(90)), "kubernetes_api ");
  EXPECT_EQ(errors_at(seconds(110)), "");
}

}  // namespace
}  // namespace gpuassay
