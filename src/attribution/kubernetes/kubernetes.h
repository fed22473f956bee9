// Watches what Kubernetes knows of this node: the kubelet's pod-resources API over its Unix socket
// (v1 List, GetAllocatableResources) and, when it may, the API server (this node's pods; DRA
// ResourceSlices for names of devices). Threads of its own; whatever hangs or is forbidden leaves
// what is known, with the reason and the age, and is tried again with back-off.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/scheduler.h"
#include "model/snapshot.h"

namespace gpuassay {

struct KubernetesOptions {
  std::string pod_resources_socket;  // path; empty: not asked
  // API server: a kubeconfig file, or the service account of the pod; neither: not asked.
  std::string kubeconfig;
  bool in_cluster = false;
  std::string service_account_directory;        // of in_cluster: token, ca.crt
  std::string api_server;                       // "https://host:port" of in_cluster
  std::string node_name;                        // only this node's pods are asked for
  std::vector<std::string> resource_names;      // renamed resources besides nvidia.com/...
  std::vector<std::string> pod_labels;          // allow-list of label keys; "*" at the end of one
  Duration poll = std::chrono::seconds(10);     // of the kubelet; also asked anew by Poke()
  Duration timeout = std::chrono::seconds(10);  // of one call
  Duration backoff_min = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::minutes(2);
};

// Thread-safe. Start() begins; the destructor ends all threads within two seconds, whatever the
// servers do.
class Kubernetes {
 public:
  static std::unique_ptr<Kubernetes> Start(KubernetesOptions options, const Clock& clock);
  virtual ~Kubernetes() = default;

  // What is known now: device ids as told, not resolved (gpu_uuid, mig_uuid empty, except those of
  // DRA that a ResourceSlice tells). Null before anybody has answered. The pointer changes only
  // when the content does.
  virtual SchedulerPtr Latest() const = 0;
  // "pod_resources" and "kubernetes_api", those that are asked; `error` says what is wrong and what
  // is missing because of it ("forbidden: pods is forbidden: ...; names of pods come from the
  // kubelet, labels, requests, controllers and ids are missing"). `last_success`: of the API server
  // when something has last come; from one that all is well with, a bookmark comes every minute.
  virtual std::vector<SourceStatus> Sources() const = 0;
  // Something has changed on the node (a new process in a pod nobody knows): ask the kubelet now,
  // at most once a second, and less often while nothing new comes of it. A change that the API
  // server tells of does the same.
  virtual void Poke() = 0;
  // Waits until every configured server has answered or failed once; for one-shot commands.
  virtual void WaitForFirst(Duration timeout) = 0;
};

}  // namespace gpuassay
