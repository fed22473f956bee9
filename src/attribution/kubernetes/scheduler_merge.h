// One view of the scheduler out of what the kubelet and the API server tell. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attribution/kubernetes/kube_objects.h"
#include "attribution/kubernetes/pod_resources.h"
#include "model/scheduler.h"

namespace gpuassay {

// What the API server has told of a node.
struct ApiAnswer {
  std::map<std::string, std::shared_ptr<const ApiPod>> pods;  // by UID, finished ones too
  std::vector<SliceDevice> slices;
  std::uint32_t dropped = 0;  // pods over a bound, and entries that are none
};

// Null: it has told nothing. Not current: its last answer was an error, and this is what it told
// before.
struct KubernetesAnswers {
  std::shared_ptr<const KubeletAnswer> kubelet;
  std::shared_ptr<const ApiAnswer> api;
  bool kubelet_current = false;
  bool api_current = false;
};

// The same for the same answers, in whatever order the servers list them.
//
// Pods: those of the API server that are not finished, and those that only the kubelet knows, with
//   the names of their containers and nothing else. When one of the two is current and the other is
//   not, what only the other one knows is gone.
// Allocations: the kubelet's, of accelerators, without those of pods that are finished, with what
//   the API server knows of the pod. A device that is listed more than once, as of several NUMA
//   nodes, counts once.
// Devices of DRA have the UUIDs that a ResourceSlice tells; all others none. What can be handed out
//   of them is what exists: of MIG devices those that have been made.
Scheduler MergeAnswers(const KubernetesAnswers& answers,
                       const std::vector<std::string>& resource_names);

// True when the kubelet tells of a device of DRA that no ResourceSlice has.
bool HasUnknownDevice(const KubernetesAnswers& answers,
                      const std::vector<std::string>& resource_names);

}  // namespace gpuassay
