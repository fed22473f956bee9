// The device plugin of a scenario's node: tells a real kubelet which GPUs, replicas and MIG devices
// there are, over the device-plugin API v1beta1, and lets it hand them out.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// Not thread-safe; its servers have threads of their own.
class DevicePlugin {
 public:
  // `directory`: where the kubelet's socket "kubelet.sock" is or will be; the sockets of the
  // resources are made beside it.
  DevicePlugin(const Scenario& scenario, std::string directory);
  ~DevicePlugin();  // the sockets are removed

  // Serves the resources and registers them; again whenever the kubelet has started anew (it
  // removes all sockets then). Until `stop`. `registered` is called after each time.
  // Ends early with kMalformed when the kubelet refuses a resource, kIo when a socket cannot be
  // made.
  Result<void> Run(std::stop_token stop, const std::function<void()>& registered);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay::sim
