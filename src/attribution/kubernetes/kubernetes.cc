#include "attribution/kubernetes/kubernetes.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "attribution/kubernetes/api_watch.h"
#include "attribution/kubernetes/device_id.h"
#include "attribution/kubernetes/kubelet_watch.h"
#include "attribution/kubernetes/scheduler_merge.h"

namespace gpuassay {
namespace {

class KubernetesWatch final : public Kubernetes {
 public:
  KubernetesWatch(KubernetesOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {
    if (!options_.pod_resources_socket.empty()) {
      kubelet_ = std::make_unique<KubeletWatch>(options_, clock, [this] { Update(false); });
    }
    if (!options_.kubeconfig.empty() || options_.in_cluster) {
      api_ = std::make_unique<ApiWatch>(options_, clock, [this] { Update(true); });
    }
    all_tried_ = !kubelet_ && !api_;
    if (kubelet_) kubelet_->Start();
    if (api_) api_->Start();
  }

  ~KubernetesWatch() override {
    // They end at the same time, and each looks at the other until it has ended.
    if (kubelet_) kubelet_->Stop();
    if (api_) api_->Stop();
    if (kubelet_) kubelet_->Join();
    if (api_) api_->Join();
  }
  KubernetesWatch(const KubernetesWatch&) = delete;
  KubernetesWatch& operator=(const KubernetesWatch&) = delete;

  SchedulerPtr Latest() const override {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

  std::vector<SourceStatus> Sources() const override {
    std::vector<SourceStatus> sources;
    if (kubelet_) sources.push_back(kubelet_->Status());
    if (api_) sources.push_back(ApiStatus());
    return sources;
  }

  void Poke() override {
    if (kubelet_) kubelet_->Poke();
  }

  void WaitForFirst(Duration timeout) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return all_tried_; });
  }

 private:
  KubernetesAnswers Answers() const;
  void Update(bool by_api);
  SourceStatus ApiStatus() const;
  bool AsksForDra(const KubernetesAnswers& answers) const;

  const KubernetesOptions options_;
  const Clock& clock_;
  std::mutex merging_;        // one merge at a time, so that an older one is not the last
  mutable std::mutex mutex_;  // guards latest_ and all_tried_
  std::condition_variable changed_;
  SchedulerPtr latest_;
  bool all_tried_ = false;  // and what they have told is in latest_
  std::unique_ptr<KubeletWatch> kubelet_;
  std::unique_ptr<ApiWatch> api_;
};

KubernetesAnswers KubernetesWatch::Answers() const {
  KubernetesAnswers answers;
  if (kubelet_) {
    KubeletWatch::Told told = kubelet_->Latest();
    answers.kubelet = std::move(told.answer);
    answers.kubelet_current = told.current;
  }
  if (api_) {
    ApiWatch::Told told = api_->Latest();
    answers.api = std::move(told.answer);
    answers.api_current = told.current;
  }
  return answers;
}

// Called by both threads.
void KubernetesWatch::Update(bool by_api) {
  const std::lock_guard merging(merging_);
  const bool all_tried = (!kubelet_ || kubelet_->Latest().tried) && (!api_ || api_->Latest().tried);
  const KubernetesAnswers answers = Answers();
  bool is_new = false;
  if (answers.kubelet || answers.api) {
    auto merged = std::make_shared<const Scheduler>(MergeAnswers(answers, options_.resource_names));
    const std::lock_guard lock(mutex_);
    is_new = !latest_ || *latest_ != *merged;
    if (is_new) latest_ = std::move(merged);
  }
  // Pods come and go: the kubelet knows of their devices.
  if (by_api && is_new) Poke();
  if (api_ && HasUnknownDevice(answers, options_.resource_names)) api_->LookForDevices();
  const std::lock_guard lock(mutex_);
  all_tried_ = all_tried;
  changed_.notify_all();
}

bool KubernetesWatch::AsksForDra(const KubernetesAnswers& answers) const {
  const auto is_dra = [this](const DeviceUnit& unit) {
    return IsGpuDraDriver(unit.resource, options_.resource_names);
  };
  return HasUnknownDevice(answers, options_.resource_names) ||
         (answers.api && std::ranges::any_of(answers.api->slices, [&](const SliceDevice& slice) {
            return is_dra({slice.driver, "", {}, "", ""});
          }));
}

SourceStatus KubernetesWatch::ApiStatus() const {
  SourceStatus status = api_->Status();
  const ApiWatch::Told told = api_->Latest();
  if (!status.error.empty()) {
    if (told.answer) {
      status.error += "; what it told before is kept, later changes are missing";
    } else if (kubelet_) {
      status.error +=
          "; names of pods come from the kubelet, labels, requests, controllers and ids are "
          "missing";
    } else {
      status.error += "; pods are missing";
    }
    return status;
  }
  const KubernetesAnswers answers = Answers();
  if (!told.devices_error.empty() && AsksForDra(answers)) {
    status.missing = Missing::kNoPermission;
    status.error = told.devices_error + "; which GPU a device of DRA is comes from its name alone";
    return status;
  }
  const bool no_pods = told.answer && told.answer->pods.empty();
  if (no_pods && answers.kubelet && answers.kubelet_current && !answers.kubelet->pods.empty()) {
    status.missing = Missing::kNotSupported;
    status.error = "no pods on a node of the name \"" + options_.node_name +
                   "\", but the kubelet has some: the node has another name; labels, requests, "
                   "controllers and ids of pods are missing";
  }
  return status;
}

}  // namespace

std::unique_ptr<Kubernetes> Kubernetes::Start(KubernetesOptions options, const Clock& clock) {
  return std::make_unique<KubernetesWatch>(std::move(options), clock);
}

}  // namespace gpuassay
