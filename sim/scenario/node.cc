// `node:`, `kubernetes:`, `containers:` and `jobs:`: what surrounds the GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

constexpr std::array<std::string_view, 2> kCgroups = {"v1", "v2"};
constexpr std::array<std::string_view, 2> kCgroupDrivers = {"cgroupfs", "systemd"};
constexpr std::array<std::string_view, 2> kPodRuntimes = {"containerd", "cri-o"};
constexpr std::array<std::string_view, 3> kRuntimes = {"docker", "podman", "containerd"};
constexpr std::array<std::string_view, 2> kIdForms = {"uuid", "gke"};
constexpr std::uint64_t kUidMax = 4'294'967'294;  // the one above means "no user"

void ReadUsers(Reader& reader, const YamlNode& node, ScenarioWorld& world) {
  if (node.kind != YamlNode::Kind::kMap || node.items.size() > 2 * kUsersMax) {
    reader.Reject(node,
                  fmt::format("`users` must be a mapping of at most {} names to numbers, such "
                              "as {{alice: 1001}}",
                              kUsersMax));
    return;
  }
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const std::string name = reader.Text(node.items[i], "users", 32);
    if (name.find_first_of(":/ ") != std::string::npos) {
      reader.Reject(node.items[i], "a user's name has no colon, slash or blank");
    }
    world.users.emplace_back(
        name, static_cast<std::uint32_t>(reader.Integer(node.items[i + 1], name, 0, kUidMax)));
  }
}

void ReadNode(Reader& reader, const YamlNode& node, ScenarioWorld& world) {
  constexpr std::array<std::string_view, 4> kKeys = {"cgroup", "cgroup_driver", "container_runtime",
                                                     "users"};
  MapReader map(reader, node, "a node", kKeys);
  if (const YamlNode* cgroup = map.Find("cgroup")) {
    world.cgroup = kCgroups[reader.Word(*cgroup, "cgroup", kCgroups)];
  }
  if (const YamlNode* driver = map.Find("cgroup_driver")) {
    world.cgroup_driver = kCgroupDrivers[reader.Word(*driver, "cgroup_driver", kCgroupDrivers)];
  }
  if (const YamlNode* runtime = map.Find("container_runtime")) {
    world.container_runtime =
        kPodRuntimes[reader.Word(*runtime, "container_runtime", kPodRuntimes)];
  }
  if (const YamlNode* users = map.Find("users")) {
    ReadUsers(reader, *users, world);
  }
}

std::vector<Window> ReadWindows(Reader& reader, const YamlNode& node, std::string_view name) {
  constexpr std::array<std::string_view, 2> kKeys = {"at", "for"};
  std::vector<Window> windows;
  if (node.kind != YamlNode::Kind::kSequence || node.items.size() > kWindowsMax) {
    reader.Reject(node, fmt::format("`{}` must be a list of at most {} times, such as [{{at: 30s, "
                                    "for: 20s}}]",
                                    name, kWindowsMax));
    return windows;
  }
  for (const YamlNode& item : node.items) {
    MapReader map(reader, item, "a time", kKeys);
    Window window;
    if (const YamlNode* at = map.Find("at")) {
      window.at = reader.Time(*at, "at", true);
    }
    if (const YamlNode* length = map.Find("for")) {
      window.length = reader.Time(*length, "for", false);
    }
    windows.push_back(window);
  }
  return windows;
}

bool IsUnitOf(const ScenarioGpu& gpu, const std::string& mig_profile) {
  return mig_profile.empty() ? !gpu.mig_enabled
                             : std::ranges::find(gpu.mig, mig_profile) != gpu.mig.end();
}

// All GPUs that are not in MIG mode, or that have a MIG device of the profile.
std::vector<std::uint32_t> SuitableGpus(const Scenario& scenario, const std::string& mig_profile) {
  std::vector<std::uint32_t> gpus;
  for (std::uint32_t gpu = 0; gpu < scenario.gpus.size(); ++gpu) {
    if (IsUnitOf(scenario.gpus[gpu], mig_profile)) {
      gpus.push_back(gpu);
    }
  }
  return gpus;
}

// Whole GPUs have MIG off, and those of a profile have an instance of it.
void CheckResourceGpus(Reader& reader, const YamlNode& at, const Scenario& scenario,
                       const ScenarioResource& resource) {
  for (const std::uint32_t gpu : resource.gpus) {
    if (!IsUnitOf(scenario.gpus[gpu], resource.mig_profile)) {
      reader.Reject(
          at, resource.mig_profile.empty()
                  ? fmt::format("GPU {} is in MIG mode; say with `mig` which profile {} means", gpu,
                                resource.name)
                  : fmt::format("GPU {} has no MIG device {}", gpu, resource.mig_profile));
    }
  }
}

ScenarioResource ReadResource(Reader& reader, const YamlNode& node, const Scenario& scenario) {
  constexpr std::array<std::string_view, 5> kKeys = {"name", "gpus", "mig", "replicas", "ids"};
  MapReader map(reader, node, "a resource", kKeys);
  ScenarioResource resource;
  if (const YamlNode* name = map.Require("name")) {
    resource.name = ReadResourceName(reader, *name, "name");
  }
  if (const YamlNode* mig = map.Find("mig")) {
    resource.mig_profile = reader.Text(*mig, "mig");
  }
  const YamlNode* gpus = map.Find("gpus");
  resource.gpus =
      gpus == nullptr
          ? SuitableGpus(scenario, resource.mig_profile)
          : reader.Indices(*gpus, "gpus", "GPU", static_cast<std::uint32_t>(scenario.gpus.size()));
  if (const YamlNode* replicas = map.Find("replicas")) {
    resource.replicas =
        static_cast<std::uint32_t>(reader.Integer(*replicas, "replicas", 1, kReplicasMax));
  }
  if (const YamlNode* ids = map.Find("ids")) {
    resource.id_form = kIdForms[reader.Word(*ids, "ids", kIdForms)];
  }
  if (!reader.failed() && gpus != nullptr) {
    CheckResourceGpus(reader, *gpus, scenario, resource);
  }
  if (!reader.failed() && resource.gpus.empty()) {
    reader.Reject(node, resource.mig_profile.empty()
                            ? fmt::format("no GPU is without MIG mode; say with `mig` which "
                                          "profile {} means",
                                          resource.name)
                            : fmt::format("no GPU has a MIG device {}", resource.mig_profile));
  }
  return resource;
}

void ReadResources(Reader& reader, const YamlNode& node, const Scenario& scenario,
                   ScenarioWorld& world) {
  if (node.kind != YamlNode::Kind::kSequence || node.items.size() > kResourcesMax) {
    reader.Reject(node, fmt::format("`resources` must be a list of at most {} resources, such as "
                                    "[{{name: nvidia.com/gpu, gpus: all}}]",
                                    kResourcesMax));
    return;
  }
  world.resources.clear();
  std::set<std::string> names;
  for (const YamlNode& item : node.items) {
    world.resources.push_back(ReadResource(reader, item, scenario));
    if (reader.failed()) {
      return;
    }
    if (!names.insert(world.resources.back().name).second) {
      reader.Reject(item, fmt::format("two resources are called {}", world.resources.back().name));
    }
  }
}

void ReadKubernetes(Reader& reader, const YamlNode& node, const Scenario& scenario,
                    ScenarioWorld& world) {
  constexpr std::array<std::string_view, 5> kKeys = {"resources", "kubelet_down", "kubelet_absent",
                                                     "api_forbidden", "api_down"};
  MapReader map(reader, node, "kubernetes", kKeys);
  if (const YamlNode* resources = map.Find("resources")) {
    ReadResources(reader, *resources, scenario, world);
  }
  const auto windows = [&](std::string_view key, std::vector<Window>& out) {
    if (const YamlNode* found = map.Find(key)) {
      out = ReadWindows(reader, *found, key);
    }
  };
  windows("kubelet_down", world.kubelet_down);
  windows("kubelet_absent", world.kubelet_absent);
  windows("api_forbidden", world.api_forbidden);
  windows("api_down", world.api_down);
}

// What a plugin advertises that nobody has told anything: every GPU that is not in MIG mode.
ScenarioResource DefaultResource(const Scenario& scenario) {
  ScenarioResource resource;
  resource.name = "nvidia.com/gpu";
  resource.gpus = SuitableGpus(scenario, "");
  return resource;
}

void ReadContainers(Reader& reader, const YamlNode& node, ScenarioWorld& world) {
  constexpr std::array<std::string_view, 5> kKeys = {"name", "runtime", "id", "visible_devices",
                                                     "end"};
  if (node.kind != YamlNode::Kind::kSequence || node.items.size() > kRuntimeContainersMax) {
    reader.Reject(node, fmt::format("`containers` must be a list of at most {}, such as [{{name: "
                                    "jupyter, runtime: docker}}]",
                                    kRuntimeContainersMax));
    return;
  }
  std::set<std::string> names;
  for (const YamlNode& item : node.items) {
    MapReader map(reader, item, "a container", kKeys);
    ScenarioRuntimeContainer container;
    if (const YamlNode* name = map.Require("name")) {
      container.name = reader.Text(*name, "name", 63);
    }
    if (const YamlNode* runtime = map.Find("runtime")) {
      container.runtime = kRuntimes[reader.Word(*runtime, "runtime", kRuntimes)];
    }
    if (const YamlNode* id = map.Find("id")) {
      container.id = ReadContainerId(reader, *id);
    }
    if (const YamlNode* visible = map.Find("visible_devices")) {
      container.visible_devices = reader.Text(*visible, "visible_devices", 4000);
    }
    if (const YamlNode* end = map.Find("end")) {
      container.end = reader.Time(*end, "end", false);
    }
    if (!names.insert(container.name).second) {
      reader.Reject(item, fmt::format("two containers are called {}", container.name));
    }
    world.containers.push_back(std::move(container));
    if (reader.failed()) {
      return;
    }
  }
}

bool IsJobId(std::string_view text) {
  return !text.empty() && text.size() <= 10 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string ReadJobArray(Reader& reader, const YamlNode& node) {
  const std::string text = reader.Text(node, "array");
  const std::size_t bar = text.find('_');
  if (bar == std::string::npos || !IsJobId(text.substr(0, bar)) || !IsJobId(text.substr(bar + 1))) {
    reader.Reject(node, "`array` must look like 4711_3");
  }
  return text;
}

void ReadJobs(Reader& reader, const YamlNode& node, const Scenario& scenario,
              ScenarioWorld& world) {
  constexpr std::array<std::string_view, 4> kKeys = {"id", "array", "user", "gpus"};
  if (node.kind != YamlNode::Kind::kSequence || node.items.size() > kJobsMax) {
    reader.Reject(node, fmt::format("`jobs` must be a list of at most {}, such as [{{id: 4711, "
                                    "user: alice, gpus: 0-1}}]",
                                    kJobsMax));
    return;
  }
  std::set<std::string> ids;
  for (const YamlNode& item : node.items) {
    MapReader map(reader, item, "a job", kKeys);
    const YamlNode* id = map.Require("id");
    const YamlNode* user = map.Require("user");
    const YamlNode* gpus = map.Require("gpus");
    if (id == nullptr || user == nullptr || gpus == nullptr || reader.failed()) {
      return;
    }
    ScenarioBatchJob job;
    job.id = reader.Text(*id, "id");
    if (!IsJobId(job.id)) {
      reader.Reject(*id, "`id` must be a whole number, as Slurm counts its jobs");
    }
    if (const YamlNode* array = map.Find("array")) {
      job.array = ReadJobArray(reader, *array);
    }
    job.user = reader.Text(*user, "user");
    CheckUser(reader, *user, job.user, world);
    job.gpus =
        reader.Indices(*gpus, "gpus", "GPU", static_cast<std::uint32_t>(scenario.gpus.size()));
    if (!ids.insert(job.id).second) {
      reader.Reject(item, fmt::format("two jobs have the id {}", job.id));
    }
    world.jobs.push_back(std::move(job));
  }
}

}  // namespace

std::string ReadContainerId(Reader& reader, const YamlNode& node) {
  std::string id = reader.Text(node, "id");
  const bool hex = std::ranges::all_of(
      id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (id.size() != 64 || !hex) {
    reader.Reject(node, "a container's `id` has 64 hexadecimal digits, in small letters");
  }
  return id;
}

std::string ReadResourceName(Reader& reader, const YamlNode& node, std::string_view name) {
  std::string text = reader.Text(node, name);
  if (std::ranges::count(text, '/') != 1 || text.starts_with('/') || text.ends_with('/')) {
    reader.Reject(node, "a resource's name must look like nvidia.com/gpu");
  }
  return text;
}

ScenarioWorld ReadWorld(Reader& reader, const MapReader& map, const Scenario& scenario) {
  ScenarioWorld world;
  const YamlNode* kubernetes = map.Find("kubernetes");
  const YamlNode* pods = map.Find("pods");
  for (const std::string_view key : {"node", "kubernetes", "pods", "containers", "jobs"}) {
    world.present |= map.Find(key) != nullptr;
  }
  if (const YamlNode* node = map.Find("node")) {
    ReadNode(reader, *node, world);
  }
  world.kubernetes = kubernetes != nullptr || pods != nullptr;
  if (world.kubernetes) {
    world.resources.push_back(DefaultResource(scenario));
    std::erase_if(world.resources, [](const ScenarioResource& r) { return r.gpus.empty(); });
  }
  if (kubernetes != nullptr) {
    ReadKubernetes(reader, *kubernetes, scenario, world);
  }
  if (const YamlNode* containers = map.Find("containers")) {
    ReadContainers(reader, *containers, world);
  }
  if (const YamlNode* jobs = map.Find("jobs")) {
    ReadJobs(reader, *jobs, scenario, world);
  }
  if (pods != nullptr && !reader.failed()) {
    world.pods = ReadPods(reader, *pods, scenario, world);
  }
  return world;
}

}  // namespace gpuassay::sim
