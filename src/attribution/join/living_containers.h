// Which containers and pods their runtime, or the kubelet, still knows: whoever runs in another one
// has been left behind (M26).
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/root_fs.h"
#include "model/identity.h"

namespace gpuassay {

class LivingContainers {
 public:
  // Reads the directories of containerd, Docker, Podman, CRI-O and the kubelet. One that is not
  // there says nothing of its containers.
  explicit LivingContainers(const RootFs& root);

  // True when the directory of its runtime, or of pods, can be read and does not have it. An owner
  // without container and pod is not gone; neither is a container of a runtime that was not found.
  bool Gone(const ProcessOwner& owner) const;

 private:
  using Ids = std::optional<std::set<std::string, std::less<>>>;
  const Ids* IdsOf(const std::string& runtime) const;

  Ids containerd_, docker_, storage_, pods_;
};

}  // namespace gpuassay
