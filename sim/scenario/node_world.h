// What surrounds the GPUs of a scenario: the pods, containers, batch jobs and users that its
// processes belong to, the scheduler, and processes that the driver does not list.
// docs/scenarios.md describes the YAML field by field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace gpuassay::sim {

// A stretch of scenario time in which something is so.
struct Window {
  Duration at = {};
  Duration length = Duration::max();
};

// What the stand-in device plugin advertises: whole GPUs, or their MIG devices, each as `replicas`
// units ("GPU-...::0" ...; no suffix without sharing).
struct ScenarioResource {
  std::string name;                 // "nvidia.com/gpu", "nvidia.com/mig-1g.5gb" ...
  std::vector<std::uint32_t> gpus;  // indices
  std::string mig_profile;          // empty: whole GPUs
  std::uint32_t replicas = 1;
  std::string id_form = "uuid";  // "uuid", "gke" (nvidia0, nvidia0/gi1, .../vgpu0)
};

// One unit handed to a container.
struct ScenarioDevice {
  std::string resource;
  std::uint32_t gpu = 0;
  std::optional<std::uint32_t> mig_index;
  std::optional<std::uint32_t> replica;
  std::string claim;  // DRA claim instead of a device of a resource
};

struct ScenarioRequest {
  std::string resource;
  std::string amount;  // as in a pod's limits: "1", "8192"
};

struct ScenarioContainer {
  std::string name;
  std::string id;  // made from the seed when empty
  std::vector<ScenarioDevice> devices;
  std::vector<ScenarioRequest> requests;
};

struct ScenarioPod {
  std::string name;
  std::string namespace_name = "default";
  std::string uid;
  std::string qos = "besteffort";  // "guaranteed", "burstable"
  std::string controller_kind;     // "Job", "StatefulSet" ...
  std::string controller_name;
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::pair<std::string, std::string>> annotations;
  Duration start = {};
  Duration end = Duration::max();  // deleted: gone from the kubelet and the API server
  std::vector<ScenarioContainer> containers;
};

// A container outside Kubernetes.
struct ScenarioRuntimeContainer {
  std::string name;
  std::string runtime = "docker";  // "docker", "podman", "containerd"
  std::string id;
  std::string visible_devices;  // NVIDIA_VISIBLE_DEVICES; empty: not set
  Duration end = Duration::max();
};

struct ScenarioBatchJob {
  std::string id;     // "4711"
  std::string array;  // "4711_3": of an array job; empty otherwise
  std::string user;
  std::vector<std::uint32_t> gpus;  // SLURM_JOB_GPUS
};

// Who one process of the scenario belongs to; exactly one of them, or only a user.
struct ScenarioOwner {
  std::string pod, namespace_name, container;  // of `pods`
  std::string runtime_container;               // of `containers`
  std::string job, step;                       // of `jobs`
  std::string unit;                            // "train.service", "session-3.scope"
  std::string user = "root";
};

enum class ScenarioProcessState { kRunning, kSleeping, kUninterruptible, kDefunctLeader, kOrphan };

// /proc of one process. Every process of the scenario with an `owner` has one; `unlisted` ones are
// in /proc and not in the driver's list.
struct ScenarioProcFacts {
  std::uint32_t pid = 0;
  std::string name;
  ScenarioOwner owner;
  ScenarioProcessState state = ScenarioProcessState::kRunning;
  std::vector<std::uint32_t> gpus;  // whose device files it has open
  bool other_pid_namespace = false;
  Duration start = {};
  Duration end = Duration::max();
  // The framework's pool (M25), reported to the agent as a job would.
  std::optional<double> pool_reserved_bytes;
  std::optional<double> pool_allocated_bytes;
};

struct ScenarioWorld {
  bool present = false;                          // false: nothing of this is in the file
  std::string cgroup = "v1";                     // "v1", "v2"
  std::string cgroup_driver = "cgroupfs";        // "systemd"
  std::string container_runtime = "containerd";  // of Kubernetes: "cri-o"
  bool kubernetes = false;
  std::vector<ScenarioResource> resources;
  std::vector<ScenarioPod> pods;
  std::vector<ScenarioRuntimeContainer> containers;
  std::vector<ScenarioBatchJob> jobs;
  std::vector<std::pair<std::string, std::uint32_t>> users;  // name, uid
  std::vector<ScenarioProcFacts> processes;
  std::vector<Window> kubelet_down;    // socket is there, nobody answers
  std::vector<Window> kubelet_absent;  // no socket
  std::vector<Window> api_forbidden;   // 403 to everything
  std::vector<Window> api_down;        // connection refused
};

}  // namespace gpuassay::sim
