#include "sim/world/kube_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/engine/hash.h"
#include "sim/engine/identifiers.h"
#include "sim/world/names.h"

namespace gpuassay::sim {
namespace {

using nlohmann::json;

std::string KubeTime(const Scenario& scenario, Duration t) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(scenario.start + t);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", whole);
}

std::string ApiVersionOf(std::string_view kind) {
  if (kind == "Job" || kind == "CronJob") {
    return "batch/v1";
  }
  const bool apps = kind == "ReplicaSet" || kind == "StatefulSet" || kind == "DaemonSet";
  return apps ? "apps/v1" : "gpuassay.example/v1";
}

json PairsObject(const std::vector<std::pair<std::string, std::string>>& pairs) {
  json object = json::object();
  for (const auto& [name, value] : pairs) {
    object[name] = value;
  }
  return object;
}

// A Deployment has its pods through a ReplicaSet, whose name ends in the hash of their template.
void AddController(const Scenario& scenario, const ScenarioPod& pod, json& metadata) {
  if (pod.controller_kind.empty()) {
    return;
  }
  std::string kind = pod.controller_kind;
  std::string name = pod.controller_name;
  const std::uint64_t key =
      KeyOf(scenario, fmt::format("{}/{}/{}", kind, pod.namespace_name, name));
  if (kind == "Deployment") {
    const std::string hash = fmt::format("{:08x}", key & 0xFFFF'FFFFU);
    metadata["labels"]["pod-template-hash"] = hash;
    kind = "ReplicaSet";
    name += "-" + hash;
  }
  metadata["ownerReferences"] = json::array({{{"apiVersion", ApiVersionOf(kind)},
                                              {"kind", kind},
                                              {"name", name},
                                              {"uid", MakeUuid("", key)},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
}

json ContainerSpec(const ScenarioContainer& container) {
  json resources = json::object();
  for (const ScenarioRequest& request : container.requests) {
    resources["limits"][request.resource] = request.amount;
    resources["requests"][request.resource] = request.amount;
  }
  std::set<std::string> claims;
  for (const ScenarioDevice& device : container.devices) {
    if (!device.claim.empty() && claims.insert(device.claim).second) {
      resources["claims"].push_back({{"name", device.claim}});
    }
  }
  return {{"name", container.name}, {"image", "trainer:1"}, {"resources", resources}};
}

std::string QosClass(std::string_view qos) {
  return qos == "guaranteed" ? "Guaranteed" : qos == "burstable" ? "Burstable" : "BestEffort";
}

json DeviceAttributes(const Scenario& scenario, std::uint32_t gpu,
                      std::optional<std::uint32_t> mig_index) {
  const ScenarioGpu& config = scenario.gpus[gpu];
  const auto text = [](std::string_view value) { return json{{"string", value}}; };
  json attributes = {{"type", text(mig_index ? "mig" : "gpu")},
                     {"uuid", text(DeviceUuid(scenario, gpu, mig_index))},
                     {"productName", text(config.model->name)},
                     {"driverVersion", {{"version", scenario.driver.text}}}};
  if (mig_index) {
    attributes["parentUUID"] = text(GpuUuid(scenario, gpu));
    attributes["profile"] = text(config.mig.at(*mig_index));
  }
  return attributes;
}

json SliceDevices(const Scenario& scenario, bool basic) {
  json devices = json::array();
  const auto add = [&](std::uint32_t gpu, std::optional<std::uint32_t> mig_index) {
    const json attributes = {{"attributes", DeviceAttributes(scenario, gpu, mig_index)}};
    json device = basic ? json{{"basic", attributes}} : attributes;
    device["name"] = DraDeviceName(scenario, gpu, mig_index);
    devices.push_back(std::move(device));
  };
  for (std::uint32_t gpu = 0; gpu < scenario.gpus.size(); ++gpu) {
    if (!scenario.gpus[gpu].mig_enabled) {
      add(gpu, std::nullopt);
    }
    for (std::uint32_t i = 0; i < scenario.gpus[gpu].mig.size(); ++i) {
      add(gpu, i);
    }
  }
  return devices;
}

bool HasClaim(const ScenarioPod& pod) {
  return std::ranges::any_of(pod.containers, [](const ScenarioContainer& container) {
    return std::ranges::any_of(container.devices,
                               [](const ScenarioDevice& device) { return !device.claim.empty(); });
  });
}

}  // namespace

std::string PodJson(const Scenario& scenario, const ScenarioPod& pod, std::uint64_t version) {
  json metadata = {{"name", pod.name},
                   {"namespace", pod.namespace_name},
                   {"uid", PodUid(scenario, pod)},
                   {"resourceVersion", fmt::format("{}", version)},
                   {"creationTimestamp", KubeTime(scenario, pod.start)},
                   {"labels", PairsObject(pod.labels)},
                   {"annotations", PairsObject(pod.annotations)}};
  AddController(scenario, pod, metadata);
  json containers = json::array();
  json statuses = json::array();
  json claims = json::array();
  const std::string runtime = scenario.world.container_runtime;
  for (const ScenarioContainer& container : pod.containers) {
    containers.push_back(ContainerSpec(container));
    const std::string id = ContainerId(scenario, pod, container);
    statuses.push_back({{"name", container.name},
                        {"ready", true},
                        {"image", "trainer:1"},
                        {"containerID", fmt::format("{}://{}", runtime, id)},
                        {"state", {{"running", {{"startedAt", KubeTime(scenario, pod.start)}}}}}});
    for (const json& claim : containers.back()["resources"].value("claims", json::array())) {
      claims.push_back({{"name", claim["name"]}, {"resourceClaimName", claim["name"]}});
    }
  }
  json spec = {{"nodeName", scenario.hostname}, {"containers", containers}};
  if (!claims.empty()) {
    spec["resourceClaims"] = claims;
  }
  const json object = {{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"metadata", metadata},
                       {"spec", spec},
                       {"status",
                        {{"phase", "Running"},
                         {"qosClass", QosClass(pod.qos)},
                         {"startTime", KubeTime(scenario, pod.start)},
                         {"containerStatuses", statuses}}}};
  return object.dump();
}

std::string PodListJson(const std::vector<std::string>& pods, std::uint64_t version,
                        std::string_view continue_token, std::size_t remaining) {
  json metadata = {{"resourceVersion", fmt::format("{}", version)}};
  if (!continue_token.empty()) {
    metadata["continue"] = continue_token;
    metadata["remainingItemCount"] = remaining;
  }
  return fmt::format(R"({{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{}]}})",
                     metadata.dump(), fmt::join(pods, ","));
}

std::string EventJson(std::string_view type, const std::string& pod) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, pod);
}

std::string BookmarkJson(std::uint64_t version) {
  const json object = {{"kind", "Pod"},
                       {"apiVersion", "v1"},
                       {"metadata", {{"resourceVersion", fmt::format("{}", version)}}}};
  return EventJson("BOOKMARK", object.dump());
}

std::string SliceListJson(const Scenario& scenario, std::string_view group, bool selected) {
  json items = json::array();
  if (selected && std::ranges::any_of(scenario.world.pods, HasClaim)) {
    const json pool = {{"name", scenario.hostname}, {"generation", 1}, {"resourceSliceCount", 1}};
    const json spec = {{"driver", kDraDriver},
                       {"nodeName", scenario.hostname},
                       {"pool", pool},
                       {"devices", SliceDevices(scenario, group.ends_with("v1beta1"))}};
    items.push_back(
        {{"metadata", {{"name", scenario.hostname + "-gpu.nvidia.com-0"}}}, {"spec", spec}});
  }
  const json list = {{"kind", "ResourceSliceList"},
                     {"apiVersion", group},
                     {"metadata", {{"resourceVersion", "1"}}},
                     {"items", items}};
  return list.dump();
}

std::string StatusJson(int code, std::string_view reason, std::string_view message) {
  const json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object()},
                       {"status", "Failure"}, {"message", message}, {"reason", reason},
                       {"code", code}};
  return status.dump();
}

}  // namespace gpuassay::sim
