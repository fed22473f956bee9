#include "attribution/kubernetes/api_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "attribution/kubernetes/test_certificates.h"
#include "attribution/kubernetes/test_cluster.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

constexpr std::string_view kSource = "kubernetes_api";

std::string Kept(std::string_view error) {
  return fmt::format("{}; what it told before is kept, later changes are missing", error);
}
std::string Missed(std::string_view error) { return fmt::format("{}; pods are missing", error); }

TestReply Status(int status, std::string_view message) {
  return {.status = status, .body = fmt::format(R"({{"kind":"Status","message":"{}"}})", message)};
}

class ApiWatchTest : public KubernetesTest {
 protected:
  // With a watch that goes on.
  void StartWithOnePod() {
    objects_.Put({.name = "a"});
    AskApi();
    Start();
    ASSERT_TRUE(api_->WaitForStreams(1));
    ASSERT_EQ(Pods(), Texts{"team/a"});
    ASSERT_EQ(Error(kSource), "");
  }
};

TEST_F(ApiWatchTest, FollowsWhatChanges) {
  StartWithOnePod();
  Put({.name = "b"});
  EXPECT_TRUE(PodsBecome({"team/a", "team/b"}));
  Put({.name = "b", .metadata = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"});
  EXPECT_TRUE(Eventually([&] { return FindPod("b")->terminating; }));
  Delete("b");
  EXPECT_TRUE(PodsBecome({"team/a"}));
  EXPECT_EQ(objects_.Count("list"), 1);
}

TEST_F(ApiWatchTest, DropsAPodThatIsFinished) {
  StartWithOnePod();
  Put({.name = "a", .phase = "Succeeded"});
  EXPECT_TRUE(PodsBecome({}));
}

TEST_F(ApiWatchTest, AsksOnlyForPodsOfThisNode) {
  objects_.Put({.name = "elsewhere", .node = "node-2"});
  StartWithOnePod();
  SendLine(objects_.Put({.name = "b"}));
  EXPECT_TRUE(PodsBecome({"team/a", "team/b"}));
  for (const std::string_view kind : {"list", "watch", "slices"}) {
    for (const TestRequest& request : objects_.Requests(kind)) {
      EXPECT_EQ(request.query.at("fieldSelector"), "spec.nodeName=node-1");
    }
  }
}

TEST_F(ApiWatchTest, ReadsAListInPages) {
  for (const std::string name : {"a", "b", "c", "d", "e"}) objects_.Put({.name = name});
  objects_.SetPageSize(2);
  AskApi();
  Start();
  EXPECT_EQ(Pods(), (Texts{"team/a", "team/b", "team/c", "team/d", "team/e"}));
  const std::vector<TestRequest> pages = objects_.Requests("list");
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[0].query.at("resourceVersion"), "0");
  EXPECT_EQ(pages[2].query.at("continue"), "4");
  EXPECT_FALSE(pages[2].query.contains("resourceVersion"));
}

TEST_F(ApiWatchTest, TellsRequestsOfSharedDevices) {
  objects_.Put({.name = "hami",
                .spec = R"(,"containers":[{"name":"main","resources":{"limits":)"
                        R"({"nvidia.com/gpu":"2","nvidia.com/gpumem":"4000",)"
                        R"("nvidia.com/gpucores":"30"}}}])"});
  objects_.Put(
      {.name = "kai", .metadata = R"(,"annotations":{"gpu-fraction":"0.5"},"labels":{"app":"x"})"});
  AskApi();
  Start();
  ASSERT_NE(FindPod("hami"), nullptr);
  EXPECT_EQ(FindPod("hami")->requests,
            (std::vector<ResourceRequest>{{"main", "nvidia.com/gpu", 2},
                                          {"main", "nvidia.com/gpucores", 30},
                                          {"main", "nvidia.com/gpumem", 4000}}));
  EXPECT_EQ(FindPod("hami")->memory_request_bytes, 8388608000.0);
  EXPECT_EQ(FindPod("kai")->requests, (std::vector<ResourceRequest>{{"", "gpu-fraction", 0.5}}));
  EXPECT_TRUE(FindPod("kai")->labels.empty());  // none is on the allow-list
}

TEST_F(ApiWatchTest, GetsByWithTheKubeletWhileItIsForbidden) {
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})});
  kubelet_.Start();
  objects_.Put({.name = "a", .metadata = R"(,"labels":{"app":"llm"})"});
  objects_.Instead("list", Status(403, "pods is forbidden: User \\\"u\\\" cannot list pods"));
  options_.pod_labels = {"app"};
  AskKubelet();
  AskApi();
  Start();
  EXPECT_EQ(Error(kSource),
            "forbidden: pods is forbidden: User \"u\" cannot list pods; names of pods come from "
            "the kubelet, labels, requests, controllers and ids are missing");
  EXPECT_EQ(Source(kSource).missing, Missing::kNoPermission);
  EXPECT_FALSE(Source(kSource).last_success.has_value());
  EXPECT_EQ(Allocations(), Texts{"GPU-a team/a/main"});
  EXPECT_TRUE(FindPod("a")->labels.empty());
  objects_.Instead("list", {});
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
  EXPECT_TRUE(Eventually([&] { return FindPod("a")->labels.size() == 1; }));
  EXPECT_EQ(kubernetes_->Latest()->allocations.at(0).owner.pod->uid, "uid-a");
}

TEST_F(ApiWatchTest, ListsAgainAndAgainWhenOnlyTheWatchIsForbidden) {
  objects_.Put({.name = "a"});
  objects_.Instead("watch", Status(403, "cannot watch pods"));
  AskApi();
  Start();
  EXPECT_TRUE(ErrorBecomes(kSource, Kept("forbidden: cannot watch pods")));
  objects_.Put({.name = "b"});
  EXPECT_TRUE(PodsBecome({"team/a", "team/b"}));
  const std::optional<WallTime> before = Source(kSource).last_success;
  EXPECT_TRUE(Eventually([&] { return Source(kSource).last_success > before; }));
  EXPECT_EQ(Error(kSource), Kept("forbidden: cannot watch pods"));
  objects_.Instead("watch", {});
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, ListsTheNewestStateWhenItsVersionIsGone) {
  StartWithOnePod();
  objects_.Instead("watch", Status(410, "too old resource version"));
  api_->EndStreams();
  EXPECT_TRUE(Eventually([&] { return objects_.Count("list") >= 2; }));
  EXPECT_FALSE(objects_.Requests("list").at(1).query.contains("resourceVersion"));
  EXPECT_TRUE(
      ErrorBecomes(kSource, Kept("the API server does not keep the version of its last list")));
  objects_.Instead("watch", {});
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, ListsAgainWhenAnEventSaysThatItsVersionIsGone) {
  StartWithOnePod();
  objects_.Put({.name = "b"});  // its event is lost
  api_->Send("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n");
  EXPECT_TRUE(PodsBecome({"team/a", "team/b"}));
  EXPECT_EQ(objects_.Count("list"), 2);
  EXPECT_TRUE(api_->WaitForStreams(2));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, SaysWhyTheServerHasEndedTheWatch) {
  StartWithOnePod();
  objects_.Instead("list", Status(500, "etcd is gone"));
  api_->Send("{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"no\"}}\n");
  EXPECT_TRUE(ErrorBecomes(kSource, Kept("the API server answers 500: etcd is gone")));
  EXPECT_EQ(Pods(), Texts{"team/a"});
  objects_.Instead("list", {});
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, WatchesOnFromTheLastBookmarkWhenTheConnectionBreaks) {
  StartWithOnePod();
  api_->Send(
      "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":"
      "{\"resourceVersion\":\"500\"}}}\n");
  api_->CutStreams();
  EXPECT_TRUE(api_->WaitForStreams(2));
  EXPECT_EQ(objects_.Requests("watch").at(0).query.at("allowWatchBookmarks"), "true");
  EXPECT_EQ(objects_.Requests("watch").at(1).query.at("resourceVersion"), "500");
  EXPECT_EQ(objects_.Count("list"), 1);
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
  Put({.name = "b"});
  EXPECT_TRUE(PodsBecome({"team/a", "team/b"}));
}

TEST_F(ApiWatchTest, MissesNothingBetweenTwoWatches) {
  StartWithOnePod();
  objects_.Put({.name = "b"});  // its event comes with the next watch
  api_->EndStreams();
  EXPECT_TRUE(PodsBecome({"team/a", "team/b"}));
  EXPECT_EQ(objects_.Count("list"), 1);
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, ListsAgainAfterAnEventThatIsNotUnderstood) {
  StartWithOnePod();
  objects_.Instead("list", Status(503, "wait"));
  const int lists = objects_.Count("list");
  api_->Send("{\"type\":\"ADDED\",\"object\":[]}\n");
  EXPECT_TRUE(Eventually([&] { return objects_.Count("list") > lists; }));
  EXPECT_TRUE(ErrorBecomes(kSource, Kept("the API server answers 503: wait")));
  EXPECT_EQ(Pods(), Texts{"team/a"});
  objects_.Instead("list", {});
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, RefusesAListThatIsNone) {
  objects_.Put({.name = "a"});
  objects_.Instead("list", TestReply{.body = "<html>welcome</html>"});
  AskApi();
  Start();
  EXPECT_EQ(Error(kSource), Missed("the list of pods is not understood: not a JSON object"));
  EXPECT_EQ(kubernetes_->Latest(), nullptr);
  objects_.Instead("list", {});
  EXPECT_TRUE(PodsBecome({"team/a"}));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, ReadsTheTokenAgainBecauseItIsReplaced) {
  WriteFile("token", "old\n");
  StartWithOnePod();
  AskApi("tokenFile: token");
  objects_.Instead("watch", Status(401, "Unauthorized"));
  api_->EndStreams();
  EXPECT_TRUE(
      ErrorBecomes(kSource, Kept("the API server does not accept the credentials: Unauthorized")));
  EXPECT_EQ(objects_.Requests("watch").back().authorization, "Bearer old");
  WriteFile("token", "new\n");
  EXPECT_TRUE(
      Eventually([&] { return objects_.Requests("watch").back().authorization == "Bearer new"; }));
  objects_.Instead("watch", {});
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, UsesTheServiceAccountOfAPod) {
  ServeApi(/*tls=*/true);
  objects_.Put({.name = "a"});
  WriteFile("ca.crt", kTestCa);
  options_.in_cluster = true;
  options_.service_account_directory = folder_;
  options_.api_server = api_->address();
  Start();
  EXPECT_EQ(Error(kSource), Missed("read DIR/token: No such file or directory"));
  WriteFile("token", "abc");
  EXPECT_TRUE(PodsBecome({"team/a"}));
  EXPECT_EQ(objects_.Requests("list").back().authorization, "Bearer abc");
}

TEST_F(ApiWatchTest, TrustsTheAuthorityThatTheConfigurationNames) {
  ServeApi(/*tls=*/true);
  objects_.Put({.name = "a"});
  AskApi();
  WriteFile("ca.crt", kOtherCa);
  Start();
  EXPECT_TRUE(ErrorBegins(kSource, "the certificate of SERVER is not trusted: "));
  EXPECT_EQ(Source(kSource).missing, Missing::kNoPermission);
  WriteFile("ca.crt", kTestCa);
  EXPECT_TRUE(PodsBecome({"team/a"}));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, ComesBackWhenTheServerDoes) {
  objects_.Put({.name = "a"});
  AskApi();
  const std::string port_nobody_has = "server: 'http://127.0.0.1:1'";
  WriteFile("down",
            fmt::format("current-context: c\ncontexts: [{{name: c, context: {{cluster: c}}}}]\n"
                        "clusters: [{{name: c, cluster: {{{}}}}}]\n",
                        port_nobody_has));
  std::filesystem::rename(folder_ + "/kubeconfig", folder_ + "/up");
  std::filesystem::rename(folder_ + "/down", folder_ + "/kubeconfig");
  Start();
  EXPECT_TRUE(ErrorBegins(kSource, "http://127.0.0.1:1: Failed to connect"));
  EXPECT_EQ(kubernetes_->Latest(), nullptr);
  std::filesystem::rename(folder_ + "/up", folder_ + "/kubeconfig");
  EXPECT_TRUE(PodsBecome({"team/a"}));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(ApiWatchTest, GivesUpWaitingForAServerThatHangs) {
  options_.timeout = milliseconds(100);
  objects_.Instead("list", TestReply{.kind = TestReply::Kind::kHang, .body = ""});
  AskApi();
  Start();
  EXPECT_EQ(Error(kSource), Missed("SERVER has not answered within 100ms"));
  EXPECT_EQ(Source(kSource).missing, Missing::kTimedOut);
}

TEST_F(ApiWatchTest, SaysThatTheConfigurationIsGone) {
  AskApi();
  std::filesystem::remove(folder_ + "/kubeconfig");
  Start();
  EXPECT_EQ(Error(kSource), Missed("read DIR/kubeconfig: No such file or directory"));
}

TEST_F(ApiWatchTest, AsksNothingWithoutTheNameOfTheNode) {
  options_.node_name = "";
  AskApi();
  Start();
  EXPECT_EQ(Error(kSource), Missed("the name of this node in the cluster is not known"));
  EXPECT_EQ(objects_.Count("list"), 0);
}

TEST_F(ApiWatchTest, DropsPodsThatTheKubeletNoLongerHasWhileTheServerIsAway) {
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"}), PodWithGpus("team", "b", {"GPU-b"})});
  kubelet_.Start();
  objects_.Put({.name = "b"});
  objects_.Put({.name = "a"});
  AskKubelet();
  AskApi();
  Start();
  EXPECT_TRUE(api_->WaitForStreams(1));
  objects_.Instead("watch", Status(500, "away"));
  objects_.Instead("list", Status(500, "away"));
  api_->EndStreams();
  EXPECT_TRUE(ErrorBecomes(kSource, Kept("the API server answers 500: away")));
  EXPECT_EQ(Pods(), (Texts{"team/a", "team/b"}));
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})});
  EXPECT_TRUE(PodsBecome({"team/a"}));
  EXPECT_EQ(FindPod("a")->identity.uid, "uid-a");
}

TEST_F(ApiWatchTest, DropsAllocationsOfDeletedPodsWhileTheKubeletIsAway) {
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"}), PodWithGpus("team", "b", {"GPU-b"})});
  kubelet_.Start();
  objects_.Put({.name = "b"});
  objects_.Put({.name = "a"});
  AskKubelet();
  AskApi();
  Start();
  EXPECT_TRUE(api_->WaitForStreams(1));
  kubelet_.Stop();
  EXPECT_TRUE(ErrorBegins("pod_resources", "no socket"));
  EXPECT_EQ(Allocations(), (Texts{"GPU-a team/a/main", "GPU-b team/b/main"}));
  Delete("b");
  EXPECT_TRUE(AllocationsBecome({"GPU-a team/a/main"}));
}

constexpr char kSlice[] =
    R"({"spec":{"driver":"gpu.nvidia.com","pool":{"name":"node-1"},"nodeName":"node-1","devices":[)"
    R"({"name":"gpu-0","basic":{"attributes":{"uuid":)"
    R"({"string":"GPU-11111111-2222-3333-4444-555555555555"}}}}]}})";

std::vector<KubeletPod> PodWithClaim() {
  return {{"team", "a", {{"main", {}, {{"claim", "gpu.nvidia.com", "node-1", "gpu-0"}}}}}};
}

TEST_F(ApiWatchTest, TellsWhichGpuADeviceOfAClaimIs) {
  kubelet_.Set(PodWithClaim());
  kubelet_.Start();
  objects_.SetSlices(kSlice);
  AskKubelet();
  StartWithOnePod();
  const SchedulerPtr told = kubernetes_->Latest();
  ASSERT_EQ(told->allocations.size(), 1u);
  EXPECT_EQ(told->allocations[0].claim, "claim");
  EXPECT_EQ(
      told->allocations[0].unit,
      (DeviceUnit{"gpu.nvidia.com", "gpu-0", {}, "GPU-11111111-2222-3333-4444-555555555555", ""}));
  EXPECT_EQ(told->allocatable, std::vector<DeviceUnit>{told->allocations[0].unit});
}

TEST_F(ApiWatchTest, ReadsTheSlicesAgainWhenTheKubeletTellsOfAnUnknownDevice) {
  kubelet_.Start();
  AskKubelet();
  StartWithOnePod();
  objects_.SetSlices(kSlice);
  kubelet_.Set(PodWithClaim());
  EXPECT_TRUE(Eventually([&] {
    const SchedulerPtr told = kubernetes_->Latest();
    return told->allocations.size() == 1 && !told->allocations[0].unit.gpu_uuid.empty();
  }));
}

TEST_F(ApiWatchTest, SaysThatSlicesAreForbiddenOnlyWhereThereAreClaims) {
  objects_.Instead("slices", Status(403, "cannot list resourceslices"));
  kubelet_.Start();
  AskKubelet();
  StartWithOnePod();
  kubelet_.Set(PodWithClaim());
  EXPECT_TRUE(ErrorBecomes(kSource,
                           "forbidden: cannot list resourceslices; which GPU a device of DRA is "
                           "comes from its name alone"));
  EXPECT_TRUE(AllocationsBecome({"gpu-0 team/a/main"}));
}

}  // namespace
}  // namespace gpuassay
