// Where programs of a node keep what we read of them: inside a root (RootFs), each with its source.
#pragma once

#include <string_view>

namespace gpuassay {

// The kubelet: one directory per pod, NAMESPACE_NAME_UID, with one per container in it (kubelet
// pkg/kubelet/kuberuntime, BuildPodLogsDirectory), and links POD_NAMESPACE_CONTAINER-ID.log.
inline constexpr std::string_view kPodLogDirectory = "/var/log/pods";
inline constexpr std::string_view kContainerLogDirectory = "/var/log/containers";
// One directory per pod, by UID, until the pod has been cleaned up.
inline constexpr std::string_view kKubeletPodDirectory = "/var/lib/kubelet/pods";
inline constexpr std::string_view kPodResourcesSocket =
    "/var/lib/kubelet/pod-resources/kubelet.sock";
// The token, the CA and the namespace of a pod's service account.
inline constexpr std::string_view kServiceAccountDirectory =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// containerd: NAMESPACE/ID of each container with a task.
inline constexpr std::string_view kContainerdTaskDirectory =
    "/run/containerd/io.containerd.runtime.v2.task";
// Docker: one directory per container, by ID, with its config.v2.json, until it has been removed.
inline constexpr std::string_view kDockerContainerDirectory = "/var/lib/docker/containers";
// containers/storage, of Podman and CRI-O: one directory per container, by ID, and containers.json.
inline constexpr std::string_view kPodmanContainerDirectory =
    "/var/lib/containers/storage/overlay-containers";

}  // namespace gpuassay
