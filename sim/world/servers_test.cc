// The kubelet and the API server of a scenario's node, read by the product's own clients.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "attribution/kubernetes/api_client.h"
#include "attribution/kubernetes/kube_objects.h"
#include "attribution/kubernetes/kubeconfig.h"
#include "attribution/kubernetes/pod_resources.h"
#include "sim/engine/identifiers.h"
#include "sim/world/api_server.h"
#include "sim/world/names.h"
#include "sim/world/test_world.h"

namespace gpuassay::sim {
namespace {

using std::chrono::seconds;

// Two shared T4 and an A100 in MIG mode; the second pod comes at 10 s and goes at 20 s, one of a
// claim is there from 15 s on.
constexpr std::string_view kStory = R"(
hostname: node-1
gpus:
  - {model: t4, uuid: GPU-aaaaaaaa-0000-1111-2222-333344445555}
  - {model: t4, uuid: GPU-bbbbbbbb-0000-1111-2222-333344445555}
  - {model: a100-sxm4-40gb, uuid: GPU-cccccccc-0000-1111-2222-333344445555, mig: [3g.20gb, 1g.5gb]}
kubernetes:
  resources:
    - {name: nvidia.com/gpu, gpus: 0-1, replicas: 2}
    - {name: nvidia.com/mig-1g.5gb, gpus: 2, mig: 1g.5gb}
  kubelet_down: [{at: 30s, for: 5s}]
  kubelet_absent: [{at: 40s, for: 5s}]
  api_forbidden: [{at: 30s, for: 5s}]
  api_down: [{at: 40s, for: 5s}]
pods:
  - name: training-job-1
    namespace: ml
    uid: 0a1b2c3d-4e5f-6789-abcd-ef0123456789
    qos: guaranteed
    controller: {kind: Deployment, name: training}
    labels: {app: trainer, team: vision}
    containers:
      - name: main
        id: aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999
        devices: [{gpu: 0, replica: 1}, {gpu: 1, replica: 0}]
        requests: {nvidia.com/gpu: 2, nvidia.com/gpumem: 8192}
      - {name: sidecar}
  - {name: slow-inference, start: 10s, for: 10s,
     devices: [{resource: nvidia.com/mig-1g.5gb, gpu: 2, mig: 1}]}
  - {name: claimed, start: 15s,
     devices: [{claim: one-gpu, gpu: 1}, {claim: one-gpu, gpu: 2, mig: 1}]}
)";

std::string Ask(const std::string& socket) {
  PodResourcesClient client(socket);
  const Result<KubeletAnswer> answer = client.Ask(seconds(10));
  if (!answer) {
    return answer.error().what;
  }
  std::string text;
  for (const KubeletPod& pod : answer->pods) {
    for (const KubeletContainer& container : pod.containers) {
      text += fmt::format("{}/{}/{}:", pod.namespace_name, pod.name, container.name);
      for (const KubeletDevices& devices : container.devices) {
        for (const std::string& id : devices.ids) {
          text += fmt::format(" {} {}", devices.resource, id);
        }
      }
      for (const KubeletClaimDevice& device : container.claim_devices) {
        text +=
            fmt::format(" {} {} {} {}", device.claim, device.driver, device.pool, device.device);
      }
      text += '\n';
    }
  }
  return text;
}

constexpr std::string_view kFirstPod =
    "ml/training-job-1/main: nvidia.com/gpu GPU-aaaaaaaa-0000-1111-2222-333344445555::1"
    " nvidia.com/gpu GPU-bbbbbbbb-0000-1111-2222-333344445555::0\nml/training-job-1/sidecar:\n";

TEST(Kubelet, TellsPodsAndDevicesOfTheTime) {
  const Scenario scenario = *ParseScenario(kStory, "story.yaml");
  WorldAt at(scenario, {});
  EXPECT_EQ(Ask(at.world().pod_resources_socket()), kFirstPod);
  const std::string inference =
      "default/slow-inference/main: nvidia.com/mig-1g.5gb " + MigUuid(scenario, 2, 1, 0) + "\n";
  at.world().Update(seconds(10));
  EXPECT_EQ(Ask(at.world().pod_resources_socket()), std::string(kFirstPod) + inference);
  const std::string claimed =
      "default/claimed/main: one-gpu gpu.nvidia.com node-1 gpu-1"
      " one-gpu gpu.nvidia.com node-1 gpu-2-mig-1g5gb-19-4\n";
  at.world().Update(seconds(15));
  EXPECT_EQ(Ask(at.world().pod_resources_socket()), std::string(kFirstPod) + inference + claimed);
  at.world().Update(seconds(20));
  EXPECT_EQ(Ask(at.world().pod_resources_socket()), std::string(kFirstPod) + claimed);
}

TEST(Kubelet, TellsWhatCanBeHandedOut) {
  const Scenario scenario = *ParseScenario(kStory, "story.yaml");
  WorldAt at(scenario, {});
  PodResourcesClient client(at.world().pod_resources_socket());
  const Result<KubeletAnswer> answer = client.Ask(seconds(10));
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->allocatable_error, "");
  EXPECT_EQ(answer->allocatable,
            (std::vector<KubeletDevices>{{"nvidia.com/gpu",
                                          {"GPU-aaaaaaaa-0000-1111-2222-333344445555::0",
                                           "GPU-aaaaaaaa-0000-1111-2222-333344445555::1",
                                           "GPU-bbbbbbbb-0000-1111-2222-333344445555::0",
                                           "GPU-bbbbbbbb-0000-1111-2222-333344445555::1"}},
                                         {"nvidia.com/mig-1g.5gb", {MigUuid(scenario, 2, 1, 0)}}}));
}

TEST(Kubelet, IsDownThenAbsentThenThereAgain) {
  WorldAt at(kStory, seconds(30));
  const std::string socket = at.world().pod_resources_socket();
  EXPECT_EQ(Ask(socket), "nobody listens on " + socket + ": is the kubelet down?");
  at.world().Update(seconds(35));
  EXPECT_EQ(Ask(socket).substr(0, 20), "ml/training-job-1/ma");
  at.world().Update(seconds(40));
  EXPECT_EQ(Ask(socket),
            "no socket " + socket + ": is the kubelet running and its folder mounted?");
  at.world().Update(seconds(45));
  EXPECT_EQ(Ask(socket).substr(0, 20), "ml/training-job-1/ma");
  at.world().Update(seconds(30));  // the story begins anew
  EXPECT_EQ(Ask(socket), "nobody listens on " + socket + ": is the kubelet down?");
}

class Api {
 public:
  explicit Api(ApiAccess access) : access_(std::move(access)) {}
  explicit Api(const World& world) : Api(*ReadKubeconfig(world.kubeconfig())) {}

  Result<ApiResponse> Get(const std::string& path) {
    return client_.Get(access_, path, seconds(10), kPageBytesMax);
  }
  std::string Error(const std::string& path) {
    const Result<ApiResponse> response = Get(path);
    return response ? fmt::format("{} {}", response->status, StatusMessage(response->body))
                    : "no answer";
  }
  PodPage Pods(const std::string& query = "") {
    const Result<ApiResponse> response = Get("/api/v1/pods?" + query);
    EXPECT_TRUE(response && response->status == 200);
    const Result<PodPage> page = ParsePodPage(response ? response->body : "", {{}, {"app"}});
    EXPECT_TRUE(page);
    return page ? *page : PodPage();
  }
  ApiAccess& access() { return access_; }

 private:
  SystemClock clock_;
  ApiClient client_{clock_};
  ApiAccess access_;
};

std::string Names(const PodPage& page) {
  std::string names;
  for (const ApiPod& pod : page.pods) {
    names += (names.empty() ? "" : " ") + pod.pod.identity.name;
  }
  return names;
}

TEST(SimulatedApi, ListsPodsOfTheNode) {
  WorldAt at(kStory, seconds(15));
  Api api(at.world());
  EXPECT_EQ(Names(api.Pods("fieldSelector=spec.nodeName%3Dnode-1")),
            "training-job-1 slow-inference claimed");
  EXPECT_EQ(Names(api.Pods("fieldSelector=spec.nodeName%3Danother")), "");
  const ApiPod pod = api.Pods().pods.at(0);
  EXPECT_EQ(pod.pod.identity,
            (PodIdentity{"ml", "training-job-1", "0a1b2c3d-4e5f-6789-abcd-ef0123456789"}));
  EXPECT_EQ(pod.pod.phase, "Running");
  EXPECT_EQ(pod.pod.controller, (JobIdentity{"Deployment", "training", ""}));
  EXPECT_EQ(pod.pod.labels, (std::vector<std::pair<std::string, std::string>>{{"app", "trainer"}}));
  ASSERT_EQ(pod.pod.requests.size(), 2U);
  EXPECT_EQ(pod.pod.requests[0].resource, "nvidia.com/gpu");
  EXPECT_EQ(pod.pod.requests[0].amount, 2);
  EXPECT_EQ(pod.pod.memory_request_bytes, 2 * 8192.0 * 1024 * 1024);
  ASSERT_EQ(pod.pod.containers.size(), 2U);
  EXPECT_EQ(pod.pod.containers[0].id,
            "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999");
  EXPECT_EQ(pod.pod.started, ParseKubeTime("2026-01-05T00:00:00Z"));
}

TEST(SimulatedApi, ListsInPages) {
  WorldAt at(kStory, seconds(15));
  Api api(at.world());
  const PodPage first = api.Pods("limit=2");
  EXPECT_EQ(Names(first), "training-job-1 slow-inference");
  ASSERT_NE(first.continue_token, "");
  const PodPage last = api.Pods("limit=2&continue=" + first.continue_token);
  EXPECT_EQ(Names(last), "claimed");
  EXPECT_EQ(last.continue_token, "");
}

TEST(SimulatedApi, ListsTheDevicesOfClaims) {
  const Scenario scenario = *ParseScenario(kStory, "story.yaml");
  WorldAt at(scenario, {});
  Api api(at.world());
  for (const char* const version : {"v1", "v1beta1"}) {
    const Result<ApiResponse> response =
        api.Get(fmt::format("/apis/resource.k8s.io/{}/resourceslices", version));
    ASSERT_TRUE(response);
    const Result<std::vector<SliceDevice>> devices = ParseResourceSlices(response->body);
    ASSERT_TRUE(devices) << devices.error().what;
    const std::string gpu = "GPU-cccccccc-0000-1111-2222-333344445555";
    EXPECT_EQ(
        *devices,
        (std::vector<SliceDevice>{
            {"gpu.nvidia.com", "node-1", "gpu-0", "GPU-aaaaaaaa-0000-1111-2222-333344445555", ""},
            {"gpu.nvidia.com", "node-1", "gpu-1", "GPU-bbbbbbbb-0000-1111-2222-333344445555", ""},
            {"gpu.nvidia.com", "node-1", "gpu-2-mig-3g20gb-9-0", gpu, MigUuid(scenario, 2, 0, 0)},
            {"gpu.nvidia.com", "node-1", "gpu-2-mig-1g5gb-19-4", gpu,
             MigUuid(scenario, 2, 1, 0)}}));
  }
}

TEST(SimulatedApi, RefusesAsTheRealOneDoes) {
  WorldAt at(kStory, {});
  Api api(at.world());
  EXPECT_EQ(api.Error("/api/v1/nodes"), "404 the server could not find the requested resource");
  EXPECT_EQ(api.Error("/api/v1/pods?fieldSelector=status.phase%3DRunning"),
            "400 field label not supported");
  api.access().token = "another";
  EXPECT_EQ(api.Error("/api/v1/pods"), "401 Unauthorized");
}

TEST(SimulatedApi, ForbidsThenIsDownThenThereAgain) {
  WorldAt at(kStory, seconds(30));
  Api api(at.world());
  EXPECT_EQ(api.Error("/api/v1/pods"),
            "403 pods is forbidden: User \"system:serviceaccount:gpuassay:gpuassay\" cannot list "
            "resource \"pods\" in API group \"\" at the cluster scope");
  EXPECT_EQ(api.Error("/apis/resource.k8s.io/v1/resourceslices").substr(0, 31),
            "403 resourceslices is forbidden");
  at.world().Update(seconds(35));
  EXPECT_EQ(Names(api.Pods()), "training-job-1 claimed");
  at.world().Update(seconds(40));
  EXPECT_EQ(api.Error("/api/v1/pods"), "no answer");
  at.world().Update(seconds(45));
  EXPECT_EQ(Names(api.Pods()), "training-job-1 claimed");
}

// One watch in a thread of its own, until the server ends it.
class Watcher {
 public:
  Watcher(Api& api, const std::string& query)
      : access_(api.access()), thread_([this, query] { Watch(query); }) {}

  // The names with what became of them, when there are so many or the watch has ended.
  std::string WaitFor(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(30), [&] { return events_.size() >= count || ended_; });
    std::string text = fmt::format("{}", fmt::join(events_, " "));
    return text + (ended_ ? how_ : "");
  }
  std::string WaitForEnd() { return WaitFor(1'000'000); }

 private:
  void Watch(const std::string& query) {
    ApiClient client(clock_);
    const Result<ApiResponse> response = client.Stream(
        access_, "/api/v1/pods?watch=1&" + query, seconds(10), seconds(60), kPodBytesMax,
        [&](std::string_view line) {
          const Result<WatchEvent> event = ParseWatchEvent(line, {});
          constexpr const char* kWords[] = {"+", "-", "bookmark", "error "};
          const std::lock_guard lock(mutex_);
          events_.push_back(!event ? "nonsense"
                                   : kWords[static_cast<int>(event->kind)] +
                                         event->pod.pod.identity.name +
                                         (event->code == 0 ? "" : std::to_string(event->code)));
          changed_.notify_all();
          return true;
        });
    const std::lock_guard lock(mutex_);
    ended_ = true;
    how_ = response ? fmt::format(" end {}", response->status) : " cut";
    changed_.notify_all();
  }

  SystemClock clock_;
  ApiAccess access_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::string> events_;
  bool ended_ = false;
  std::string how_;
  std::jthread thread_;
};

TEST(SimulatedApi, WatchTellsWhatComesAndGoesUntilItIsForbidden) {
  WorldAt at(kStory, {});
  Api api(at.world());
  Watcher watcher(api, "resourceVersion=" + api.Pods().resource_version +
                           "&allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dnode-1");
  EXPECT_EQ(watcher.WaitFor(1), "bookmark");
  at.world().Update(seconds(15));
  EXPECT_EQ(watcher.WaitFor(3), "bookmark +slow-inference +claimed");
  at.world().Update(seconds(20));
  EXPECT_EQ(watcher.WaitFor(4), "bookmark +slow-inference +claimed -slow-inference");
  at.world().Update(seconds(30));
  EXPECT_EQ(watcher.WaitForEnd(), "bookmark +slow-inference +claimed -slow-inference end 200");
}

TEST(SimulatedApi, WatchWithoutVersionBeginsWithWhatIsThereAndIsCutWhenTheServerGoes) {
  WorldAt at(kStory, {});
  Api api(at.world());
  Watcher watcher(api, "");
  EXPECT_EQ(watcher.WaitFor(1), "+training-job-1");
  at.world().Update(seconds(25));
  EXPECT_EQ(watcher.WaitFor(2), "+training-job-1 +claimed");
  at.world().Update(seconds(40));
  EXPECT_EQ(watcher.WaitForEnd(), "+training-job-1 +claimed cut");
}

TEST(SimulatedApi, WatchEndsAtItsTimeAndOneOfAForgottenVersionIsTold) {
  WorldAt at(kStory, {});
  Api api(at.world());
  EXPECT_EQ(Watcher(api, "timeoutSeconds=0").WaitForEnd(), "+training-job-1 end 200");
  EXPECT_EQ(Watcher(api, "resourceVersion=17").WaitForEnd(), "error 410 end 200");
}

TEST(SimulatedApi, RemembersSoManyChanges) {
  const Scenario scenario =
      *ParseScenario("gpus: [{model: t4}]\npods: [{name: a, end: 10s}]", "story.yaml");
  Result<std::unique_ptr<ApiServer>> server = ApiServer::Start(scenario);
  ASSERT_TRUE(server);
  // The first of them was at the start.
  for (std::size_t change = 1; change < ApiServer::kEventsMax; ++change) {
    (*server)->Update(change % 2 == 1 ? seconds(10) : seconds(0));
  }
  ApiAccess access;
  access.server = (*server)->address();
  access.token = ApiToken(scenario);
  Api api(access);
  // All changes, then the end.
  const std::string events = Watcher(api, "resourceVersion=1000&timeoutSeconds=0").WaitForEnd();
  EXPECT_EQ(std::ranges::count(events, 'a'), std::ptrdiff_t{ApiServer::kEventsMax});
  EXPECT_TRUE(events.ends_with("-a end 200"));
  (*server)->Update(seconds(0));
  EXPECT_EQ(Watcher(api, "resourceVersion=1000").WaitForEnd(), "error 410 end 200");
  EXPECT_TRUE(
      Watcher(api, "resourceVersion=1001&timeoutSeconds=0").WaitForEnd().ends_with("+a end 200"));
}

TEST(SimulatedApi, WatchOfAnotherNodeSeesNothing) {
  WorldAt at(kStory, seconds(15));
  Api api(at.world());
  EXPECT_EQ(Watcher(api, "fieldSelector=spec.nodeName%3Danother&timeoutSeconds=0").WaitForEnd(),
            " end 200");
}

TEST(Servers, AreNotThereWithoutKubernetes) {
  WorldAt at("gpus: [{model: t4}]\nnode: {cgroup: v2}\n", {});
  EXPECT_EQ(at.world().pod_resources_socket(), "");
  EXPECT_EQ(at.world().kubeconfig(), "");
}

TEST(Servers, NeedAPathThatASocketCanHave) {
  const Scenario scenario = *ParseScenario(kStory, "story.yaml");
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("gpuassay-" + std::string(100, 'x'));
  std::filesystem::create_directory(directory);
  const Result<std::unique_ptr<World>> world = World::Start(scenario, directory.string());
  ASSERT_FALSE(world);
  EXPECT_EQ(world.error().code, ErrorCode::kIo);
  EXPECT_EQ(world.error().what,
            (directory / "kubelet.sock").string() + ": a socket's path has at most 107 bytes");
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace gpuassay::sim
