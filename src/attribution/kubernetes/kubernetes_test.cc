#include "attribution/kubernetes/kubernetes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "attribution/kubernetes/test_certificates.h"
#include "attribution/kubernetes/test_cluster.h"

namespace gpuassay {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Texts = std::vector<std::string>;

std::string TestPod::Json(int version) const {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"team","uid":"{1}","resourceVersion":"{2}"{3}}},)"
      R"("spec":{{"nodeName":"{4}"{5}}},"status":{{"phase":"{6}","containerStatuses":[)"
      R"({{"name":"main","containerID":"containerd://id-{0}"}}]}}}})",
      name, Uid(), version, metadata, node, spec, phase);
}

std::string TestObjects::Log(std::string_view type, const TestPod& pod) {
  ++version_;
  std::string line = fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, pod.Json(version_));
  events_.push_back({version_, pod.node, line});
  return line;
}

std::string TestObjects::Put(const TestPod& pod) {
  const std::lock_guard lock(mutex_);
  const bool is_new = pods_.insert_or_assign(pod.name, pod).second;
  return Log(is_new ? "ADDED" : "MODIFIED", pod);
}

std::string TestObjects::Delete(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const TestPod pod = pods_.at(name);
  pods_.erase(name);
  return Log("DELETED", pod);
}

void TestObjects::Instead(std::string kind, std::optional<TestReply> reply) {
  const std::lock_guard lock(mutex_);
  instead_.erase(kind);
  if (reply) instead_.emplace(std::move(kind), *reply);
}

void TestObjects::SetSlices(std::string items) {
  const std::lock_guard lock(mutex_);
  slices_ = std::move(items);
}

void TestObjects::SetPageSize(std::size_t pods) {
  const std::lock_guard lock(mutex_);
  page_size_ = pods;
}

std::vector<TestRequest> TestObjects::Requests(std::string_view kind) const {
  const std::lock_guard lock(mutex_);
  std::vector<TestRequest> requests;
  for (const auto& [its_kind, request] : requests_) {
    if (its_kind == kind) requests.push_back(request);
  }
  return requests;
}

int TestObjects::Count(std::string_view kind) const {
  return static_cast<int>(Requests(kind).size());
}

TestReply TestObjects::Answer(const TestRequest& request) {
  const bool slices = request.path.starts_with("/apis/resource.k8s.io/");
  const std::string kind = slices ? "slices" : request.IsWatch() ? "watch" : "list";
  const std::lock_guard lock(mutex_);
  requests_.emplace_back(kind, request);
  if (const auto found = instead_.find(kind); found != instead_.end()) return found->second;
  if (!slices && request.path != "/api/v1/pods") return {.status = 404, .body = "{}"};
  if (!slices) return request.IsWatch() ? Events(request) : Pods(request);
  if (slices_.empty() || request.path != "/apis/resource.k8s.io/v1beta1/resourceslices") {
    return {.status = 404, .body = "404 page not found"};
  }
  return {.body = "{\"items\":[" + slices_ + "]}"};
}

// As the API server: only what the field selector wants.
TestReply TestObjects::Pods(const TestRequest& request) const {
  const auto token = request.query.find("continue");
  const std::size_t skip =
      token == request.query.end() ? 0 : static_cast<std::size_t>(std::stoi(token->second));
  const std::size_t end = skip + page_size_;
  std::size_t position = 0;
  std::string items;
  for (const auto& [name, pod] : pods_) {
    if (request.query.at("fieldSelector") != "spec.nodeName=" + pod.node) continue;
    if (position >= skip && position < end) items += (items.empty() ? "" : ",") + pod.Json(1);
    ++position;
  }
  const std::string more = position > end ? fmt::format(R"(,"continue":"{}")", end) : "";
  return {.body = fmt::format(R"({{"metadata":{{"resourceVersion":"{}"{}}},"items":[{}]}})",
                              version_, more, items)};
}

TestReply TestObjects::Events(const TestRequest& request) const {
  std::string lines;
  for (const Event& event : events_) {
    if (request.query.at("fieldSelector") != "spec.nodeName=" + event.node) continue;
    if (event.version > std::stoi(request.query.at("resourceVersion"))) lines += event.line;
  }
  return {.kind = TestReply::Kind::kStream, .body = lines};
}

bool Eventually(const std::function<bool()>& condition) {
  const SystemClock clock;
  const SteadyTime end = clock.Steady() + seconds(10);
  while (!condition()) {
    if (clock.Steady() > end) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

KubernetesTest::KubernetesTest()
    : folder_(testing::TempDir() + "cluster." + std::to_string(getpid())),
      kubelet_(folder_ + "/kubelet.sock") {
  std::filesystem::create_directories(folder_);
  options_.node_name = "node-1";
  options_.poll = milliseconds(20);
  options_.timeout = seconds(5);
  options_.backoff_min = milliseconds(5);
  options_.backoff_max = milliseconds(20);
}

KubernetesTest::~KubernetesTest() {
  kubernetes_.reset();
  std::filesystem::remove_all(folder_);
}

void KubernetesTest::WriteFile(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ + "/" + name + ".new") << text;
  std::filesystem::rename(folder_ + "/" + name + ".new", folder_ + "/" + name);
}

void KubernetesTest::ServeApi(bool tls) {
  api_ = std::make_unique<TestApiServer>(
      [this](const TestRequest& request) { return objects_.Answer(request); }, tls);
}

void KubernetesTest::AskApi(const std::string& credentials) {
  if (!api_) ServeApi();
  WriteFile("ca.crt", kTestCa);
  WriteFile("kubeconfig", fmt::format(R"(current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{}", certificate-authority: ca.crt}}}}]
users: [{{name: u, user: {{{}}}}}]
)",
                                      api_->address(), credentials));
  options_.kubeconfig = folder_ + "/kubeconfig";
}

void KubernetesTest::Start() {
  kubernetes_ = Kubernetes::Start(options_, clock_);
  kubernetes_->WaitForFirst(seconds(10));
}

void KubernetesTest::SendLine(const std::string& line) {
  if (api_) api_->Send(line);
}

SourceStatus KubernetesTest::Source(std::string_view name) const {
  const std::vector<SourceStatus> sources = kubernetes_->Sources();
  const auto found = std::ranges::find(sources, name, &SourceStatus::name);
  return found == sources.end() ? SourceStatus{} : *found;
}

std::string KubernetesTest::Error(std::string_view name) const {
  std::string error = Source(name).error;
  for (const auto& [text, instead] :
       {std::pair(folder_, "DIR"), std::pair(api_ ? api_->address() : folder_, "SERVER")}) {
    if (const std::size_t at = error.find(text); at != std::string::npos) {
      error.replace(at, text.size(), instead);
    }
  }
  return error;
}

bool KubernetesTest::ErrorBecomes(std::string_view name, std::string_view error) const {
  const bool became = Eventually([&] { return Error(name) == error; });
  EXPECT_EQ(Error(name), error);
  return became;
}

bool KubernetesTest::ErrorBegins(std::string_view name, std::string_view error) const {
  const bool became = Eventually([&] { return Error(name).starts_with(error); });
  if (!became) {
    EXPECT_EQ(Error(name), error);
  }
  return became;
}

Texts KubernetesTest::Pods() const {
  Texts texts;
  const SchedulerPtr told = kubernetes_->Latest();
  if (!told) return {"nothing told"};
  for (const Pod& pod : told->pods) {
    texts.push_back(pod.identity.namespace_name + "/" + pod.identity.name);
  }
  return texts;
}

Texts KubernetesTest::Allocations() const {
  Texts texts;
  const SchedulerPtr told = kubernetes_->Latest();
  if (!told) return {"nothing told"};
  for (const Allocation& one : told->allocations) {
    texts.push_back(fmt::format("{} {}/{}/{}", one.unit.device_id, one.owner.pod->namespace_name,
                                one.owner.pod->name, one.owner.container->name));
  }
  return texts;
}

bool KubernetesTest::PodsBecome(const Texts& pods) const {
  const bool became = Eventually([&] { return Pods() == pods; });
  EXPECT_EQ(Pods(), pods);
  return became;
}

bool KubernetesTest::AllocationsBecome(const Texts& allocations) const {
  const bool became = Eventually([&] { return Allocations() == allocations; });
  EXPECT_EQ(Allocations(), allocations);
  return became;
}

const Pod* KubernetesTest::FindPod(std::string_view name) {
  found_in_ = kubernetes_->Latest();
  if (!found_in_) return nullptr;
  const auto found = std::ranges::find_if(
      found_in_->pods, [&](const Pod& pod) { return pod.identity.name == name; });
  return found == found_in_->pods.end() ? nullptr : &*found;
}

namespace {

TEST_F(KubernetesTest, TellsNothingWhenNobodyIsAsked) {
  Start();
  EXPECT_EQ(kubernetes_->Latest(), nullptr);
  EXPECT_TRUE(kubernetes_->Sources().empty());
  kubernetes_->Poke();
}

TEST_F(KubernetesTest, JoinsWhatTheKubeletAndTheApiServerTell) {
  options_.pod_labels = {"app", "team.example/*"};
  kubelet_.Set({PodWithGpus("team", "train", {"GPU-a"})}, {{"nvidia.com/gpu", {"GPU-a", "GPU-b"}}});
  kubelet_.Start();
  objects_.Put({.name = "train",
                .metadata = R"(,"labels":{"app":"llm","team.example/x":"1","secret":"2"},)"
                            R"("ownerReferences":[{"kind":"Job","name":"j","controller":true}])",
                .spec = R"(,"containers":[{"name":"main","resources":{"limits":)"
                        R"({"nvidia.com/gpu":"1","nvidia.com/gpumem":"1000"}}}])"});
  AskKubelet();
  AskApi();
  Start();
  const SchedulerPtr told = kubernetes_->Latest();
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->allocatable.size(), 2u);
  EXPECT_EQ(Allocations(), Texts{"GPU-a team/train/main"});
  const ProcessOwner& owner = told->allocations.at(0).owner;
  EXPECT_EQ(owner.pod->uid, "uid-train");
  EXPECT_EQ(owner.container->id, "id-train");
  EXPECT_EQ(owner.job->kind, "Job");
  ASSERT_EQ(told->pods.size(), 1u);
  const Pod& pod = told->pods[0];
  EXPECT_EQ(pod.labels, (std::vector<std::pair<std::string, std::string>>{
                            {"app", "llm"}, {"team.example/x", "1"}}));
  EXPECT_EQ(pod.requests, (std::vector<ResourceRequest>{{"main", "nvidia.com/gpu", 1},
                                                        {"main", "nvidia.com/gpumem", 1000}}));
  EXPECT_EQ(pod.memory_request_bytes, 1048576000.0);
  EXPECT_EQ(Error("pod_resources"), "");
  EXPECT_EQ(Error("kubernetes_api"), "");
  EXPECT_EQ(Source("pod_resources").readings.up, Reading(1));
  EXPECT_TRUE(Source("kubernetes_api").last_success.has_value());
}

TEST_F(KubernetesTest, KeepsThePointerWhileNothingChanges) {
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"}), PodWithGpus("team", "b", {"GPU-b"})});
  kubelet_.Start();
  AskKubelet();
  Start();
  const SchedulerPtr told = kubernetes_->Latest();
  const auto asked_again = [this] {
    const int before = kubelet_.lists();
    return Eventually([&] { return kubelet_.lists() >= before + 3; });
  };
  EXPECT_TRUE(asked_again());
  EXPECT_EQ(kubernetes_->Latest(), told);
  kubelet_.Set({PodWithGpus("team", "b", {"GPU-b"}), PodWithGpus("team", "a", {"GPU-a"})});
  EXPECT_TRUE(asked_again());
  EXPECT_EQ(kubernetes_->Latest(), told);
  kubelet_.Set({PodWithGpus("team", "b", {"GPU-b"})});
  EXPECT_TRUE(AllocationsBecome({"GPU-b team/b/main"}));
}

TEST_F(KubernetesTest, EndsSoonWhenBothServersHang) {
  kubelet_.Set(KubeletMood::kHangs);
  kubelet_.Start();
  objects_.Instead("list", TestReply{.kind = TestReply::Kind::kHang, .body = ""});
  options_.timeout = seconds(60);
  AskKubelet();
  AskApi();
  kubernetes_ = Kubernetes::Start(options_, clock_);
  EXPECT_TRUE(Eventually([&] { return kubelet_.lists() == 1 && objects_.Count("list") == 1; }));
  kubernetes_->WaitForFirst(milliseconds(10));
  EXPECT_EQ(kubernetes_->Latest(), nullptr);
  const SteadyTime start = clock_.Steady();
  kubernetes_.reset();
  EXPECT_LT(clock_.Steady() - start, seconds(2));
}

TEST_F(KubernetesTest, EndsSoonDuringAWatchAndLongPauses) {
  kubelet_.Start();
  options_.poll = std::chrono::hours(1);
  AskKubelet();
  AskApi();
  Start();
  EXPECT_TRUE(api_->WaitForStreams(1));
  const SteadyTime start = clock_.Steady();
  kubernetes_.reset();
  EXPECT_LT(clock_.Steady() - start, seconds(2));
}

TEST_F(KubernetesTest, AsksTheKubeletWhenPoked) {
  kubelet_.Start();
  options_.poll = std::chrono::hours(1);
  AskKubelet();
  Start();
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})});
  kubernetes_->Poke();
  EXPECT_TRUE(AllocationsBecome({"GPU-a team/a/main"}));
}

TEST_F(KubernetesTest, AsksTheKubeletWhenTheApiServerTellsOfANewPod) {
  kubelet_.Start();
  options_.poll = std::chrono::hours(1);
  AskKubelet();
  AskApi();
  Start();
  EXPECT_TRUE(api_->WaitForStreams(1));
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})});
  Put({.name = "a"});
  EXPECT_TRUE(AllocationsBecome({"GPU-a team/a/main"}));
}

TEST_F(KubernetesTest, SaysThatTheNodeHasAnotherName) {
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})});
  kubelet_.Start();
  objects_.Put({.name = "a", .node = "node-1.example"});
  AskKubelet();
  AskApi();
  Start();
  EXPECT_EQ(Error("kubernetes_api"),
            "no pods on a node of the name \"node-1\", but the kubelet has some: the node has "
            "another name; labels, requests, controllers and ids of pods are missing");
  EXPECT_EQ(Pods(), Texts{"team/a"});
}

}  // namespace
}  // namespace gpuassay
