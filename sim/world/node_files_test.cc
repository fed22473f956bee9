// What pods and containers leave on the disk of a node, and that it goes with them.
#include "sim/world/node_files.h"

#include <gtest/gtest.h>

#include <chrono>

#include "sim/world/test_world.h"

namespace gpuassay::sim {
namespace {

using std::chrono::seconds;

// Ids are long; these have one digit each.
std::string Id(char digit) { return std::string(64, digit); }

std::string Story(std::string_view runtime) {
  return fmt::format(R"(
gpus: [{{model: t4}}]
node: {{container_runtime: {}}}
pods:
  - {{name: infer-0, namespace: ml, uid: 0a1b2c3d-4e5f-6789-abcd-ef0123456789, id: {}, end: 30s}}
containers:
  - {{name: jupyter, runtime: docker, id: {}, end: 60s}}
  - {{name: batch, runtime: podman, id: {}}}
  - {{name: tool, runtime: containerd, id: {}}}
)",
                     runtime, Id('a'), Id('b'), Id('c'), Id('d'));
}

std::string Listing(const NodeFiles& files) {
  std::string text;
  for (const auto& [path, entry] : files) {
    constexpr std::string_view kMarks[] = {"/", " = ", " -> "};
    text += path;
    text += kMarks[static_cast<int>(entry.kind)];
    text += entry.content + "\n";
  }
  return text;
}

std::string Docker() {
  return "var/lib/docker/containers/" + Id('b') + "/\nvar/lib/docker/containers/" + Id('b') +
         "/config.v2.json = {\"ID\":\"" + Id('b') +
         "\",\"Name\":\"/jupyter\",\"State\":{\"Dead\":false,\"Paused\":false,\"Running\":true}}\n";
}

TEST(NodeFiles, OfAPodAndOfContainersAreWhereTheirProgramsKeepThem) {
  const Scenario scenario = *ParseScenario(Story("containerd"), "story.yaml");
  const std::string tasks = "run/containerd/io.containerd.runtime.v2.task/";
  const std::string pod = "ml_infer-0_0a1b2c3d-4e5f-6789-abcd-ef0123456789";
  EXPECT_EQ(Listing(NodeFilesAt(scenario, {})),
            tasks + "default/\n" + tasks + "default/" + Id('d') + "/\n" + tasks + "k8s.io/\n" +
                tasks + "k8s.io/" + Id('a') + "/\n" + tasks + "moby/\n" + tasks + "moby/" +
                Id('b') + "/\nvar/lib/containers/storage/overlay-containers/\n" +
                "var/lib/containers/storage/overlay-containers/" + Id('c') + "/\n" +
                "var/lib/containers/storage/overlay-containers/containers.json = [{\"id\":\"" +
                Id('c') + "\",\"names\":[\"batch\"]}]\nvar/lib/docker/containers/\n" + Docker() +
                "var/lib/kubelet/pods/\n"
                "var/lib/kubelet/pods/0a1b2c3d-4e5f-6789-abcd-ef0123456789/\n"
                "var/log/containers/\nvar/log/containers/infer-0_ml_main-" +
                Id('a') + ".log -> /var/log/pods/" + pod + "/main/0.log\nvar/log/pods/\n" +
                "var/log/pods/" + pod + "/\nvar/log/pods/" + pod + "/main/\nvar/log/pods/" + pod +
                "/main/0.log = \n");
}

TEST(NodeFiles, OfCriOAreInTheStorageOfPodman) {
  const NodeFiles files = NodeFilesAt(*ParseScenario(Story("cri-o"), "story.yaml"), seconds(29));
  EXPECT_EQ(files.at("var/lib/containers/storage/overlay-containers/containers.json").content,
            "[{\"id\":\"" + Id('a') +
                "\",\"names\":[\"k8s_main_infer-0_ml_0a1b2c3d-4e5f-6789-abcd-ef0123456789_0\"]},"
                "{\"id\":\"" +
                Id('c') + "\",\"names\":[\"batch\"]}]");
  EXPECT_FALSE(files.contains("run/containerd/io.containerd.runtime.v2.task/k8s.io"));
}

TEST(NodeFiles, GoWithTheirPodAndContainerAndComeBackWhenTheStoryBeginsAnew) {
  WorldAt at(Story("containerd"), {});
  const auto list = [&](std::string_view path) {
    const Result<std::vector<std::string>> names = RootFs::Open(at.world().root())->List(path);
    return !names ? "no such directory" : names->empty() ? "" : names->front();
  };
  const std::string pod = "ml_infer-0_0a1b2c3d-4e5f-6789-abcd-ef0123456789";
  const std::string tasks = "/run/containerd/io.containerd.runtime.v2.task/";
  EXPECT_EQ(list("/var/log/pods"), pod);
  EXPECT_EQ(list("/var/log/pods/" + pod), "main");
  EXPECT_EQ(list("/var/lib/kubelet/pods"), "0a1b2c3d-4e5f-6789-abcd-ef0123456789");
  EXPECT_EQ(list(tasks + "k8s.io"), Id('a'));
  EXPECT_EQ(list("/var/lib/docker/containers"), Id('b'));
  EXPECT_EQ(at.Links("/var/log/containers"), "/var/log/pods/" + pod + "/main/0.log");
  at.world().Update(seconds(30));
  EXPECT_EQ(list("/var/lib/kubelet/pods"), "");
  EXPECT_EQ(list(tasks + "k8s.io"), "");
  EXPECT_EQ(list(tasks + "moby"), Id('b'));
  at.world().Update(seconds(60));
  EXPECT_EQ(list("/var/lib/docker/containers"), "");
  EXPECT_EQ(list(tasks + "moby"), "");
  EXPECT_EQ(list(tasks + "default"), Id('d'));
  at.world().Update(seconds(89));  // the kubelet has not collected it yet
  EXPECT_EQ(list("/var/log/pods"), pod);
  EXPECT_EQ(at.Links("/var/log/containers"), "/var/log/pods/" + pod + "/main/0.log");
  at.world().Update(seconds(90));
  EXPECT_EQ(list("/var/log/pods"), "");
  EXPECT_EQ(list("/var/log/containers"), "");
  at.world().Update({});
  EXPECT_EQ(list("/var/log/pods"), pod);
  EXPECT_EQ(list("/var/lib/docker/containers"), Id('b'));
}

TEST(NodeFiles, OfANodeWithoutThemAreNone) {
  EXPECT_EQ(Listing(NodeFilesAt(
                *ParseScenario("gpus: [{model: t4}]\nnode: {cgroup: v2}", "story.yaml"), {})),
            "");
}

}  // namespace
}  // namespace gpuassay::sim
