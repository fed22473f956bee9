// Names of pods and containers, as files of the node tell them: without the kubelet, the API server
// and the container runtime. Of a pod its log directory, of a container its log directory or link,
// of Docker and Podman their own records.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/root_fs.h"
#include "model/identity.h"

namespace gpuassay {

// Not thread-safe.
class NodeNames {
 public:
  static constexpr std::size_t kPodsMax = 8192;  // also those whose logs have been left behind

  explicit NodeNames(RootFs root);

  // Fills namespace and name of a pod of which only the UID is known, and the name of a container
  // of which only the id is. What is not found stays as it is.
  void Fill(ProcessOwner& owner);

 private:
  struct PodName {
    std::string namespace_name;
    std::string name;
    std::string directory;  // of its logs
  };
  const PodName* FindPod(const std::string& uid);
  std::string ContainerOfPod(const PodName& pod, std::string_view container_id) const;
  std::string ContainerOfPodman(std::string_view id);

  RootFs root_;
  std::unordered_map<std::string, PodName> pods_;  // by UID
  std::optional<FileStamp> pods_stamp_;            // of the directory they were read from
};

// "NAMESPACE_NAME_UID": neither of the first two can hold a "_". Nullopt for another text.
struct PodLogName {
  std::string namespace_name;
  std::string name;
  std::string uid;
  bool operator==(const PodLogName&) const = default;
};
std::optional<PodLogName> ParsePodLogName(std::string_view text);

// The container's name of "POD_NAMESPACE_CONTAINER-ID.log" when pod, namespace and id are these.
std::optional<std::string> ContainerOfLogLink(std::string_view link, std::string_view pod,
                                              std::string_view namespace_name, std::string_view id);

// The name in Docker's config.v2.json, without its slash; empty when there is none.
std::string DockerContainerName(std::string_view json);
// The first name of the container with this id in Podman's containers.json; empty without one.
std::string PodmanContainerName(std::string_view json, std::string_view id);

}  // namespace gpuassay
