#include "sim/world/node_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/world/names.h"

namespace gpuassay::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kPodLogs = "var/log/pods";
constexpr std::string_view kContainerLogs = "var/log/containers";
constexpr std::string_view kKubeletPods = "var/lib/kubelet/pods";
constexpr std::string_view kTasks = "run/containerd/io.containerd.runtime.v2.task";
constexpr std::string_view kDocker = "var/lib/docker/containers";
constexpr std::string_view kStorage = "var/lib/containers/storage/overlay-containers";

class Files {
 public:
  explicit Files(const Scenario& scenario) : scenario_(scenario) {}

  void Directory(std::string path) { files_[std::move(path)] = {}; }
  void File(std::string path, std::string content) {
    files_[std::move(path)] = {NodeEntry::Kind::kFile, std::move(content)};
  }
  void Link(std::string path, std::string target) {
    files_[std::move(path)] = {NodeEntry::Kind::kLink, std::move(target)};
  }
  // One of containerd's tasks, in one of its namespaces.
  void Task(std::string_view space, std::string_view id) {
    Directory(fmt::format("{}/{}", kTasks, space));
    Directory(fmt::format("{}/{}/{}", kTasks, space, id));
  }
  // A container of containers/storage, as Podman and CRI-O have it.
  void Stored(const std::string& id, const std::string& name) {
    Directory(std::string(kStorage));
    Directory(fmt::format("{}/{}", kStorage, id));
    stored_.push_back({{"id", id}, {"names", json::array({name})}});
  }
  void NoStored() { Directory(std::string(kStorage)); }

  void Logs(const ScenarioPod& pod);
  void Pod(const ScenarioPod& pod);
  void Container(const ScenarioRuntimeContainer& container);
  NodeFiles Take() {
    if (files_.contains(std::string(kStorage))) {
      File(fmt::format("{}/containers.json", kStorage), stored_.dump());
    }
    return std::move(files_);
  }

 private:
  const Scenario& scenario_;
  NodeFiles files_;
  json stored_ = json::array();
};

void Files::Logs(const ScenarioPod& pod) {
  const std::string logs =
      fmt::format("{}/{}_{}_{}", kPodLogs, pod.namespace_name, pod.name, PodUid(scenario_, pod));
  Directory(logs);
  for (const ScenarioContainer& container : pod.containers) {
    const std::string log = fmt::format("{}/{}/0.log", logs, container.name);
    Directory(fmt::format("{}/{}", logs, container.name));
    File(log, "");
    Link(fmt::format("{}/{}_{}_{}-{}.log", kContainerLogs, pod.name, pod.namespace_name,
                     container.name, ContainerId(scenario_, pod, container)),
         "/" + log);
  }
}

void Files::Pod(const ScenarioPod& pod) {
  const std::string uid = PodUid(scenario_, pod);
  Directory(fmt::format("{}/{}", kKubeletPods, uid));
  for (const ScenarioContainer& container : pod.containers) {
    const std::string id = ContainerId(scenario_, pod, container);
    if (scenario_.world.container_runtime == "cri-o") {
      Stored(id,
             fmt::format("k8s_{}_{}_{}_{}_0", container.name, pod.name, pod.namespace_name, uid));
    } else {
      Task("k8s.io", id);
    }
  }
}

void Files::Container(const ScenarioRuntimeContainer& container) {
  const std::string id = ContainerId(scenario_, container);
  if (container.runtime == "podman") {
    Stored(id, container.name);
  } else if (container.runtime == "containerd") {
    Task("default", id);
  } else {
    Task("moby", id);
    Directory(fmt::format("{}/{}", kDocker, id));
    const json config = {{"ID", id},
                         {"Name", "/" + container.name},
                         {"State", {{"Running", true}, {"Paused", false}, {"Dead", false}}}};
    File(fmt::format("{}/{}/config.v2.json", kDocker, id), config.dump());
  }
}

}  // namespace

NodeFiles NodeFilesAt(const Scenario& scenario, Duration t) {
  const ScenarioWorld& world = scenario.world;
  Files files(scenario);
  if (world.kubernetes) {
    for (const std::string_view directory : {kPodLogs, kContainerLogs, kKubeletPods}) {
      files.Directory(std::string(directory));
    }
    if (world.container_runtime == "cri-o") {
      files.NoStored();
    } else {
      files.Directory(fmt::format("{}/k8s.io", kTasks));
    }
  }
  for (const ScenarioPod* const pod : PodsAt(world, t)) {
    files.Pod(*pod);
  }
  for (const ScenarioPod& pod : world.pods) {
    if (pod.start <= t && (t < pod.end || t - pod.end < kPodLogsStay)) {
      files.Logs(pod);
    }
  }
  for (const ScenarioRuntimeContainer& container : world.containers) {
    if (container.runtime == "docker") {
      files.Directory(std::string(kDocker));
      files.Directory(fmt::format("{}/moby", kTasks));
    } else if (container.runtime == "podman") {
      files.NoStored();
    } else {
      files.Directory(fmt::format("{}/default", kTasks));
    }
    if (t < container.end) {
      files.Container(container);
    }
  }
  return files.Take();
}

}  // namespace gpuassay::sim
