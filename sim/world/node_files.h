// What the kubelet, the container runtimes and their storage leave on a node's disk about pods and
// containers: log directories and links, tasks, records with names. Pure.
#pragma once

#include <map>
#include <string>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

struct NodeEntry {
  enum class Kind { kDirectory, kFile, kLink };
  Kind kind = Kind::kDirectory;
  std::string content;  // of a link: its target

  bool operator==(const NodeEntry&) const = default;
};
// By path below the root, "var/log/pods"; folders that only hold others are left out.
using NodeFiles = std::map<std::string, NodeEntry>;

// The kubelet collects the log directories of deleted pods once a minute (its
// evictPodLogsDirectories).
inline constexpr Duration kPodLogsStay = std::chrono::seconds(60);

// Pods and containers that have ended at `t` have nothing any more, whatever still runs of them,
// but for the logs of a pod.
NodeFiles NodeFilesAt(const Scenario& scenario, Duration t);

}  // namespace gpuassay::sim
