// The node around a source: where its /proc, its kubelet and its API server are. Of a driver the
// real ones; of a scenario those that it describes, made in a directory of their own; of a
// recording none: it has what it has.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/source_spec.h"
#include "attribution/join/join.h"
#include "attribution/kubernetes/kubernetes.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/snapshot.h"
#include "progress/memory_report.h"

namespace gpuassay {

struct NodeOptions {
  bool attribution = true;  // false: nothing but the driver is read
  // Empty: "/", or what the scenario has.
  std::string root = {};
  // Of the kubelet; empty: the usual one, or what the scenario has; "off": not asked.
  std::string pod_resources_socket = {};
  std::string kubeconfig = {};  // empty: the service account of a pod, where there is one
  std::string node_name = {};   // empty: the host's
  std::vector<std::string> resource_names = {};
  std::vector<std::string> pod_labels = {};
  std::string report_socket = {};  // empty: none
};

// Not thread-safe.
class NodeJoin {
 public:
  enum class Pace {
    kLive,  // snapshots come as time passes; whoever serves them must not be kept waiting
    // As fast as they can be read. The first one, and each after a change of a simulated node, asks
    // kubelet and API server anew, waits for what they say and looks for holders of device files:
    // the same every time.
    kOneShot,
  };

  // Null when there is nothing to join: a recording, or attribution is off. kMalformed: a root or
  // kubeconfig that was named cannot be read; kIo: a simulated node cannot be made. `clock`
  // outlives it.
  static Result<std::unique_ptr<NodeJoin>> Open(const SourceSpec& source,
                                                const NodeOptions& options, Pace pace,
                                                const Clock& clock, double simulator_speed = 1);
  ~NodeJoin();

  // The source begins anew: so does a simulated node.
  void SourceStarts();
  void Apply(Snapshot& snapshot);

 private:
  struct Impl;
  explicit NodeJoin(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
