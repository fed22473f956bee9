// The kubelet's pod-resources API (v1) over its Unix socket: which container has which device, and
// which devices can be handed out. Source: kubelet API k8s.io/kubelet/pkg/apis/podresources/v1.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace gpuassay {

inline constexpr std::size_t kPodResourcesBytesMax = std::size_t{16} << 20;

struct KubeletDevices {
  std::string resource;  // "nvidia.com/gpu"
  std::vector<std::string> ids;

  bool operator==(const KubeletDevices&) const = default;
};

// A device of DRA, told by kubelets with KubeletPodResourcesDynamicResources.
struct KubeletClaimDevice {
  std::string claim;   // name of the ResourceClaim, in the namespace of the pod
  std::string driver;  // "gpu.nvidia.com"
  std::string pool;
  std::string device;  // "gpu-0"

  bool operator==(const KubeletClaimDevice&) const = default;
};

struct KubeletContainer {
  std::string name;
  std::vector<KubeletDevices> devices;
  std::vector<KubeletClaimDevice> claim_devices;

  bool operator==(const KubeletContainer&) const = default;
};

struct KubeletPod {
  std::string namespace_name;
  std::string name;
  std::vector<KubeletContainer> containers;

  bool operator==(const KubeletPod&) const = default;
};

struct KubeletAnswer {
  std::vector<KubeletPod> pods;  // in the kubelet's order, which is a random one
  std::vector<KubeletDevices> allocatable;
  // Why `allocatable` is empty; one line, empty when the kubelet told it.
  std::string allocatable_error;
};

// Asks anew on a connection of its own each time: a kubelet that was restarted is found at once,
// with none of gRPC's back-off. Ask() is for one thread, Cancel() for any.
class PodResourcesClient {
 public:
  explicit PodResourcesClient(std::string socket);
  ~PodResourcesClient();
  PodResourcesClient(const PodResourcesClient&) = delete;
  PodResourcesClient& operator=(const PodResourcesClient&) = delete;

  // Both calls together take at most `timeout`. Errors are one line that says what to look at:
  // kNotFound (no socket), kPermission, kTimeout, kUnsupported (no such API), kMalformed (longer
  // than 16 MiB, or no such messages), kIo (nobody listens, the connection broke).
  Result<KubeletAnswer> Ask(Duration timeout);

  // Ends a running Ask() and lets every later one fail.
  void Cancel();

 private:
  struct Call;
  Result<KubeletAnswer> AskOver(int socket, Duration timeout);

  const std::string socket_;
  std::mutex mutex_;  // guards call_ and cancelled_
  Call* call_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace gpuassay
