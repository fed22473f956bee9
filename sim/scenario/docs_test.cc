// docs/scenarios.md tells the truth: every YAML block in it is a scenario, and every kind of fault
// and model is in it.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {
namespace {

std::string Document() {
  std::ifstream file(GPUASSAY_SOURCE_DIR "/docs/scenarios.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ScenarioDocument, EveryBlockParses) {
  const std::string text = Document();
  constexpr std::string_view kOpen = "```yaml\n";
  int blocks = 0;
  for (std::size_t at = text.find(kOpen); at != std::string::npos; at = text.find(kOpen, at)) {
    at += kOpen.size();
    const std::string block = text.substr(at, text.find("\n```", at) + 1 - at);
    const Result<Scenario> scenario = ParseScenario(block, "block.yaml");
    EXPECT_TRUE(scenario) << scenario.error().what << "\n" << block;
    ++blocks;
  }
  EXPECT_EQ(blocks, 8);
}

TEST(ScenarioDocument, NamesEveryFaultAndModel) {
  const std::string text = Document();
  for (int kind = 0; kind <= static_cast<int>(FaultKind::kFabricNotReady); ++kind) {
    const std::string_view name = FaultName(static_cast<FaultKind>(kind));
    EXPECT_NE(name, "unknown");
    EXPECT_NE(text.find("`" + std::string(name) + "`"), std::string::npos) << name;
    EXPECT_NE(text.find("{kind: " + std::string(name)), std::string::npos) << name;
  }
  for (const GpuModel& model : AllGpuModels()) {
    EXPECT_NE(text.find("`" + std::string(model.key) + "`"), std::string::npos) << model.key;
  }
}

TEST(ScenarioDocument, NamesEveryKeyOfTheNodeAround) {
  const std::string text = Document();
  for (const char* const key : {"node",
                                "kubernetes",
                                "pods",
                                "containers",
                                "jobs",
                                "cgroup",
                                "v1",
                                "v2",
                                "cgroup_driver",
                                "cgroupfs",
                                "systemd",
                                "users",
                                "cri-o",
                                "containerd",
                                "container_runtime",
                                "resources",
                                "kubelet_down",
                                "api_forbidden",
                                "api_down",
                                "kubelet_absent",
                                "replicas",
                                "ids",
                                "uuid",
                                "gke",
                                "namespace",
                                "uid",
                                "qos",
                                "besteffort",
                                "burstable",
                                "guaranteed",
                                "controller",
                                "labels",
                                "annotations",
                                "devices",
                                "requests",
                                "runtime",
                                "docker",
                                "podman",
                                "array",
                                "visible_devices",
                                "owner",
                                "unlisted",
                                "pool",
                                "state",
                                "other_pid_namespace",
                                "running",
                                "sleeping",
                                "orphan",
                                "user",
                                "uninterruptible",
                                "batch",
                                "extern",
                                "interactive",
                                "step",
                                "defunct_leader"}) {
    EXPECT_NE(text.find("`" + std::string(key) + "`"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace gpuassay::sim
