// A kubelet, as far as its pod-resources API (v1) goes: a real gRPC server on a Unix socket that
// answers from a scenario. Source: k8s.io/kubelet/pkg/apis/podresources/v1.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

class Kubelet {
 public:
  // Answers from time 0 on. `scenario` outlives it. kIo; a path over 107 bytes cannot be a
  // socket's.
  static Result<std::unique_ptr<Kubelet>> Start(const Scenario& scenario, std::string socket);
  virtual ~Kubelet() = default;  // removes the socket

  // What is answered from now on is that of time `t`; when this returns, a kubelet that is down or
  // absent then has broken off all calls. One caller at a time.
  virtual void Update(Duration t) = 0;
};

}  // namespace gpuassay::sim
