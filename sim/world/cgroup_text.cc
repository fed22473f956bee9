#include "sim/world/cgroup_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/world/names.h"

namespace gpuassay::sim {
namespace {

// Where a process stands. Cgroup v1 has a hierarchy per controller, and not everybody makes groups
// in all of them.
struct Place {
  enum class Kind { kContainer, kJob, kUnit };
  Kind kind = Kind::kUnit;
  std::string path;
  std::string parent;  // kJob, v1: the step, which some controllers end at
  std::string v2_of_hybrid = "/";
};

bool Systemd(const ScenarioWorld& world) { return world.cgroup_driver == "systemd"; }

// Containers themselves get their slices and scopes from the runtime.
std::string PodPath(const Scenario& scenario, const ScenarioPod& pod,
                    const ScenarioContainer& container) {
  const ScenarioWorld& world = scenario.world;
  std::string uid = PodUid(scenario, pod);
  const std::string id = ContainerId(scenario, pod, container);
  const bool cri_o = world.container_runtime == "cri-o";
  if (!Systemd(world)) {
    return fmt::format("/kubepods{}/pod{}/{}{}", pod.qos == "guaranteed" ? "" : "/" + pod.qos, uid,
                       cri_o ? "crio-" : "", id);
  }
  std::ranges::replace(uid, '-', '_');
  const std::string scope = fmt::format("{}-{}.scope", cri_o ? "crio" : "cri-containerd", id);
  if (pod.qos == "guaranteed") {
    return fmt::format("/kubepods.slice/kubepods-pod{}.slice/{}", uid, scope);
  }
  return fmt::format("/kubepods.slice/kubepods-{0}.slice/kubepods-{0}-pod{1}.slice/{2}", pod.qos,
                     uid, scope);
}

std::string RuntimePath(const Scenario& scenario, const ScenarioRuntimeContainer& container,
                        std::uint32_t uid) {
  const ScenarioWorld& world = scenario.world;
  const std::string id = ContainerId(scenario, container);
  if (container.runtime == "docker") {
    return Systemd(world) ? "/system.slice/docker-" + id + ".scope" : "/docker/" + id;
  }
  if (container.runtime == "containerd") {
    return Systemd(world) ? "/system.slice/nerdctl-" + id + ".scope" : "/default/" + id;
  }
  const std::string scope = fmt::format("libpod-{}", id);
  const bool v2 = world.cgroup == "v2";
  if (!Systemd(world)) {
    return fmt::format("/libpod_parent/{}{}", scope, v2 ? "/container" : "");
  }
  if (v2 && uid != 0) {
    return fmt::format("/user.slice/user-{0}.slice/user@{0}.service/user.slice/{1}.scope/container",
                       uid, scope);
  }
  return fmt::format("/machine.slice/{}.scope{}", scope, v2 ? "/container" : "");
}

Place JobPlace(const ScenarioWorld& world, const ScenarioOwner& owner) {
  const std::string task = owner.step == "extern" ? "task_special" : "task_0";
  if (world.cgroup == "v2") {
    return {Place::Kind::kJob,
            fmt::format("/system.slice/slurmstepd.scope/job_{}/step_{}/user/{}", owner.job,
                        owner.step, task),
            "", "/"};
  }
  const std::string step =
      fmt::format("/slurm/uid_{}/job_{}/step_{}", UserId(world, owner.user), owner.job, owner.step);
  return {Place::Kind::kJob, step + "/" + task, step, "/system.slice/slurmd.service"};
}

Place PlaceOf(const Scenario& scenario, const ScenarioProcFacts& facts) {
  const ScenarioWorld& world = scenario.world;
  const ScenarioOwner& owner = facts.owner;
  const std::string parent = Systemd(world) ? "/" : "/system.slice/containerd.service";
  const std::uint32_t uid = UserId(world, owner.user);
  if (const ScenarioPod* pod = owner.pod.empty() ? nullptr : PodOf(world, facts)) {
    if (const ScenarioContainer* container = ContainerOf(*pod, owner.container)) {
      const bool cri_o = world.container_runtime == "cri-o";
      std::string path = PodPath(scenario, *pod, *container);
      path += cri_o && Systemd(world) && world.cgroup == "v2" ? "/container" : "";
      return {Place::Kind::kContainer, path, "", cri_o ? "/" : parent};
    }
  }
  if (const ScenarioRuntimeContainer* container =
          RuntimeContainerOf(world, owner.runtime_container)) {
    return {Place::Kind::kContainer, RuntimePath(scenario, *container, uid), "",
            container->runtime == "podman" ? "/" : parent};
  }
  if (!owner.job.empty()) {
    return JobPlace(world, owner);
  }
  const bool session = owner.unit.empty() || owner.unit.starts_with("session-");
  const std::string unit = owner.unit.empty() ? "session-1.scope" : owner.unit;
  const std::string path = session ? fmt::format("/user.slice/user-{}.slice/{}", uid, unit)
                                   : fmt::format("/system.slice/{}", unit);
  return {Place::Kind::kUnit, path, "", path};
}

std::string PathIn(std::string_view controller, const Place& place) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, controller) != names.end();
  };
  switch (place.kind) {
    case Place::Kind::kContainer:
      return place.path;
    case Place::Kind::kJob:
      if (is_one_of({"memory", "cpu,cpuacct", "devices"})) {
        return place.path;
      }
      if (is_one_of({"cpuset", "freezer"})) {
        return place.parent;
      }
      return is_one_of({"pids", "name=systemd"}) ? place.v2_of_hybrid : "/";
    case Place::Kind::kUnit:
      return is_one_of({"memory", "cpu,cpuacct", "devices", "pids", "blkio", "name=systemd"})
                 ? place.path
                 : "/";
  }
  return "/";
}

}  // namespace

std::string CgroupText(const Scenario& scenario, const ScenarioProcFacts& facts) {
  const Place place = PlaceOf(scenario, facts);
  if (scenario.world.cgroup == "v2") {
    return "0::" + place.path + "\n";
  }
  // From 12 down to 1.
  constexpr std::array<std::string_view, 12> kControllers = {
      "hugetlb", "memory", "net_cls,net_prio", "perf_event", "cpu,cpuacct", "rdma",
      "devices", "pids",   "cpuset",           "freezer",    "blkio",       "name=systemd"};
  std::string text;
  std::size_t number = kControllers.size();
  for (const std::string_view controller : kControllers) {
    text += fmt::format("{}:{}:{}\n", number--, controller, PathIn(controller, place));
  }
  return text + "0::" + place.v2_of_hybrid + "\n";
}

}  // namespace gpuassay::sim
