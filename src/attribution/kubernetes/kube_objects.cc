#include "attribution/kubernetes/kube_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "attribution/kubernetes/device_id.h"
#include "attribution/kubernetes/quantity.h"
#include "base/plain_text.h"

namespace gpuassay {
namespace {

using nlohmann::json;

constexpr std::size_t kMessageBytesMax = 300;
constexpr double kMebibyte = 1048576.0;

// A member that is there and is of the kind that is wanted, else an empty one of that kind. The
// API leaves empty members out, so both mean the same.
const json& Member(const json& object, std::string_view key, json::value_t kind) {
  static const json empty_object = json::object();
  static const json empty_array = json::array();
  static const json empty_string = "";
  if (object.is_object()) {
    const auto found = object.find(key);
    if (found != object.end() && found->type() == kind) return *found;
  }
  if (kind == json::value_t::object) return empty_object;
  return kind == json::value_t::array ? empty_array : empty_string;
}
const json& Object(const json& object, std::string_view key) {
  return Member(object, key, json::value_t::object);
}
const json& Array(const json& object, std::string_view key) {
  return Member(object, key, json::value_t::array);
}

// Cut to what an owner's text may have, never inside a character of UTF-8.
std::string Cut(std::string_view text, std::size_t bytes_max = kOwnerTextBytesMax) {
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}
std::string Text(const json& object, std::string_view key) {
  return Cut(Member(object, key, json::value_t::string).get_ref<const std::string&>());
}
// Versions and tokens are opaque: in full.
std::string FullText(const json& object, std::string_view key) {
  return Member(object, key, json::value_t::string).get<std::string>();
}

// A quantity is a text; a number when a person wrote it so.
std::optional<double> Quantity(const json& value) {
  if (value.is_string()) return ParseQuantity(value.get_ref<const std::string&>());
  if (value.is_number() && value.get<double>() >= 0) return value.get<double>();
  return std::nullopt;
}

JobIdentity Controller(const json& metadata) {
  const json& labels = Object(metadata, "labels");
  for (const json& owner : Array(metadata, "ownerReferences")) {
    if (!owner.is_object() || !owner.contains("controller") || owner["controller"] != true) {
      continue;
    }
    JobIdentity controller{Text(owner, "kind"), Text(owner, "name"), ""};
    const std::string hash = "-" + Text(labels, "pod-template-hash");
    if (controller.kind == "ReplicaSet" && hash.size() > 1 && controller.id.ends_with(hash) &&
        controller.id.size() > hash.size()) {
      controller.kind = "Deployment";
      controller.id.resize(controller.id.size() - hash.size());
    }
    return controller;
  }
  for (const std::string_view label : {"batch.kubernetes.io/job-name", "job-name"}) {
    const std::string job = Text(labels, label);
    if (!job.empty()) return {"Job", job, ""};
  }
  return {};
}

PodIdentity Identity(const json& metadata) {
  PodIdentity identity{Text(metadata, "namespace"), Text(metadata, "name"), Text(metadata, "uid")};
  const std::string mirror = Text(Object(metadata, "annotations"), "kubernetes.io/config.mirror");
  if (!mirror.empty()) identity.uid = mirror;
  return identity;
}

void AddRequest(ApiPod& result, ResourceRequest request) {
  if (result.pod.requests.size() < kPodRequestsMax) {
    result.pod.requests.push_back(std::move(request));
  } else {
    ++result.dropped;
  }
}

void ReadRequests(const json& container, const PodRules& rules, ApiPod& result) {
  const json& resources = Object(container, "resources");
  const json& limits = Object(resources, "limits");
  const json& requests = Object(resources, "requests");
  json all = requests;  // by name; a limit counts more than a request of the same name
  all.update(limits);
  for (const auto& [name, value] : all.items()) {
    if (!IsGpuResource(name, rules.resource_names)) continue;
    if (const std::optional<double> amount = Quantity(value)) {
      AddRequest(result, {Text(container, "name"), Cut(name), *amount});
    }
  }
}

void ReadKaiRequests(const json& annotations, ApiPod& result) {
  const std::string container = Text(annotations, "gpu-fraction-container-name");
  for (const std::string_view name : {"gpu-fraction", "gpu-memory"}) {
    if (const std::optional<double> amount = ParseQuantity(Text(annotations, name))) {
      AddRequest(result, {container, std::string(name), *amount});
    }
  }
}

std::optional<double> Amount(const Pod& pod, std::string_view container,
                             std::string_view resource) {
  for (const ResourceRequest& request : pod.requests) {
    if (request.container == container && request.resource == resource) return request.amount;
  }
  return std::nullopt;
}

// Memory that one request asks for, in MiB; nullopt when it is no request of memory.
std::optional<double> MemoryMib(const Pod& pod, const ResourceRequest& request) {
  const std::size_t slash = request.resource.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string domain = request.resource.substr(0, slash + 1);
  const std::string name = request.resource.substr(slash + 1);
  std::vector<std::string_view> counted_by;
  if (name == "gpumem") counted_by = {"gpu", "vgpu"};
  if (name == "vgpu-memory") counted_by = {"vgpu-number"};
  if (counted_by.empty()) return std::nullopt;
  for (const std::string_view count_name : counted_by) {
    const std::optional<double> count =
        Amount(pod, request.container, domain + std::string(count_name));
    if (count) return request.amount * *count;
  }
  return request.amount;
}

// Init containers end before the others start, except sidecars.
bool Stays(const json& spec, std::string_view container) {
  for (const json& init : Array(spec, "initContainers")) {
    if (Text(init, "name") == container) return Text(init, "restartPolicy") == "Always";
  }
  return true;
}

std::optional<double> MemoryRequestBytes(const json& spec, const json& annotations,
                                         const Pod& pod) {
  std::optional<double> total_mib;
  const auto add = [&](std::optional<double> mib) {
    if (mib) total_mib = total_mib ? *total_mib + *mib : *mib;
  };
  for (const ResourceRequest& request : pod.requests) {
    if (Stays(spec, request.container)) add(MemoryMib(pod, request));
  }
  if (const std::optional<double> mib = ParseQuantity(Text(annotations, "gpu-memory"))) {
    const std::optional<double> devices =
        ParseQuantity(Text(annotations, "gpu-fraction-num-devices"));
    add(*mib * devices.value_or(1.0));
  }
  if (!total_mib) return std::nullopt;
  return *total_mib * kMebibyte;
}

void ReadContainers(const json& status, ApiPod& result) {
  for (const std::string_view list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const json& container : Array(status, list)) {
      std::string id = Text(container, "containerID");  // "containerd://4f5e..."
      const std::size_t runtime_end = id.find("://");
      if (runtime_end != std::string::npos) id = id.substr(runtime_end + 3);
      if (id.empty()) continue;
      if (result.pod.containers.size() < kPodContainersMax) {
        result.pod.containers.push_back({Text(container, "name"), std::move(id)});
      } else {
        ++result.dropped;
      }
    }
  }
}

void ReadLabels(const json& metadata, const PodRules& rules, ApiPod& result) {
  for (const auto& [key, value] : Object(metadata, "labels").items()) {  // by key
    if (!value.is_string() || !IsAllowed(key, rules.labels)) continue;
    if (result.pod.labels.size() < kPodLabelsMax) {
      result.pod.labels.emplace_back(Cut(key), Cut(value.get_ref<const std::string&>()));
    } else {
      ++result.dropped;
    }
  }
}

Result<ApiPod> ReadPod(const json& object, const PodRules& rules) {
  const json& metadata = Object(object, "metadata");
  const json& spec = Object(object, "spec");
  const json& status = Object(object, "status");
  ApiPod result;
  Pod& pod = result.pod;
  pod.identity = Identity(metadata);
  if (pod.identity.name.empty() || pod.identity.namespace_name.empty() ||
      pod.identity.uid.empty()) {
    return Fail(ErrorCode::kMalformed, "a pod without namespace, name or uid");
  }
  pod.phase = Text(status, "phase");
  result.finished = pod.phase == "Succeeded" || pod.phase == "Failed";
  pod.terminating = !Text(metadata, "deletionTimestamp").empty();
  pod.controller = Controller(metadata);
  pod.started = ParseKubeTime(Text(status, "startTime"));
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json& container : Array(spec, list)) ReadRequests(container, rules, result);
  }
  const json& annotations = Object(metadata, "annotations");
  ReadKaiRequests(annotations, result);
  pod.memory_request_bytes = MemoryRequestBytes(spec, annotations, pod);
  ReadContainers(status, result);
  ReadLabels(metadata, rules, result);
  return result;
}

Result<json> ParseObject(std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Fail(ErrorCode::kMalformed, fmt::format("longer than {} MiB", bytes_max >> 20));
  }
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Fail(ErrorCode::kMalformed, "not a JSON object");
  return object;
}

// The attribute of a device: {"string": "..."} under its name, or under "domain/name".
std::string Attribute(const json& attributes, std::string_view name) {
  for (const auto& [key, value] : attributes.items()) {
    const std::size_t slash = key.find('/');
    const std::string_view plain = slash == std::string::npos
                                       ? std::string_view(key)
                                       : std::string_view(key).substr(slash + 1);
    if (plain == name) return Text(value, "string");
  }
  return "";
}

// UUIDs as the driver writes them: some publish them in lower case.
std::string UuidOf(const std::string& text) {
  const std::optional<DeviceId> id = ParseDeviceId(text);
  return id ? id->uuid : "";
}

SliceDevice ReadDevice(const json& device) {
  SliceDevice result;
  result.name = Text(device, "name");
  const json& attributes =
      Object(device.contains("basic") ? Object(device, "basic") : device, "attributes");
  const std::string uuid = UuidOf(Attribute(attributes, "uuid"));
  if (!uuid.starts_with("MIG-")) {
    result.gpu_uuid = uuid;
    return result;
  }
  result.mig_uuid = uuid;
  result.gpu_uuid = UuidOf(Attribute(attributes, "parentUUID"));
  return result;
}

}  // namespace

bool IsAllowed(std::string_view key, const std::vector<std::string>& allow_list) {
  return std::ranges::any_of(allow_list, [&](std::string_view allowed) {
    if (!allowed.ends_with('*')) return key == allowed;
    return key.starts_with(allowed.substr(0, allowed.size() - 1));
  });
}

Result<ApiPod> ParsePod(std::string_view text, const PodRules& rules) {
  const Result<json> object = ParseObject(text, kPodBytesMax);
  if (!object) return std::unexpected(object.error());
  return ReadPod(*object, rules);
}

Result<PodPage> ParsePodPage(std::string_view text, const PodRules& rules) {
  const Result<json> object = ParseObject(text, kPageBytesMax);
  if (!object) return std::unexpected(object.error());
  if (!object->contains("items")) return Fail(ErrorCode::kMalformed, "not a list of pods");
  PodPage page;
  const json& metadata = Object(*object, "metadata");
  page.resource_version = FullText(metadata, "resourceVersion");
  page.continue_token = FullText(metadata, "continue");
  for (const json& item : Array(*object, "items")) {
    Result<ApiPod> pod = ReadPod(item, rules);
    if (pod) {
      page.pods.push_back(std::move(*pod));
    } else {
      ++page.dropped;
    }
  }
  return page;
}

Result<WatchEvent> ParseWatchEvent(std::string_view line, const PodRules& rules) {
  const Result<json> event = ParseObject(line, kPodBytesMax);
  if (!event) return std::unexpected(event.error());
  const std::string type = Text(*event, "type");
  const json& object = Object(*event, "object");
  WatchEvent result;
  if (type == "ERROR") {
    result.kind = WatchEvent::Kind::kError;
    if (object.contains("code") && object["code"].is_number_integer()) {
      result.code =
          static_cast<int>(std::clamp<std::int64_t>(object["code"].get<std::int64_t>(), 0, 999));
    }
    result.message = Cut(Text(object, "message"), kMessageBytesMax);
    return result;
  }
  result.resource_version = FullText(Object(object, "metadata"), "resourceVersion");
  if (type == "BOOKMARK") return result;
  if (type == "ADDED" || type == "MODIFIED") {
    result.kind = WatchEvent::Kind::kPut;
  } else if (type == "DELETED") {
    result.kind = WatchEvent::Kind::kDelete;
  } else {
    return Fail(ErrorCode::kMalformed, "not an event of a watch");
  }
  Result<ApiPod> pod = ReadPod(object, rules);
  if (!pod) return std::unexpected(pod.error());
  result.pod = std::move(*pod);
  return result;
}

std::string CutOwnerText(std::string_view text) { return Cut(text); }

std::string StatusMessage(std::string_view text) {
  const Result<json> object = ParseObject(text, kPodBytesMax);
  if (!object || Text(*object, "kind") != "Status") return "";
  return OneLine(Cut(Text(*object, "message"), kMessageBytesMax));
}

Result<std::vector<SliceDevice>> ParseResourceSlices(std::string_view text) {
  const Result<json> object = ParseObject(text, kPageBytesMax);
  if (!object) return std::unexpected(object.error());
  if (!object->contains("items")) {
    return Fail(ErrorCode::kMalformed, "not a list of ResourceSlices");
  }
  std::vector<SliceDevice> devices;
  std::size_t slices = 0;
  for (const json& slice : Array(*object, "items")) {
    if (++slices > kSlicesMax) break;
    const json& spec = Object(slice, "spec");
    for (const json& entry : Array(spec, "devices")) {
      if (!entry.is_object() || devices.size() >= kSliceDevicesMax) continue;
      SliceDevice device = ReadDevice(entry);
      if (device.name.empty()) continue;
      device.driver = Text(spec, "driver");
      device.pool = Text(Object(spec, "pool"), "name");
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

std::optional<WallTime> ParseKubeTime(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size() + 1 || text.size() > 40 || text.back() != 'Z') return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + length, value);
    return value;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!day.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 60) {
    return std::nullopt;
  }
  return WallTime(std::chrono::sys_days(day).time_since_epoch()) +
         std::chrono::hours(number(11, 2)) + std::chrono::minutes(number(14, 2)) +
         std::chrono::seconds(number(17, 2));
}

}  // namespace gpuassay
