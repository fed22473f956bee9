// The node around a simulated driver, made real enough that the product's own clients read it: a
// root with /proc and /etc/passwd in a directory, the kubelet's pod-resources API on a Unix socket,
// an API server on loopback with a kubeconfig for it. Follows scenario time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// A job's report of its own memory at this moment, as it would arrive at the agent's socket.
struct PoolReport {
  std::uint32_t pid = 0;
  std::string device;  // UUID of the GPU or MIG device
  std::uint64_t reserved_bytes = 0;
  std::uint64_t allocated_bytes = 0;
};

class World {
 public:
  // `directory` must exist and be empty; everything is made below it and removed at the end.
  // `scenario.world.present` must be true. kIo when the directory or a socket cannot be made (a
  // path over 107 bytes cannot be a socket's).
  static Result<std::unique_ptr<World>> Start(const Scenario& scenario, std::string directory);
  virtual ~World() = default;

  // Makes the root, and what the servers answer, that of scenario time `t`. Cheap when nothing has
  // changed since the last call. One caller at a time; the servers answer in threads of their own.
  virtual void Update(Duration t) = 0;

  virtual std::string root() const = 0;                     // for RootFs::Open
  virtual std::string pod_resources_socket() const = 0;     // empty without Kubernetes
  virtual std::string kubeconfig() const = 0;               // empty without Kubernetes
  virtual std::vector<PoolReport> PoolReports() const = 0;  // at the time of the last Update
};

}  // namespace gpuassay::sim
