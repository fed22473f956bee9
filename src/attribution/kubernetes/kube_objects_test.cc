#include "attribution/kubernetes/kube_objects.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

namespace gpuassay {
namespace {

// A pod as the API server writes it, with `metadata`, `spec` and `status` filled in.
std::string PodJson(std::string_view metadata, std::string_view spec = "",
                    std::string_view status = "") {
  return fmt::format(R"({{"metadata":{{"name":"p","namespace":"team","uid":"u1"{}}},)"
                     R"("spec":{{{}}},"status":{{{}}}}})",
                     metadata, spec, status);
}

ApiPod Parse(const std::string& json, const PodRules& rules = {}) {
  const Result<ApiPod> pod = ParsePod(json, rules);
  EXPECT_TRUE(pod) << (pod ? "" : pod.error().what);
  return pod ? *pod : ApiPod{};
}

std::string Container(std::string_view name, std::string_view limits) {
  return fmt::format(R"({{"name":"{}","resources":{{"limits":{{{}}}}}}})", name, limits);
}

TEST(ParsePod, ReadsWhatIdentifiesIt) {
  const ApiPod result = Parse(PodJson(
      R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","ownerReferences":[{"kind":"Node","name":"n"},
         {"kind":"PyTorchJob","name":"llm","controller":true}])",
      "",
      R"("phase":"Running","startTime":"2026-01-02T03:04:05Z","containerStatuses":[
         {"name":"main","containerID":"containerd://abc"},{"name":"waits"}],
         "initContainerStatuses":[{"name":"init","containerID":"cri-o://def"}])"));
  EXPECT_EQ(result.pod.identity, (PodIdentity{"team", "p", "u1"}));
  EXPECT_EQ(result.pod.phase, "Running");
  EXPECT_TRUE(result.pod.terminating);
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(result.pod.controller, (JobIdentity{"PyTorchJob", "llm", ""}));
  EXPECT_EQ(result.pod.started, WallTime(std::chrono::seconds(1767323045)));
  EXPECT_EQ(result.pod.containers, (std::vector<PodContainer>{{"main", "abc"}, {"init", "def"}}));
}

TEST(ParsePod, NamesTheDeploymentAboveAReplicaSet) {
  const auto controller = [](std::string_view name, std::string_view hash) {
    return Parse(PodJson(fmt::format(R"(,"labels":{{"pod-template-hash":"{}"}},"ownerReferences":[)"
                                     R"({{"kind":"ReplicaSet","name":"{}","controller":true}}])",
                                     hash, name)))
        .pod.controller;
  };
  EXPECT_EQ(controller("web-server-7d9f", "7d9f"), (JobIdentity{"Deployment", "web-server", ""}));
  EXPECT_EQ(controller("web-server-7d9f", "other"),
            (JobIdentity{"ReplicaSet", "web-server-7d9f", ""}));
  EXPECT_EQ(controller("-7d9f", "7d9f"), (JobIdentity{"ReplicaSet", "-7d9f", ""}));
  EXPECT_EQ(controller("own", ""), (JobIdentity{"ReplicaSet", "own", ""}));
}

TEST(ParsePod, TakesTheJobFromItsLabelWhenNobodyControlsThePod) {
  EXPECT_EQ(Parse(PodJson(R"(,"labels":{"batch.kubernetes.io/job-name":"train"})")).pod.controller,
            (JobIdentity{"Job", "train", ""}));
  EXPECT_EQ(Parse(PodJson(R"(,"labels":{"job-name":"old"})")).pod.controller,
            (JobIdentity{"Job", "old", ""}));
  EXPECT_EQ(Parse(PodJson("")).pod.controller, JobIdentity{});
}

TEST(ParsePod, TakesTheUidThatAStaticPodHasOnTheNode) {
  EXPECT_EQ(Parse(PodJson(R"(,"annotations":{"kubernetes.io/config.mirror":"0123abcd"})"))
                .pod.identity.uid,
            "0123abcd");
}

TEST(ParsePod, KeepsOnlyRequestsOfAccelerators) {
  const PodRules rules{{"example.com/a100"}, {}};
  const Pod pod =
      Parse(PodJson("", R"("containers":[)" +
                            Container("a", R"("cpu":"8","nvidia.com/gpu":"2","memory":"1Gi")") +
                            "," + Container("b", R"("example.com/a100":1,"nvidia.com/gpu":"x")") +
                            R"(],"initContainers":[{"name":"i","resources":{"requests":)"
                            R"({"nvidia.com/mig-1g.5gb":"1"}}}])"),
            rules)
          .pod;
  EXPECT_EQ(pod.requests, (std::vector<ResourceRequest>{{"a", "nvidia.com/gpu", 2},
                                                        {"b", "example.com/a100", 1},
                                                        {"i", "nvidia.com/mig-1g.5gb", 1}}));
  EXPECT_EQ(pod.memory_request_bytes, std::nullopt);
}

TEST(ParsePod, MultipliesHamiMemoryByTheDevicesOfTheContainer) {
  const auto bytes = [](const std::string& containers) {
    return Parse(PodJson("", R"("containers":[)" + containers + "]")).pod.memory_request_bytes;
  };
  EXPECT_EQ(bytes(Container("a", R"("nvidia.com/gpu":"2","nvidia.com/gpumem":"3000")")),
            6291456000.0);
  EXPECT_EQ(bytes(Container("a", R"("nvidia.com/gpumem":"3000")")), 3145728000.0);
  EXPECT_EQ(bytes(Container("a", R"("nvidia.com/gpu":"2")") + "," +
                  Container("b", R"("nvidia.com/gpumem":"1024")")),
            1073741824.0);
  EXPECT_EQ(bytes(Container("a", R"("volcano.sh/vgpu-number":3,"volcano.sh/vgpu-memory":1024)")),
            3221225472.0);
  EXPECT_EQ(bytes(Container("a", R"("nvidia.com/gpu":"1","nvidia.com/gpumem-percentage":"50")")),
            std::nullopt);
}

TEST(ParsePod, CountsRenamedHamiMemoryByTheResourceOfItsDomain) {
  const PodRules rules{{"example.com/gpumem", "example.com/vgpu"}, {}};
  EXPECT_EQ(Parse(PodJson("", R"("containers":[)" +
                                  Container("a", R"("example.com/vgpu":"2",)"
                                                 R"("example.com/gpumem":"512")") +
                                  "]"),
                  rules)
                .pod.memory_request_bytes,
            1073741824.0);
}

TEST(ParsePod, LeavesInitContainersOutOfTheMemoryUnlessTheyStay) {
  const auto bytes = [](std::string_view policy) {
    return Parse(PodJson("", fmt::format(R"("initContainers":[{{"name":"i"{},"resources":)"
                                         R"({{"limits":{{"nvidia.com/gpumem":"1"}}}}}}])",
                                         policy)))
        .pod.memory_request_bytes;
  };
  EXPECT_EQ(bytes(""), std::nullopt);
  EXPECT_EQ(bytes(R"(,"restartPolicy":"Always")"), 1048576.0);
}

TEST(ParsePod, ReadsTheAnnotationsOfKai) {
  const Pod memory =
      Parse(PodJson(R"(,"annotations":{"gpu-memory":"2000","gpu-fraction-num-devices":"2"})")).pod;
  EXPECT_EQ(memory.memory_request_bytes, 4194304000.0);
  EXPECT_EQ(memory.requests, (std::vector<ResourceRequest>{{"", "gpu-memory", 2000}}));
  const Pod fraction = Parse(PodJson(R"(,"annotations":{"gpu-fraction":"0.5",)"
                                     R"("gpu-fraction-container-name":"main"})"))
                           .pod;
  EXPECT_EQ(fraction.memory_request_bytes, std::nullopt);
  EXPECT_EQ(fraction.requests, (std::vector<ResourceRequest>{{"main", "gpu-fraction", 0.5}}));
}

TEST(ParsePod, KeepsTheLabelsOfTheAllowList) {
  const PodRules rules{{}, {"team", "app.kubernetes.io/*"}};
  const Pod pod = Parse(PodJson(R"(,"labels":{"team":"vision","teams":"x","z":"y",)"
                                R"("app.kubernetes.io/name":"trainer"})"),
                        rules)
                      .pod;
  EXPECT_EQ(pod.labels, (std::vector<std::pair<std::string, std::string>>{
                            {"app.kubernetes.io/name", "trainer"}, {"team", "vision"}}));
}

TEST(ParsePod, CountsWhatIsOverABound) {
  std::string labels;
  for (int i = 10; i < 27; ++i) labels += fmt::format(R"({}"l{}":"v")", i == 10 ? "" : ",", i);
  const ApiPod pod = Parse(PodJson(R"(,"labels":{)" + labels + "}"), PodRules{{}, {"*"}});
  EXPECT_EQ(pod.pod.labels.size(), 16u);
  EXPECT_EQ(pod.dropped, 1u);
}

TEST(ParsePod, CutsLongTextsAtACharacter) {
  const Pod pod = Parse(PodJson(R"(,"labels":{"l":"x)" + std::string(254, 'x') + "é" + R"("})"),
                        PodRules{{}, {"*"}})
                      .pod;
  EXPECT_EQ(pod.labels.at(0).second, std::string(255, 'x'));
}

TEST(ParsePod, RefusesWhatIsNoPod) {
  EXPECT_FALSE(ParsePod("", {}));
  EXPECT_FALSE(ParsePod("{", {}));
  EXPECT_FALSE(ParsePod("[]", {}));
  EXPECT_FALSE(ParsePod(R"({"metadata":{"name":"p","namespace":"n"}})", {}));
  EXPECT_FALSE(ParsePod(R"({"metadata":7})", {}));
  EXPECT_EQ(ParsePod(std::string((2 << 20) + 1, ' '), {}).error().what, "longer than 2 MiB");
}

TEST(ParsePod, SkipsMembersOfAnotherKind) {
  const ApiPod pod = Parse(PodJson(R"(,"labels":[1],"ownerReferences":{"a":1})",
                                   R"("containers":[7,{"resources":[]}])",
                                   R"("phase":3,"containerStatuses":"x","startTime":"soon")"));
  EXPECT_EQ(pod.pod.phase, "");
  EXPECT_EQ(pod.pod.started, std::nullopt);
}

TEST(ParsePodPage, ReadsPodsAndWhereToGoOn) {
  const Result<PodPage> page =
      ParsePodPage(R"({"metadata":{"resourceVersion":"77","continue":"abc"},"items":[)" +
                       PodJson("") + R"(,{"metadata":{}}]})",
                   {});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->resource_version, "77");
  EXPECT_EQ(page->continue_token, "abc");
  ASSERT_EQ(page->pods.size(), 1u);
  EXPECT_EQ(page->pods[0].pod.identity.name, "p");
  EXPECT_EQ(page->dropped, 1u);
  EXPECT_FALSE(ParsePodPage(R"({"kind":"Status"})", {}));
}

TEST(ParseWatchEvent, ReadsEachKind) {
  const auto parse = [](const std::string& line) { return ParseWatchEvent(line, {}); };
  const std::string pod = PodJson(R"(,"resourceVersion":"9")");
  Result<WatchEvent> event = parse(R"({"type":"ADDED","object":)" + pod + "}");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, WatchEvent::Kind::kPut);
  EXPECT_EQ(event->resource_version, "9");
  EXPECT_EQ(event->pod.pod.identity.uid, "u1");
  event = parse(R"({"type":"DELETED","object":)" + pod + "}");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, WatchEvent::Kind::kDelete);
  event = parse(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, WatchEvent::Kind::kBookmark);
  EXPECT_EQ(event->resource_version, "12");
  event = parse(R"({"type":"ERROR","object":{"code":410,"message":"too old"}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, WatchEvent::Kind::kError);
  EXPECT_EQ(event->code, 410);
  EXPECT_EQ(event->message, "too old");
}

TEST(ParseWatchEvent, RefusesHalfALine) {
  EXPECT_FALSE(ParseWatchEvent(R"({"type":"ADDED","object":{"metad)", {}));
  EXPECT_FALSE(ParseWatchEvent(R"({"type":"SURPRISE","object":{}})", {}));
}

TEST(StatusMessage, IsOneLine) {
  EXPECT_EQ(StatusMessage(R"({"kind":"Status","message":"pods is\nforbidden"})"),
            "pods is forbidden");
  EXPECT_EQ(StatusMessage("<html>"), "");
}

TEST(ParseResourceSlices, ReadsBothLayouts) {
  const Result<std::vector<SliceDevice>> devices = ParseResourceSlices(R"({"items":[
    {"spec":{"driver":"gpu.nvidia.com","pool":{"name":"node-a"},"devices":[
      {"name":"gpu-0","attributes":{"uuid":{"string":"GPU-11111111-2222-3333-4444-555555555555"}}},
      {"name":"gpu-1-mig-1g5gb-19-0","attributes":{"profile":{"string":"1g.5gb"},
        "parentUUID":{"string":"GPU-11111111-2222-3333-4444-555555555555"}}}]}},
    {"spec":{"driver":"gpu.nvidia.com","pool":{"name":"node-a"},"devices":[
      {"name":"gpu-2-mig-19-0-1","basic":{"attributes":{
        "gpu.nvidia.com/uuid":{"string":"mig-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"},
        "parentUUID":{"string":"GPU-11111111-2222-3333-4444-555555555555"}}}}]}}]})");
  ASSERT_TRUE(devices);
  const std::string gpu = "GPU-11111111-2222-3333-4444-555555555555";
  EXPECT_EQ(*devices,
            (std::vector<SliceDevice>{{"gpu.nvidia.com", "node-a", "gpu-0", gpu, ""},
                                      {"gpu.nvidia.com", "node-a", "gpu-1-mig-1g5gb-19-0", "", ""},
                                      {"gpu.nvidia.com", "node-a", "gpu-2-mig-19-0-1", gpu,
                                       "MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"}}));
  EXPECT_FALSE(ParseResourceSlices("[]"));
}

TEST(ParseKubeTime, ReadsUtcOnly) {
  EXPECT_EQ(ParseKubeTime("1970-01-02T00:00:01Z"), WallTime(std::chrono::seconds(86401)));
  EXPECT_EQ(ParseKubeTime("1970-01-01T00:00:01.999999Z"), WallTime(std::chrono::seconds(1)));
  for (const char* text : {"", "1970-01-01", "1970-13-01T00:00:00Z", "1970-01-01T24:00:00Z",
                           "1970-01-01T00:00:00+01:00", "1970-02-30T00:00:00Z"}) {
    EXPECT_EQ(ParseKubeTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpuassay
