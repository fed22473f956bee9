// Whose each process of a root is, as the product's own readers find it: every kind of owner on
// each kind of cgroup, and processes in states that keep memory.
#include <gtest/gtest.h>

#include "attribution/node/holders.h"
#include "attribution/node/process_owners.h"
#include "sim/engine/identifiers.h"
#include "sim/world/test_world.h"

namespace gpuassay::sim {
namespace {

using std::chrono::seconds;

constexpr std::string_view kUid = "0a1b2c3d-4e5f-6789-abcd-ef0123456789";
std::string Id(char digit) { return std::string(64, digit); }

Scenario Node(std::string_view node) {
  const Result<Scenario> scenario =
      ParseScenario(fmt::format(R"(
gpus: [{{model: t4}}]
node: {{{}, users: {{alice: 1001, bob: 1002}}}}
pods:
  - {{name: training-job-1, namespace: ml, uid: {}, qos: burstable, id: {}}}
  - {{name: pinned, uid: 1a1b2c3d-4e5f-6789-abcd-ef0123456789, qos: guaranteed, id: {}}}
containers:
  - {{name: jupyter, id: {}, visible_devices: all}}
  - {{name: batch, runtime: podman, id: {}}}
  - {{name: tool, runtime: containerd, id: {}}}
jobs:
  - {{id: 4711, user: alice, gpus: 0}}
  - {{id: 4720, array: 4712_3, user: bob, gpus: 0}}
processes:
  - {{pid: 101, name: python train.py, gpus: 0, owner: {{pod: ml/training-job-1, user: alice}}}}
  - {{pid: 102, gpus: 0, owner: {{pod: pinned}}}}
  - {{pid: 103, gpus: 0, owner: {{container: jupyter}}}}
  - {{pid: 104, gpus: 0, owner: {{container: batch, user: bob}}}}
  - {{pid: 105, gpus: 0, owner: {{container: tool}}}}
  - {{pid: 106, gpus: 0, owner: {{job: 4711, step: 0}}}}
  - {{pid: 107, gpus: 0, owner: {{job: 4720}}}}
  - {{pid: 108, gpus: 0, owner: {{unit: train.service, user: alice}}}}
  - {{pid: 109, gpus: 0, owner: {{unit: session-3.scope, user: bob}}}}
  - {{pid: 110, gpus: 0, owner: {{user: alice}}}}
)",
                                node, kUid, Id('a'), Id('b'), Id('c'), Id('d'), Id('e')),
                    "story.yaml");
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().what);
  return *scenario;
}

std::string OwnerText(const ProcessFacts* facts) {
  if (facts == nullptr) {
    return "nobody";
  }
  const ProcessOwner& owner = facts->owner;
  std::string text = owner.user;
  if (owner.pod) {
    text += " pod " + owner.pod->uid;
  }
  if (owner.container) {
    text += fmt::format(" container {}:{}", owner.container->runtime, owner.container->id[0]);
  }
  if (owner.job) {
    text += fmt::format(" job {} {}.{}", owner.job->kind, owner.job->id, owner.job->step);
  }
  return text + (owner.systemd_unit.empty() ? "" : " unit " + owner.systemd_unit);
}

// Of PIDs 101 to 110, a line each.
std::string Owners(std::string_view node) {
  WorldAt at(Node(node), seconds(1));
  ProcessOwners owners(*RootFs::Open(at.world().root()));
  std::string text;
  for (std::uint32_t pid = 101; pid <= 110; ++pid) {
    text += OwnerText(owners.Find(pid)) + "\n";
  }
  return text;
}

// What no cgroup changes.
std::string Others(std::string_view docker, std::string_view nerdctl) {
  return fmt::format(
      "root container {}:c\nbob container podman:d\nroot container {}:e\n"
      "alice job slurm 4711.0\nbob job slurm 4712_3.batch\nalice unit train.service\n"
      "bob unit session-3.scope\nalice unit session-1.scope\n",
      docker, nerdctl);
}
std::string Pods(std::string_view runtime) {
  return fmt::format(
      "alice pod {} container {}:a\n"
      "root pod 1a1b2c3d-4e5f-6789-abcd-ef0123456789 container {}:b\n",
      kUid, runtime, runtime);
}

// With cgroupfs only CRI-O says its name in a path.
TEST(Owners, OnCgroupV1) {
  EXPECT_EQ(Owners("cgroup: v1, cgroup_driver: cgroupfs"), Pods("") + Others("docker", ""));
  EXPECT_EQ(Owners("cgroup: v1, cgroup_driver: systemd"),
            Pods("containerd") + Others("docker", "containerd"));
  EXPECT_EQ(Owners("cgroup: v1, cgroup_driver: cgroupfs, container_runtime: cri-o"),
            Pods("cri-o") + Others("docker", ""));
  EXPECT_EQ(Owners("cgroup: v1, cgroup_driver: systemd, container_runtime: cri-o"),
            Pods("cri-o") + Others("docker", "containerd"));
}

TEST(Owners, OnCgroupV2) {
  EXPECT_EQ(Owners("cgroup: v2, cgroup_driver: cgroupfs"), Pods("") + Others("docker", ""));
  EXPECT_EQ(Owners("cgroup: v2, cgroup_driver: systemd"),
            Pods("containerd") + Others("docker", "containerd"));
  EXPECT_EQ(Owners("cgroup: v2, cgroup_driver: systemd, container_runtime: cri-o"),
            Pods("cri-o") + Others("docker", "containerd"));
}

TEST(Owners, HaveTheirFactsInTheEnvironment) {
  WorldAt at(Node("cgroup: v2"), seconds(1));
  ProcessOwners owners(*RootFs::Open(at.world().root()));
  EXPECT_EQ(owners.Find(101)->name, "python");
  EXPECT_TRUE(owners.Find(101)->other_pid_namespace);
  EXPECT_FALSE(owners.Find(106)->other_pid_namespace);
  EXPECT_EQ(owners.Find(103)->nvidia_visible_devices, "all");
  EXPECT_EQ(owners.Find(106)->slurm_gpus, "0");
  EXPECT_EQ(owners.Find(101)->start_after_boot, std::chrono::hours(24));
}

TEST(Owners, OfADeviceAreTheUnitsThatThePodHas) {
  const Scenario scenario = *ParseScenario(R"(
gpus: [{model: t4, count: 2}]
kubernetes: {resources: [{name: nvidia.com/gpu, gpus: all, replicas: 4}]}
pods: [{name: a, devices: [{gpu: 1, replica: 0}, {gpu: 1, replica: 1}, {gpu: 0, replica: 3}]}]
processes: [{pid: 7, gpus: 1, owner: {pod: a}}]
)",
                                           "story.yaml");
  WorldAt at(scenario, {});
  ProcessOwners owners(*RootFs::Open(at.world().root()));
  EXPECT_EQ(owners.Find(7)->nvidia_visible_devices,
            GpuUuid(scenario, 1) + "," + GpuUuid(scenario, 0));
}

constexpr std::string_view kHolders = R"(
gpus: [{model: t4, count: 2}]
node: {cgroup: v2, cgroup_driver: systemd}
processes:
  - {pid: 27341, name: python infer.py, gpus: 1, unlisted: true, state: defunct_leader}
  - {pid: 300, name: worker, gpus: 0-1, unlisted: true, state: orphan, end: 10s}
  - {pid: 301, name: nvidia-cuda-mps-server, gpus: 0, unlisted: true, state: sleeping}
  - {pid: 302, name: inside, gpus: 0, unlisted: true, other_pid_namespace: true}
  - {pid: 303, name: dcgmi, gpus: 0, unlisted: true, owner: {unit: dcgm.service}}
)";

std::string Holders(const World& world) {
  const RootFs root = *RootFs::Open(world.root());
  ProcessOwners owners(root);
  const Result<HolderScan> scan = ScanHolders(Proc(root), owners, {});
  EXPECT_TRUE(scan);
  EXPECT_EQ(scan->unreadable, 0U);
  std::string text;
  for (const HolderScan::Found& found : scan->found) {
    text += fmt::format("{} {} {} {}:", found.holder.pid, found.holder.name, found.holder.state,
                        HolderKindName(found.holder.kind));
    for (const std::string& file : found.files) {
      const std::optional<std::uint32_t> minor = MinorOfDeviceFile(file);
      text += minor ? fmt::format(" {}", *minor) : "";
    }
    text += "\n";
  }
  return text;
}

TEST(Holders, AreFoundByTheirStates) {
  WorldAt at(kHolders, seconds(1));
  const std::string rest =
      "301 nvidia-cuda-mps S mps_server: 0\n302 inside R other_pid_namespace: 0\n"
      "303 dcgmi R other: 0\n27341 python Z defunct_leader: 1\n";
  EXPECT_EQ(Holders(at.world()), "300 worker S orphan: 0 1\n" + rest);
  at.world().Update(seconds(10));
  EXPECT_EQ(Holders(at.world()), rest);
}

TEST(Holders, ThatHangAreUninterruptible) {
  WorldAt at(R"(
gpus: [{model: t4}]
processes: [{pid: 8, name: python, gpus: 0, unlisted: true, state: uninterruptible}]
)",
             {});
  const RootFs root = *RootFs::Open(at.world().root());
  ProcessOwners owners(root);
  HolderOptions options;
  options.hangs_after = std::chrono::milliseconds(1);
  const Result<HolderScan> scan = ScanHolders(Proc(root), owners, options);
  ASSERT_TRUE(scan && scan->found.size() == 1U);
  EXPECT_EQ(scan->found[0].holder.kind, HolderKind::kUninterruptible);
  EXPECT_EQ(scan->found[0].holder.state, 'D');
}

TEST(Pools, AreReportedForEachDeviceWhileTheProcessLives) {
  const Scenario scenario = *ParseScenario(R"(
gpus: [{model: t4, count: 2}, {model: a100-sxm4-40gb, mig: [1g.5gb, 3g.20gb]}]
processes:
  - {pid: 1000, gpus: 0-1, memory: 5 GiB, end: 10s, pool: {reserved: 4 GB, allocated: 2.34 GB}}
  - {pid: 1001, gpus: 2, mig: 1, start: 5s, memory: 5 GiB, pool: {reserved: 3 GB, allocated: 0}}
  - {pid: 1002, gpus: 0, memory: 1 GiB}
)",
                                           "story.yaml");
  WorldAt at(scenario, {});
  const auto reports = [&] {
    std::string text;
    for (const PoolReport& report : at.world().PoolReports()) {
      text += fmt::format("{} {} {} {}\n", report.pid, report.device, report.reserved_bytes,
                          report.allocated_bytes);
    }
    return text;
  };
  const std::string first = fmt::format("1000 {} 4000000000 2340000000\n", GpuUuid(scenario, 0)) +
                            fmt::format("1000 {} 4000000000 2340000000\n", GpuUuid(scenario, 1));
  const std::string second = fmt::format("1001 {} 3000000000 0\n", MigUuid(scenario, 2, 1, 0));
  EXPECT_EQ(reports(), first);
  at.world().Update(seconds(5));
  EXPECT_EQ(reports(), first + second);
  at.world().Update(seconds(10));
  EXPECT_EQ(reports(), second);
}

}  // namespace
}  // namespace gpuassay::sim
