// Each thing that can be wrong in what a scenario says of the node around, with the literal line
// that people get.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {
namespace {

// Two T4 and an A100 in MIG mode in the first line; `yaml` begins in the second.
std::string ErrorOf(std::string_view yaml) {
  const Result<Scenario> scenario = ParseScenario(
      "gpus: [{model: t4, count: 2}, {model: a100-sxm4-40gb, mig: [1g.5gb, 3g.20gb]}]\n" +
          std::string(yaml),
      "s.yaml");
  if (scenario) {
    return "no error";
  }
  EXPECT_EQ(scenario.error().code, ErrorCode::kMalformed);
  return scenario.error().what;
}
std::string ErrorInPod(std::string_view fields) {
  return ErrorOf(fmt::format("pods: [{{name: a, {}}}]", fields));
}
std::string ErrorInDevice(std::string_view fields) {
  return ErrorOf(
      fmt::format("kubernetes: {{resources: [{{name: nvidia.com/gpu, gpus: 0-1, "
                  "replicas: 2}}, {{name: nvidia.com/mig-1g.5gb, gpus: 2, mig: "
                  "1g.5gb}}]}}\npods: [{{name: a, devices: [{{{}}}]}}]",
                  fields));
}
std::string ErrorInProcess(std::string_view fields, std::string_view before = "node: {}") {
  return ErrorOf(fmt::format("{}\nprocesses: [{{pid: 7, gpus: 0, {}}}]", before, fields));
}

TEST(NodeErrors, OfTheNode) {
  EXPECT_EQ(ErrorOf("node: {cgroups: v1}"),
            "s.yaml:2:8: a node has no `cgroups`; did you mean `cgroup`?");
  EXPECT_EQ(ErrorOf("node: {cgroup: v3}"),
            "s.yaml:2:16: `cgroup` cannot be `v3`; did you mean `v1`?");
  EXPECT_EQ(ErrorOf("node: {cgroup_driver: docker}"),
            "s.yaml:2:23: `cgroup_driver` cannot be `docker`; it can be cgroupfs, systemd");
  EXPECT_EQ(ErrorOf("node: {container_runtime: crio}"),
            "s.yaml:2:27: `container_runtime` cannot be `crio`; did you mean `cri-o`?");
  EXPECT_EQ(ErrorOf("node: {users: [alice]}"),
            "s.yaml:2:15: `users` must be a mapping of at most 256 names to numbers, such as "
            "{alice: 1001}");
  EXPECT_EQ(ErrorOf("node: {users: {'a:b': 1}}"),
            "s.yaml:2:16: a user's name has no colon, slash or blank");
  EXPECT_EQ(ErrorOf("node: {users: {alice: 4294967295}}"),
            "s.yaml:2:23: `alice` is 4294967295, but must be from 0 to 4294967294");
}

TEST(NodeErrors, OfKubernetes) {
  EXPECT_EQ(ErrorOf("kubernetes: {api_dwon: []}"),
            "s.yaml:2:14: kubernetes has no `api_dwon`; did you mean `api_down`?");
  EXPECT_EQ(ErrorOf("kubernetes: {kubelet_down: 30s}"),
            "s.yaml:2:28: `kubelet_down` must be a list of at most 64 times, such as [{at: 30s, "
            "for: 20s}]");
  EXPECT_EQ(ErrorOf("kubernetes: {kubelet_down: [{at: soon}]}"),
            "s.yaml:2:34: `at` must be a duration such as 30s, 5m or 250ms, not `soon`");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: gpu, gpus: 0}]}"),
            "s.yaml:2:33: a resource's name must look like nvidia.com/gpu");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: nvidia.com/gpu}]}"), "no error");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: nvidia.com/mig-2g.10gb, mig: 2g.10gb}]}"),
            "s.yaml:2:26: no GPU has a MIG device 2g.10gb");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: nvidia.com/gpu, gpus: all}]}"),
            "s.yaml:2:55: GPU 2 is in MIG mode; say with `mig` which profile nvidia.com/gpu means");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: nvidia.com/gpu, gpus: 2, mig: 2g.10gb}]}"),
            "s.yaml:2:55: GPU 2 has no MIG device 2g.10gb");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: nvidia.com/gpu, gpus: 0, replicas: 65}]}"),
            "s.yaml:2:68: `replicas` is 65, but must be from 1 to 64");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: a/b, gpus: 0}, {name: a/b, gpus: 1}]}"),
            "s.yaml:2:48: two resources are called a/b");
  EXPECT_EQ(ErrorOf("kubernetes: {resources: [{name: a/b, gpus: 0, ids: aws}]}"),
            "s.yaml:2:52: `ids` cannot be `aws`; it can be uuid, gke");
}

TEST(NodeErrors, OfPods) {
  EXPECT_EQ(ErrorOf("pods: {name: a}"),
            "s.yaml:2:7: `pods` must be a list such as [{name: training, devices: [{gpu: 0}]}]");
  EXPECT_EQ(ErrorOf("pods: [{namespace: a}]"), "s.yaml:2:8: a pod needs `name`");
  EXPECT_EQ(ErrorOf("pods: [{name: A_b}]"),
            "s.yaml:2:15: `name` can have small letters, digits, dots and, inside, -");
  EXPECT_EQ(ErrorInPod("namespace: a.b"),
            "s.yaml:2:29: `namespace` can have small letters, digits and, inside, -");
  EXPECT_EQ(ErrorInPod("qos: best"),
            "s.yaml:2:23: `qos` cannot be `best`; did you mean `besteffort`?");
  EXPECT_EQ(ErrorInPod("id: abc"),
            "s.yaml:2:22: a container's `id` has 64 hexadecimal digits, in small letters");
  EXPECT_EQ(ErrorInPod("start: 20s, end: 10s"), "s.yaml:2:35: `end` must be later than `start`");
  EXPECT_EQ(ErrorInPod("end: 20s, for: 10s"),
            "s.yaml:2:33: a pod has either `end` or `for`, not both");
  EXPECT_EQ(ErrorInPod("controller: {kind: Job}"), "s.yaml:2:30: a controller needs `name`");
  EXPECT_EQ(ErrorInPod("labels: [a]"),
            "s.yaml:2:26: `labels` must be a mapping of at most 64 names to texts");
  EXPECT_EQ(ErrorInPod("requests: {nvidia.com/gpu: many}"),
            "s.yaml:2:45: the amount of nvidia.com/gpu must look like 1, 8192 or 4Gi");
  EXPECT_EQ(ErrorInPod("containers: []"), "s.yaml:2:30: `containers` must be a list of 1 to 64");
  EXPECT_EQ(ErrorInPod("containers: [{name: x}, {name: x}]"),
            "s.yaml:2:42: two containers are called x");
  EXPECT_EQ(ErrorInPod("containers: [{name: x}], devices: [{gpu: 0}]"),
            "s.yaml:2:52: `devices` belongs to one of `containers`");
  EXPECT_EQ(ErrorInPod("count: 2, uid: abc"),
            "s.yaml:2:25: `uid` and `id` cannot be the same for several pods; leave `count`");
  EXPECT_EQ(ErrorInPod("count: 1025"), "s.yaml:2:25: `count` is 1025, but must be from 1 to 1024");
  EXPECT_EQ(ErrorOf("pods: [{name: a, count: 1024}, {name: b}]"),
            "s.yaml:2:32: more than 1024 pods");
  EXPECT_EQ(ErrorOf("pods: [{name: a, end: 10s}, {name: a, start: 9s}]"),
            "s.yaml:2:29: two pods are called default/a at one time");
  EXPECT_EQ(ErrorOf("pods: [{name: a, end: 10s}, {name: a, start: 10s}]"), "no error");
}

TEST(NodeErrors, OfDevices) {
  EXPECT_EQ(ErrorInDevice("replica: 0"), "s.yaml:3:28: a device needs `gpu`");
  EXPECT_EQ(ErrorInDevice("gpu: 3, replica: 0"),
            "s.yaml:3:34: `gpu` is 3, but must be from 0 to 2");
  EXPECT_EQ(ErrorInDevice("gpu: 0"),
            "s.yaml:3:28: nvidia.com/gpu has no such unit; its GPUs are 0, 1, without `mig`, with "
            "`replica` from 0 to 1");
  EXPECT_EQ(ErrorInDevice("gpu: 0, replica: 2"),
            "s.yaml:3:28: nvidia.com/gpu has no such unit; its GPUs are 0, 1, without `mig`, with "
            "`replica` from 0 to 1");
  EXPECT_EQ(ErrorInDevice("gpu: 2, mig: 1, resource: nvidia.com/mig-1g.5gb"),
            "s.yaml:3:28: nvidia.com/mig-1g.5gb has no such unit; its GPUs are 2, with `mig` of a "
            "1g.5gb, without `replica`");
  EXPECT_EQ(ErrorInDevice("gpu: 0, resource: nvidia.com/gpus"),
            "s.yaml:3:28: there is no resource nvidia.com/gpus in kubernetes: {resources: [...]}");
  EXPECT_EQ(ErrorInDevice("gpu: 0, claim: c, replica: 1"),
            "s.yaml:3:28: a `claim` takes no `resource` and no `replica`");
  EXPECT_EQ(ErrorInDevice("gpu: 2, claim: c, mig: 2"),
            "s.yaml:3:28: there is no MIG device 2 on GPU 2");
  EXPECT_EQ(ErrorInPod("devices: {gpu: 0}"),
            "s.yaml:2:27: `devices` must be a list of at most 64, such as [{gpu: 0}]");
  EXPECT_EQ(ErrorOf("pods: [{name: a, devices: [{gpu: 0}]}, {name: b, devices: [{gpu: 0}]}]"),
            "s.yaml:2:40: pod default/b holds a unit of nvidia.com/gpu on GPU 0 that pod default/a "
            "has at that time");
  EXPECT_EQ(ErrorOf("pods: [{name: a, count: 3, devices: [{gpu: 0}]}]"),
            "s.yaml:2:8: nvidia.com/gpu has no unit left for pod a-2");
  EXPECT_EQ(ErrorOf("pods: [{name: a, count: 2, devices: [{gpu: 0, claim: c}]}]"),
            "s.yaml:2:8: a `claim` cannot be the same for several pods; leave `count`");
}

TEST(NodeErrors, OfContainersAndJobs) {
  EXPECT_EQ(ErrorOf("containers: jupyter"),
            "s.yaml:2:13: `containers` must be a list of at most 1024, such as [{name: jupyter, "
            "runtime: docker}]");
  EXPECT_EQ(ErrorOf("containers: [{name: a, runtime: dokcer}]"),
            "s.yaml:2:33: `runtime` cannot be `dokcer`; did you mean `docker`?");
  EXPECT_EQ(ErrorOf("containers: [{name: a}, {name: a}]"),
            "s.yaml:2:25: two containers are called a");
  EXPECT_EQ(ErrorOf("jobs: 4711"),
            "s.yaml:2:7: `jobs` must be a list of at most 1024, such as [{id: 4711, user: alice, "
            "gpus: 0-1}]");
  EXPECT_EQ(ErrorOf("jobs: [{id: 4711, gpus: 0}]"), "s.yaml:2:8: a job needs `user`");
  EXPECT_EQ(ErrorOf("jobs: [{id: a1, user: root, gpus: 0}]"),
            "s.yaml:2:13: `id` must be a whole number, as Slurm counts its jobs");
  EXPECT_EQ(ErrorOf("jobs: [{id: 1, array: 3, user: root, gpus: 0}]"),
            "s.yaml:2:23: `array` must look like 4711_3");
  EXPECT_EQ(ErrorOf("jobs: [{id: 1, user: alice, gpus: 0}]"),
            "s.yaml:2:22: there is no user alice; add node: {users: {alice: 1001}}");
  EXPECT_EQ(ErrorOf("jobs: [{id: 1, user: root, gpus: 0}, {id: 1, user: root, gpus: 1}]"),
            "s.yaml:2:38: two jobs have the id 1");
}

TEST(NodeErrors, OfOwners) {
  EXPECT_EQ(ErrorInProcess("owner: {pods: a}"),
            "s.yaml:3:39: an owner has no `pods`; did you mean `pod`?");
  EXPECT_EQ(ErrorInProcess("owner: {pod: a, unit: b.service}"),
            "s.yaml:3:38: an owner is one of `pod`, `container`, `job` and `unit`; keep one");
  EXPECT_EQ(ErrorInProcess("owner: {pod: ml/a}"), "s.yaml:3:38: there is no pod ml/a in `pods`");
  EXPECT_EQ(ErrorInProcess("owner: {pod: a}, start: 20s", "pods: [{name: a, end: 10s}]"),
            "s.yaml:3:38: pod default/a is not there at 20s, when PID 7 starts");
  EXPECT_EQ(ErrorInProcess("owner: {pod: a}",
                           "pods: [{name: a, containers: [{name: x}, {name: "
                           "y}]}]"),
            "s.yaml:3:38: pod default/a has several containers; say which");
  EXPECT_EQ(ErrorInProcess("owner: {pod: a, container: x}", "pods: [{name: a}]"),
            "s.yaml:3:38: pod default/a has no container x");
  EXPECT_EQ(ErrorInProcess("owner: {container: x}"),
            "s.yaml:3:38: there is no container x in `containers`");
  EXPECT_EQ(ErrorInProcess("owner: {job: 4711}"), "s.yaml:3:38: there is no job 4711 in `jobs`");
  EXPECT_EQ(ErrorInProcess("owner: {step: 0}"), "s.yaml:3:45: `step` belongs to a `job`");
  EXPECT_EQ(ErrorInProcess("owner: {job: 1, step: first}"),
            "s.yaml:3:53: `step` cannot be `first`; it can be batch, extern, interactive, 0, 1");
  EXPECT_EQ(ErrorInProcess("owner: {unit: train}"),
            "s.yaml:3:45: `unit` must look like train.service or session-3.scope");
  EXPECT_EQ(ErrorInProcess("owner: {user: alice}"),
            "s.yaml:3:38: there is no user alice; add node: {users: {alice: 1001}}");
}

TEST(NodeErrors, OfWhatProcSaysOfAProcess) {
  EXPECT_EQ(ErrorInProcess("state: zombie"),
            "s.yaml:3:38: `state` cannot be `zombie`; it can be running, sleeping, "
            "uninterruptible, defunct_leader, orphan");
  EXPECT_EQ(ErrorInProcess("unlisted: true, memory: 1 GiB"),
            "s.yaml:3:55: an `unlisted` process takes no `memory`: it is not in the driver's list; "
            "memory that it keeps in use is the fault memory_leak_orphan");
  EXPECT_EQ(ErrorInProcess("pool: {reserved: 1 GiB}"), "s.yaml:3:37: a pool needs `allocated`");
  EXPECT_EQ(ErrorInProcess("pool: {reserved: 1 GiB, allocated: 2 GiB}"),
            "s.yaml:3:66: `allocated` lies within `reserved`, so it cannot be larger");
  EXPECT_EQ(ErrorInProcess("owner: {unit: a.service}}, {pid: 7, name: process-7, gpus: 1, owner: "
                           "{unit: b.service}"),
            "s.yaml:3:58: PID 7 has another `owner` above; keep one");
}

}  // namespace
}  // namespace gpuassay::sim
