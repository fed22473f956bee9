// `pods:`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/duration.h"
#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

constexpr std::array<std::string_view, 3> kQos = {"besteffort", "burstable", "guaranteed"};
constexpr std::array<std::string_view, 15> kPodKeys = {
    "name",  "count", "namespace", "uid",        "qos",     "controller", "labels", "annotations",
    "start", "end",   "for",       "containers", "devices", "requests",   "id"};
constexpr std::size_t kNameMax = 253;
constexpr std::size_t kLabelMax = 63;

// As Kubernetes takes it: small letters, digits, - and, in a pod's name, dots.
std::string ReadName(Reader& reader, const YamlNode& node, std::string_view key,
                     std::size_t length_max, bool dots) {
  std::string text = reader.Text(node, key, length_max);
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool good = std::ranges::all_of(
                        text, [&](char c) { return plain(c) || c == '-' || (dots && c == '.'); }) &&
                    (text.empty() || (plain(text.front()) && plain(text.back())));
  if (!good) {
    reader.Reject(node, fmt::format("`{}` can have small letters, digits{} and, inside, -", key,
                                    dots ? ", dots" : ""));
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> ReadPairs(Reader& reader, const YamlNode& node,
                                                           std::string_view key) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (node.kind != YamlNode::Kind::kMap || node.items.size() > 2 * kPairsMax) {
    reader.Reject(
        node, fmt::format("`{}` must be a mapping of at most {} names to texts", key, kPairsMax));
    return pairs;
  }
  for (std::size_t i = 0; i + 1 < node.items.size() && !reader.failed(); i += 2) {
    const YamlNode& value = node.items[i + 1];
    const bool empty = value.kind == YamlNode::Kind::kScalar && value.text.empty();
    pairs.emplace_back(reader.Text(node.items[i], key, kNameMax + 1 + kLabelMax),
                       empty ? "" : reader.Text(value, node.items[i].text, 4000));
  }
  return pairs;
}

std::vector<ScenarioRequest> ReadRequests(Reader& reader, const YamlNode& node) {
  constexpr std::array<std::string_view, 9> kUnits = {"",   "k",  "M", "G", "Ki",
                                                      "Mi", "Gi", "m", "Ti"};
  std::vector<ScenarioRequest> requests;
  if (node.kind != YamlNode::Kind::kMap || node.items.size() > 2 * kPairsMax) {
    reader.Reject(node, fmt::format("`requests` must be a mapping of at most {} resources to "
                                    "amounts, such as {{nvidia.com/gpu: 1}}",
                                    kPairsMax));
    return requests;
  }
  for (std::size_t i = 0; i + 1 < node.items.size() && !reader.failed(); i += 2) {
    const YamlNode& value = node.items[i + 1];
    const std::string resource = ReadResourceName(reader, node.items[i], "requests");
    const std::optional<Quantity> amount =
        value.kind == YamlNode::Kind::kScalar ? ParseQuantity(value.text) : std::nullopt;
    if (!amount || amount->number < 0 || value.text.find(' ') != std::string::npos ||
        std::ranges::find(kUnits, amount->unit) == kUnits.end()) {
      reader.Reject(value, fmt::format("the amount of {} must look like 1, 8192 or 4Gi", resource));
    }
    requests.push_back({resource, value.text});
  }
  return requests;
}

// The unit of `resource` that an entry means; rejected when there is none.
void CheckUnit(Reader& reader, const YamlNode& at, const Scenario& scenario,
               const ScenarioWorld& world, const ScenarioDevice& device) {
  const auto resource =
      std::ranges::find(world.resources, device.resource, &ScenarioResource::name);
  if (resource == world.resources.end()) {
    reader.Reject(at, fmt::format("there is no resource {} in kubernetes: {{resources: [...]}}",
                                  device.resource));
    return;
  }
  const std::vector<ScenarioDevice> units = UnitsOf(scenario.gpus, *resource);
  const auto same = [&](const ScenarioDevice& unit) {
    return unit.gpu == device.gpu && unit.mig_index == device.mig_index &&
           unit.replica == device.replica;
  };
  if (std::ranges::none_of(units, same)) {
    std::string has = fmt::format("{} has no such unit; its GPUs are {}", resource->name,
                                  fmt::join(resource->gpus, ", "));
    has += resource->mig_profile.empty()
               ? std::string(", without `mig`")
               : fmt::format(", with `mig` of a {}", resource->mig_profile);
    has += resource->replicas > 1
               ? fmt::format(", with `replica` from 0 to {}", resource->replicas - 1)
               : ", without `replica`";
    reader.Reject(at, has);
  }
}

ScenarioDevice ReadDevice(Reader& reader, const YamlNode& node, const Scenario& scenario,
                          const ScenarioWorld& world) {
  constexpr std::array<std::string_view, 5> kKeys = {"resource", "gpu", "mig", "replica", "claim"};
  MapReader map(reader, node, "a device", kKeys);
  ScenarioDevice device;
  const YamlNode* gpu = map.Require("gpu");
  if (gpu == nullptr || reader.failed()) {
    return device;
  }
  device.gpu = static_cast<std::uint32_t>(reader.Integer(*gpu, "gpu", 0, scenario.gpus.size() - 1));
  if (const YamlNode* mig = map.Find("mig")) {
    device.mig_index =
        static_cast<std::uint32_t>(reader.Integer(*mig, "mig", 0, kMigInstancesMax - 1));
  }
  if (const YamlNode* replica = map.Find("replica")) {
    device.replica =
        static_cast<std::uint32_t>(reader.Integer(*replica, "replica", 0, kReplicasMax - 1));
  }
  const YamlNode* resource = map.Find("resource");
  if (const YamlNode* claim = map.Find("claim")) {
    device.claim = ReadName(reader, *claim, "claim", kNameMax, true);
    if (resource != nullptr || device.replica) {
      reader.Reject(node, "a `claim` takes no `resource` and no `replica`");
    }
    if (device.mig_index.value_or(0) >=
        std::max<std::size_t>(1, scenario.gpus[device.gpu].mig.size())) {
      reader.Reject(
          node, fmt::format("there is no MIG device {} on GPU {}", *device.mig_index, device.gpu));
    }
    return device;
  }
  device.resource =
      resource == nullptr ? "nvidia.com/gpu" : ReadResourceName(reader, *resource, "resource");
  if (!reader.failed()) {
    CheckUnit(reader, node, scenario, world, device);
  }
  return device;
}

std::vector<ScenarioDevice> ReadDevices(Reader& reader, const YamlNode& node,
                                        const Scenario& scenario, const ScenarioWorld& world) {
  std::vector<ScenarioDevice> devices;
  if (node.kind != YamlNode::Kind::kSequence || node.items.size() > kDevicesMax) {
    reader.Reject(node, fmt::format("`devices` must be a list of at most {}, such as [{{gpu: 0}}]",
                                    kDevicesMax));
    return devices;
  }
  for (const YamlNode& item : node.items) {
    devices.push_back(ReadDevice(reader, item, scenario, world));
    if (reader.failed()) {
      break;
    }
  }
  return devices;
}

// What a container asked for is at least what it holds.
void CompleteRequests(ScenarioContainer& container) {
  std::map<std::string, int> held;
  for (const ScenarioDevice& device : container.devices) {
    if (device.claim.empty()) {
      ++held[device.resource];
    }
  }
  for (const auto& [resource, count] : held) {
    if (std::ranges::find(container.requests, resource, &ScenarioRequest::resource) ==
        container.requests.end()) {
      container.requests.push_back({resource, std::to_string(count)});
    }
  }
}

// `id`, `devices` and `requests` of a container, or of a pod with one.
void ReadContainerParts(Reader& reader, const MapReader& map, const Scenario& scenario,
                        const ScenarioWorld& world, ScenarioContainer& container) {
  if (const YamlNode* id = map.Find("id")) {
    container.id = ReadContainerId(reader, *id);
  }
  if (const YamlNode* devices = map.Find("devices")) {
    container.devices = ReadDevices(reader, *devices, scenario, world);
  }
  if (const YamlNode* requests = map.Find("requests")) {
    container.requests = ReadRequests(reader, *requests);
  }
  CompleteRequests(container);
}

std::vector<ScenarioContainer> ReadContainersOfPod(Reader& reader, const MapReader& pod,
                                                   const Scenario& scenario,
                                                   const ScenarioWorld& world) {
  constexpr std::array<std::string_view, 4> kKeys = {"name", "id", "devices", "requests"};
  const YamlNode* list = pod.Find("containers");
  std::vector<ScenarioContainer> containers;
  if (list == nullptr) {
    containers.emplace_back().name = "main";
    ReadContainerParts(reader, pod, scenario, world, containers.back());
    return containers;
  }
  for (const std::string_view key : {"id", "devices", "requests"}) {
    if (pod.Find(key) != nullptr) {
      reader.Reject(*pod.Find(key), fmt::format("`{}` belongs to one of `containers`", key));
    }
  }
  if (list->kind != YamlNode::Kind::kSequence || list->items.empty() ||
      list->items.size() > kContainersMax) {
    reader.Reject(*list, fmt::format("`containers` must be a list of 1 to {}", kContainersMax));
    return containers;
  }
  for (const YamlNode& item : list->items) {
    MapReader map(reader, item, "a container", kKeys);
    ScenarioContainer container;
    if (const YamlNode* name = map.Require("name")) {
      container.name = ReadName(reader, *name, "name", kLabelMax, false);
    }
    ReadContainerParts(reader, map, scenario, world, container);
    if (std::ranges::find(containers, container.name, &ScenarioContainer::name) !=
        containers.end()) {
      reader.Reject(item, fmt::format("two containers are called {}", container.name));
    }
    containers.push_back(std::move(container));
    if (reader.failed()) {
      break;
    }
  }
  return containers;
}

void ReadController(Reader& reader, const YamlNode& node, ScenarioPod& pod) {
  constexpr std::array<std::string_view, 2> kKeys = {"kind", "name"};
  MapReader map(reader, node, "a controller", kKeys);
  const YamlNode* kind = map.Require("kind");
  const YamlNode* name = map.Require("name");
  if (kind != nullptr && name != nullptr) {
    pod.controller_kind = reader.Text(*kind, "kind", kLabelMax);
    pod.controller_name = ReadName(reader, *name, "name", kNameMax, true);
  }
}

ScenarioPod ReadPod(Reader& reader, MapReader& map, const Scenario& scenario,
                    const ScenarioWorld& world) {
  ScenarioPod pod;
  if (const YamlNode* name = map.Require("name")) {
    pod.name = ReadName(reader, *name, "name", kNameMax, true);
  }
  if (const YamlNode* namespace_name = map.Find("namespace")) {
    pod.namespace_name = ReadName(reader, *namespace_name, "namespace", kLabelMax, false);
  }
  if (const YamlNode* uid = map.Find("uid")) {
    pod.uid = ReadName(reader, *uid, "uid", kLabelMax, false);
  }
  if (const YamlNode* qos = map.Find("qos")) {
    pod.qos = kQos[reader.Word(*qos, "qos", kQos)];
  }
  if (const YamlNode* controller = map.Find("controller")) {
    ReadController(reader, *controller, pod);
  }
  if (const YamlNode* labels = map.Find("labels")) {
    pod.labels = ReadPairs(reader, *labels, "labels");
  }
  if (const YamlNode* annotations = map.Find("annotations")) {
    pod.annotations = ReadPairs(reader, *annotations, "annotations");
  }
  const Life life = ReadLife(reader, map, "a pod");
  pod.start = life.start;
  pod.end = life.end;
  pod.containers = ReadContainersOfPod(reader, map, scenario, world);
  return pod;
}

// Of the `number`th pod of an entry: a name of its own, and the units that follow.
void Advance(Reader& reader, const YamlNode& at, const Scenario& scenario,
             const ScenarioWorld& world, std::size_t number, ScenarioPod& pod) {
  pod.name += fmt::format("-{}", number);
  for (ScenarioContainer& container : pod.containers) {
    for (ScenarioDevice& device : container.devices) {
      const auto resource =
          std::ranges::find(world.resources, device.resource, &ScenarioResource::name);
      if (resource == world.resources.end()) {
        reader.Reject(at, "a `claim` cannot be the same for several pods; leave `count`");
        return;
      }
      const std::vector<ScenarioDevice> units = UnitsOf(scenario.gpus, *resource);
      const auto first = std::ranges::find_if(units, [&](const ScenarioDevice& unit) {
        return unit.gpu == device.gpu && unit.mig_index == device.mig_index &&
               unit.replica == device.replica;
      });
      const std::size_t step =
          number * static_cast<std::size_t>(std::ranges::count(container.devices, device.resource,
                                                               &ScenarioDevice::resource));
      if (static_cast<std::size_t>(units.end() - first) <= step) {
        reader.Reject(at, fmt::format("{} has no unit left for pod {}", device.resource, pod.name));
        return;
      }
      device = *(first + static_cast<std::ptrdiff_t>(step));
    }
  }
}

void ReadPodEntry(Reader& reader, const YamlNode& node, const Scenario& scenario,
                  const ScenarioWorld& world, std::vector<ScenarioPod>& pods) {
  MapReader map(reader, node, "a pod", kPodKeys);
  const ScenarioPod pod = ReadPod(reader, map, scenario, world);
  const YamlNode* count = map.Find("count");
  if (reader.failed() || count == nullptr) {
    pods.push_back(pod);
    return;
  }
  if (map.Find("uid") != nullptr || std::ranges::any_of(pod.containers, [](const auto& container) {
        return !container.id.empty();
      })) {
    reader.Reject(*count, "`uid` and `id` cannot be the same for several pods; leave `count`");
  }
  const std::uint64_t pod_count = reader.Integer(*count, "count", 1, kPodsMax);
  for (std::size_t i = 0; i < pod_count && !reader.failed(); ++i) {
    pods.push_back(pod);
    Advance(reader, node, scenario, world, i, pods.back());
  }
}

bool Overlap(const ScenarioPod& a, const ScenarioPod& b) {
  return a.start < b.end && b.start < a.end;
}

// No two pods of one name, and no unit in two hands, at one time.
void CheckPods(Reader& reader, const YamlNode& node, const std::vector<ScenarioPod>& pods,
               const std::vector<std::size_t>& entry_of) {
  std::map<std::string, std::vector<std::size_t>> names;
  std::map<std::string, std::vector<std::size_t>> units;
  const auto taken_by = [&](std::vector<std::size_t>& others, std::size_t i) -> const ScenarioPod* {
    const auto other =
        std::ranges::find_if(others, [&](std::size_t j) { return Overlap(pods[i], pods[j]); });
    const ScenarioPod* found = other == others.end() ? nullptr : &pods[*other];
    others.push_back(i);
    return found;
  };
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const YamlNode& at = node.items[entry_of[i]];
    if (taken_by(names[pods[i].namespace_name + '/' + pods[i].name], i) != nullptr) {
      reader.Reject(at, fmt::format("two pods are called {}/{} at one time", pods[i].namespace_name,
                                    pods[i].name));
    }
    for (const ScenarioContainer& container : pods[i].containers) {
      for (const ScenarioDevice& device : container.devices) {
        if (!device.claim.empty()) {
          continue;
        }
        const std::string unit =
            fmt::format("{} of GPU {}, {} {}", device.resource, device.gpu,
                        device.mig_index.value_or(0), device.replica.value_or(0));
        if (const ScenarioPod* other = taken_by(units[unit], i)) {
          reader.Reject(at, fmt::format("pod {}/{} holds a unit of {} on GPU {} that pod {}/{} has "
                                        "at that time",
                                        pods[i].namespace_name, pods[i].name, device.resource,
                                        device.gpu, other->namespace_name, other->name));
        }
      }
    }
  }
}

}  // namespace

std::vector<ScenarioDevice> UnitsOf(const std::vector<ScenarioGpu>& gpus,
                                    const ScenarioResource& resource) {
  std::vector<ScenarioDevice> units;
  const auto add = [&](std::uint32_t gpu, std::optional<std::uint32_t> mig_index) {
    for (std::uint32_t replica = 0; replica < resource.replicas; ++replica) {
      ScenarioDevice unit;
      unit.resource = resource.name;
      unit.gpu = gpu;
      unit.mig_index = mig_index;
      unit.replica = resource.replicas > 1 ? std::optional(replica) : std::nullopt;
      units.push_back(unit);
    }
  };
  for (const std::uint32_t gpu : resource.gpus) {
    if (resource.mig_profile.empty()) {
      add(gpu, std::nullopt);
      continue;
    }
    for (std::uint32_t i = 0; i < gpus[gpu].mig.size(); ++i) {
      if (gpus[gpu].mig[i] == resource.mig_profile) {
        add(gpu, i);
      }
    }
  }
  return units;
}

std::vector<ScenarioPod> ReadPods(Reader& reader, const YamlNode& node, const Scenario& scenario,
                                  const ScenarioWorld& world) {
  std::vector<ScenarioPod> pods;
  std::vector<std::size_t> entry_of;
  if (node.kind != YamlNode::Kind::kSequence) {
    reader.Reject(node, "`pods` must be a list such as [{name: training, devices: [{gpu: 0}]}]");
    return pods;
  }
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); ++i) {
    ReadPodEntry(reader, node.items[i], scenario, world, pods);
    entry_of.resize(pods.size(), i);
    if (pods.size() > kPodsMax) {
      reader.Reject(node.items[i], fmt::format("more than {} pods", kPodsMax));
    }
  }
  if (!reader.failed()) {
    CheckPods(reader, node, pods, entry_of);
  }
  return pods;
}

}  // namespace gpuassay::sim
