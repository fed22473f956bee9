#include "attribution/join/node_names.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/host_paths.h"

namespace gpuassay {
namespace {

using nlohmann::json;

std::string Cut(std::string_view text) { return std::string(text.substr(0, kOwnerTextBytesMax)); }

// Of a JSON object; empty when it has no such text.
std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return Cut(found->get_ref<const std::string&>());
}

bool IsId(std::string_view id) {
  return !id.empty() && id.find_first_of("/.") == std::string_view::npos;
}

}  // namespace

std::optional<PodLogName> ParsePodLogName(std::string_view text) {
  const std::size_t first = text.find('_');
  const std::size_t last = text.rfind('_');
  if (first == text.npos || first == 0 || last <= first + 1 || last + 1 == text.size()) {
    return std::nullopt;
  }
  const std::string_view name = text.substr(first + 1, last - first - 1);
  if (name.find('_') != name.npos) return std::nullopt;
  return PodLogName{Cut(text.substr(0, first)), Cut(name), Cut(text.substr(last + 1))};
}

std::optional<std::string> ContainerOfLogLink(std::string_view link, std::string_view pod,
                                              std::string_view namespace_name,
                                              std::string_view id) {
  const std::string begin = fmt::format("{}_{}_", pod, namespace_name);
  const std::string end = fmt::format("-{}.log", id);
  if (!link.starts_with(begin) || !link.ends_with(end)) return std::nullopt;
  if (link.size() <= begin.size() + end.size()) return std::nullopt;
  return Cut(link.substr(begin.size(), link.size() - begin.size() - end.size()));
}

std::string DockerContainerName(std::string_view text) {
  const json config = json::parse(text, nullptr, false);
  if (!config.is_object()) return "";
  std::string name = TextOf(config, "Name");
  if (name.starts_with('/')) name.erase(0, 1);
  return name;
}

std::string PodmanContainerName(std::string_view text, std::string_view id) {
  const json containers = json::parse(text, nullptr, false);
  if (!containers.is_array()) return "";
  for (const json& container : containers) {
    if (!container.is_object() || TextOf(container, "id") != id) continue;
    const auto names = container.find("names");
    if (names == container.end() || !names->is_array() || names->empty()) return "";
    return (*names)[0].is_string() ? Cut((*names)[0].get_ref<const std::string&>()) : "";
  }
  return "";
}

NodeNames::NodeNames(RootFs root) : root_(std::move(root)) {}

const NodeNames::PodName* NodeNames::FindPod(const std::string& uid) {
  if (const auto found = pods_.find(uid); found != pods_.end()) return &found->second;
  const std::optional<FileStamp> stamp = root_.Stamp(kPodLogDirectory);
  if (!stamp || stamp == pods_stamp_) return nullptr;
  const Result<std::vector<std::string>> names = root_.List(kPodLogDirectory);
  if (!names) return nullptr;
  pods_stamp_ = stamp;
  pods_.clear();
  for (const std::string& name : *names) {
    std::optional<PodLogName> pod = ParsePodLogName(name);
    if (!pod || pods_.size() >= kPodsMax) continue;
    pods_.insert_or_assign(pod->uid,
                           PodName{std::move(pod->namespace_name), std::move(pod->name), name});
  }
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

std::string NodeNames::ContainerOfPod(const PodName& pod, std::string_view container_id) const {
  if (const Result<std::vector<std::string>> links = root_.List(kContainerLogDirectory)) {
    for (const std::string& link : *links) {
      const auto name = ContainerOfLogLink(link, pod.name, pod.namespace_name, container_id);
      if (name) return *name;
    }
  }
  // Before the link is there: a pod with one container.
  const auto directories = root_.List(fmt::format("{}/{}", kPodLogDirectory, pod.directory));
  return directories && directories->size() == 1 ? Cut(directories->front()) : "";
}

std::string NodeNames::ContainerOfPodman(std::string_view id) {
  const Result<std::string> list =
      root_.Read(fmt::format("{}/containers.json", kPodmanContainerDirectory));
  return list ? PodmanContainerName(*list, id) : "";
}

void NodeNames::Fill(ProcessOwner& owner) {
  const bool wants_container = owner.container && owner.container->name.empty();
  if (owner.pod && !owner.pod->uid.empty() && owner.pod->name.empty()) {
    const PodName* const pod = FindPod(owner.pod->uid);
    if (pod == nullptr) return;
    owner.pod->namespace_name = pod->namespace_name;
    owner.pod->name = pod->name;
    if (wants_container) owner.container->name = ContainerOfPod(*pod, owner.container->id);
    return;
  }
  if (owner.pod || !wants_container || !IsId(owner.container->id)) return;
  if (owner.container->runtime == "docker") {
    const Result<std::string> config = root_.Read(
        fmt::format("{}/{}/config.v2.json", kDockerContainerDirectory, owner.container->id));
    if (config) owner.container->name = DockerContainerName(*config);
  } else if (owner.container->runtime == "podman") {
    owner.container->name = ContainerOfPodman(owner.container->id);
  }
}

}  // namespace gpuassay
