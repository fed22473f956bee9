#include "attribution/join/living_containers.h"

#include <fmt/format.h>

#include <string_view>

#include "base/host_paths.h"

namespace gpuassay {
namespace {

using Ids = std::optional<std::set<std::string, std::less<>>>;

Ids NamesIn(const RootFs& root, std::string_view directory) {
  const Result<std::vector<std::string>> names = root.List(directory);
  if (!names) return std::nullopt;
  return std::set<std::string, std::less<>>(names->begin(), names->end());
}

// One level below: NAMESPACE/ID.
Ids NamesBelow(const RootFs& root, std::string_view directory) {
  const Ids namespaces = NamesIn(root, directory);
  if (!namespaces) return std::nullopt;
  std::set<std::string, std::less<>> ids;
  for (const std::string& name : *namespaces) {
    const Ids below = NamesIn(root, fmt::format("{}/{}", directory, name));
    if (!below) return std::nullopt;
    ids.insert(below->begin(), below->end());
  }
  return ids;
}

}  // namespace

LivingContainers::LivingContainers(const RootFs& root)
    : containerd_(NamesBelow(root, kContainerdTaskDirectory)),
      docker_(NamesIn(root, kDockerContainerDirectory)),
      storage_(NamesIn(root, kPodmanContainerDirectory)),
      pods_(NamesIn(root, kKubeletPodDirectory)) {}

const LivingContainers::Ids* LivingContainers::IdsOf(const std::string& runtime) const {
  if (runtime == "containerd") return &containerd_;
  if (runtime == "docker") return &docker_;
  if (runtime == "podman" || runtime == "cri-o") return &storage_;
  return nullptr;
}

bool LivingContainers::Gone(const ProcessOwner& owner) const {
  if (owner.pod && !owner.pod->uid.empty() && pods_ && !pods_->contains(owner.pod->uid)) {
    return true;
  }
  if (!owner.container || owner.container->id.empty()) return false;
  const Ids* const ids = IdsOf(owner.container->runtime);
  return ids != nullptr && *ids && !(*ids)->contains(owner.container->id);
}

}  // namespace gpuassay
