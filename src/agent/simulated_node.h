// The node that a scenario describes around its GPUs, made in a directory of its own (sim/world).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "progress/memory_report.h"
#include "sim/world/world.h"

namespace gpuassay {

// Not thread-safe.
class SimulatedNode {
 public:
  // Null when the scenario has only GPUs. kMalformed: the file; kIo: the directory or its servers
  // cannot be made.
  static Result<std::unique_ptr<SimulatedNode>> Start(const std::string& scenario_file);
  ~SimulatedNode();  // removes the directory

  // Makes it that of scenario time `t`; the first call makes it exist. True when pods, processes or
  // servers have come or gone since the call before.
  bool MoveTo(Duration t);
  // What its jobs report of their memory pools at that time, received `now`.
  void Report(SteadyTime now, MemoryReports& reports) const;

  std::string root() const { return world_->root(); }
  std::string pod_resources_socket() const { return world_->pod_resources_socket(); }
  std::string kubeconfig() const { return world_->kubeconfig(); }
  const std::string& hostname() const { return hostname_; }

 private:
  SimulatedNode(std::string directory, const sim::Scenario& scenario);

  std::string directory_;
  std::string hostname_;
  std::vector<Duration> changes_;  // when something comes or goes, ascending
  std::ptrdiff_t changes_past_ = -1;
  std::unique_ptr<sim::World> world_;
};

}  // namespace gpuassay
