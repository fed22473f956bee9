// A kubelet for tests: a real gRPC server with the pod-resources API on a Unix socket. For tests
// only; its source is test_kubelet_test.cc, so that the product does not contain it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attribution/kubernetes/pod_resources.h"

namespace gpuassay {

enum class KubeletMood {
  kAnswers,
  kHangs,           // takes calls and never answers
  kOldOne,          // has no GetAllocatableResources
  kOtherApi,        // has neither
  kRefuses,         // PERMISSION_DENIED
  kTooLong,         // an answer of more than 16 MiB
  kFailsAllocated,  // UNKNOWN from GetAllocatableResources, as kubelet 1.21 without its feature
};

class TestKubelet {
 public:
  explicit TestKubelet(std::string socket);
  ~TestKubelet();
  TestKubelet(const TestKubelet&) = delete;
  TestKubelet& operator=(const TestKubelet&) = delete;

  void Start();
  void Stop();  // open connections are cut and the socket is removed
  void Set(std::vector<KubeletPod> pods, std::vector<KubeletDevices> allocatable = {});
  void Set(KubeletMood mood);
  int lists() const;  // calls of List so far
  const std::string& socket() const { return socket_; }

 private:
  class Service;
  std::string socket_;
  std::unique_ptr<Service> service_;
};

// A pod with one container "main" that has these devices of nvidia.com/gpu.
KubeletPod PodWithGpus(std::string namespace_name, std::string name, std::vector<std::string> ids);

}  // namespace gpuassay
