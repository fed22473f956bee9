#include "attribution/kubernetes/scheduler_merge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attribution/kubernetes/test_kubelet.h"

namespace gpuassay {
namespace {

KubernetesAnswers Answers(KubeletAnswer kubelet, ApiAnswer api = {}) {
  KubernetesAnswers answers;
  answers.kubelet = std::make_shared<const KubeletAnswer>(std::move(kubelet));
  answers.api = std::make_shared<const ApiAnswer>(std::move(api));
  answers.kubelet_current = answers.api_current = true;
  return answers;
}

KubeletAnswer Kubelet(std::vector<KubeletPod> pods, std::vector<KubeletDevices> allocatable = {}) {
  KubeletAnswer answer;
  answer.pods = std::move(pods);
  answer.allocatable = std::move(allocatable);
  return answer;
}

void AddPod(ApiAnswer& api, const std::string& name, const std::string& uid,
            bool finished = false) {
  auto pod = std::make_shared<ApiPod>();
  pod->pod.identity = {"team", name, uid};
  pod->pod.containers = {{"main", "id-" + name}};
  pod->pod.controller = {"Job", "job-" + name, ""};
  pod->finished = finished;
  api.pods[uid] = pod;
}

std::vector<std::string> DeviceIds(const std::vector<DeviceUnit>& units) {
  std::vector<std::string> ids;
  for (const DeviceUnit& unit : units) ids.push_back(unit.device_id);
  return ids;
}

using Ids = std::vector<std::string>;

TEST(MergeAnswers, TellsNothingOutOfNothing) { EXPECT_EQ(MergeAnswers({}, {}), Scheduler{}); }

TEST(MergeAnswers, IsTheSameInWhateverOrderTheKubeletLists) {
  KubeletAnswer kubelet =
      Kubelet({PodWithGpus("team", "b", {"GPU-3", "GPU-1"}), PodWithGpus("team", "a", {"GPU-2"})},
              {{"nvidia.com/gpu", {"GPU-3", "GPU-2"}}, {"nvidia.com/gpu", {"GPU-1"}}});
  const Scheduler first = MergeAnswers(Answers(kubelet), {});
  std::ranges::reverse(kubelet.pods);
  std::ranges::reverse(kubelet.allocatable);
  std::ranges::reverse(kubelet.allocatable[1].ids);
  EXPECT_EQ(MergeAnswers(Answers(kubelet), {}), first);
  EXPECT_EQ(DeviceIds(first.allocatable), (Ids{"GPU-1", "GPU-2", "GPU-3"}));
  EXPECT_EQ(first.allocations[0].owner.pod->name, "b");
}

TEST(MergeAnswers, CountsADeviceOfTwoNumaNodesOnce) {
  const Scheduler view = MergeAnswers(
      Answers(Kubelet(
          {{"team", "a", {{"main", {{"nvidia.com/gpu", {"G"}}, {"nvidia.com/gpu", {"G"}}}, {}}}}},
          {{"nvidia.com/gpu", {"G"}}, {"nvidia.com/gpu", {"G"}}})),
      {});
  EXPECT_EQ(view.allocatable.size(), 1u);
  EXPECT_EQ(view.allocations.size(), 1u);
  EXPECT_EQ(view.dropped, 0u);
}

TEST(MergeAnswers, TakesOnlyAcceleratorsAndWhatIsNamed) {
  const KubernetesAnswers answers = Answers(Kubelet({}, {{"intel.com/sriov", {"net"}},
                                                         {"example.com/a100", {"GPU-x"}},
                                                         {"nvidia.com/mig-1g.5gb", {"MIG-y"}}}));
  EXPECT_EQ(DeviceIds(MergeAnswers(answers, {}).allocatable), Ids{"MIG-y"});
  EXPECT_EQ(DeviceIds(MergeAnswers(answers, {"example.com/a100"}).allocatable),
            (Ids{"GPU-x", "MIG-y"}));
}

TEST(MergeAnswers, TellsTheReplicaOfASharedDevice) {
  const std::string uuid = "GPU-11111111-2222-3333-4444-555555555555";
  const Scheduler view = MergeAnswers(
      Answers(Kubelet({}, {{"nvidia.com/gpu.shared", {uuid + "::3", uuid + "::10"}}})), {});
  ASSERT_EQ(view.allocatable.size(), 2u);
  EXPECT_EQ(view.allocatable[0].replica, 10u);  // by text
  EXPECT_EQ(view.allocatable[1].replica, 3u);
}

TEST(MergeAnswers, GivesAllocationsWhatTheApiServerKnowsOfThePod) {
  ApiAnswer api;
  AddPod(api, "a", "u1");
  const Scheduler view = MergeAnswers(Answers(Kubelet({PodWithGpus("team", "a", {"G"})}), api), {});
  ASSERT_EQ(view.allocations.size(), 1u);
  const ProcessOwner& owner = view.allocations[0].owner;
  EXPECT_EQ(*owner.pod, (PodIdentity{"team", "a", "u1"}));
  EXPECT_EQ(*owner.container, (ContainerIdentity{"id-a", "main", ""}));
  EXPECT_EQ(*owner.job, (JobIdentity{"Job", "job-a", ""}));
  ASSERT_EQ(view.pods.size(), 1u);
}

TEST(MergeAnswers, TellsNamesAloneOfPodsThatOnlyTheKubeletKnows) {
  const Scheduler view = MergeAnswers(Answers(Kubelet({PodWithGpus("team", "a", {"G"})})), {});
  ASSERT_EQ(view.pods.size(), 1u);
  EXPECT_EQ(view.pods[0].identity, (PodIdentity{"team", "a", ""}));
  EXPECT_EQ(view.pods[0].containers, (std::vector<PodContainer>{{"main", ""}}));
  EXPECT_FALSE(view.allocations[0].owner.job);
}

TEST(MergeAnswers, SaysThatAFinishedPodHoldsNothing) {
  ApiAnswer api;
  AddPod(api, "a", "u1", /*finished=*/true);
  const Scheduler view = MergeAnswers(Answers(Kubelet({PodWithGpus("team", "a", {"G"})}), api), {});
  EXPECT_TRUE(view.pods.empty());
  EXPECT_TRUE(view.allocations.empty());
}

TEST(MergeAnswers, BelievesTheOneThatIsCurrent) {
  ApiAnswer api;
  AddPod(api, "both", "u1");
  AddPod(api, "api", "u2");
  KubernetesAnswers answers = Answers(
      Kubelet({PodWithGpus("team", "both", {"G1"}), PodWithGpus("team", "kubelet", {"G2"})}), api);
  const auto names = [&answers] {
    Ids result;
    for (const Pod& pod : MergeAnswers(answers, {}).pods) result.push_back(pod.identity.name);
    return result;
  };
  EXPECT_EQ(names(), (Ids{"api", "both", "kubelet"}));
  answers.api_current = false;
  EXPECT_EQ(names(), (Ids{"both", "kubelet"}));
  answers.kubelet_current = false;
  EXPECT_EQ(names(), (Ids{"api", "both", "kubelet"}));
  answers.api_current = true;
  EXPECT_EQ(names(), (Ids{"api", "both"}));
  EXPECT_EQ(MergeAnswers(answers, {}).allocations.size(), 1u);
}

SliceDevice Slice(const std::string& name, const std::string& gpu, const std::string& mig = "") {
  return {"gpu.nvidia.com", "pool", name, gpu, mig};
}

TEST(MergeAnswers, HandsOutMigDevicesOfSlicesOnlyWhenTheyExist) {
  ApiAnswer api;
  api.slices = {Slice("gpu-0", "GPU-a"), Slice("gpu-1-mig-1g5gb-19-0", ""),
                Slice("gpu-1-mig-1g5gb-19-1", "GPU-b", "MIG-c"), Slice("gpu-2", "")};
  api.slices.push_back({"compute-domain.nvidia.com", "pool", "channel-0", "", ""});
  const Scheduler view = MergeAnswers(Answers({}, api), {});
  EXPECT_EQ(DeviceIds(view.allocatable), (Ids{"gpu-0", "gpu-1-mig-1g5gb-19-1", "gpu-2"}));
  EXPECT_EQ(view.allocatable[1].gpu_uuid, "GPU-b");
  EXPECT_EQ(view.allocatable[1].mig_uuid, "MIG-c");
}

TEST(MergeAnswers, FindsTheDeviceOfAClaimInItsPoolAlone) {
  ApiAnswer api;
  api.slices = {{"gpu.nvidia.com", "other", "gpu-0", "GPU-other", ""}, Slice("gpu-0", "GPU-a")};
  const KubernetesAnswers answers = Answers(
      Kubelet({{"team", "a", {{"main", {}, {{"c", "gpu.nvidia.com", "pool", "gpu-0"}}}}}}), api);
  EXPECT_EQ(MergeAnswers(answers, {}).allocations.at(0).unit.gpu_uuid, "GPU-a");
  EXPECT_FALSE(HasUnknownDevice(answers, {}));
}

TEST(HasUnknownDevice, LooksAtDriversOfGpusAlone) {
  const auto claim_of = [](const std::string& driver) {
    return Answers(Kubelet({{"team", "a", {{"main", {}, {{"c", driver, "pool", "x"}}}}}}));
  };
  EXPECT_TRUE(HasUnknownDevice(claim_of("gpu.nvidia.com"), {}));
  EXPECT_FALSE(HasUnknownDevice(claim_of("net.example"), {}));
  EXPECT_TRUE(HasUnknownDevice(claim_of("net.example"), {"net.example"}));
  EXPECT_FALSE(HasUnknownDevice({}, {}));
}

TEST(MergeAnswers, CountsWhatIsOverABound) {
  KubeletDevices devices{"nvidia.com/gpu", {}};
  for (std::size_t i = 0; i < kAllocatableMax + 3; ++i) devices.ids.push_back(std::to_string(i));
  std::vector<KubeletPod> pods;
  for (std::size_t i = 0; i < kPodsMax + 2; ++i) pods.push_back({"team", std::to_string(i), {}});
  pods[0].containers.push_back({"main", {devices}, {}});
  ApiAnswer api;
  api.dropped = 4;
  const Scheduler view = MergeAnswers(Answers(Kubelet(pods, {devices}), api), {});
  EXPECT_EQ(view.allocatable.size(), kAllocatableMax);
  EXPECT_EQ(view.allocations.size(), kAllocationsMax);
  EXPECT_EQ(view.pods.size(), kPodsMax);
  EXPECT_EQ(view.dropped, 3u + 3u + 2u + 4u);
}

TEST(MergeAnswers, CutsTextsOfTheKubelet) {
  const std::string text(300, 'x');
  const Scheduler view = MergeAnswers(
      Answers(Kubelet({{text, text, {{text, {{"nvidia.com/gpu", {text}}}, {}}}}})), {});
  EXPECT_EQ(view.pods.at(0).identity.name.size(), kOwnerTextBytesMax);
  EXPECT_EQ(view.allocations.at(0).unit.device_id.size(), kOwnerTextBytesMax);
  EXPECT_EQ(view.allocations.at(0).owner.container->name.size(), kOwnerTextBytesMax);
}

}  // namespace
}  // namespace gpuassay
