// What the API server answers, in which anybody who may create a pod has written: either it is
// refused in one line or what is taken is within its bounds. The input is one text, given to each
// parser; what they take is merged with what the kubelet tells.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "attribution/kubernetes/kube_objects.h"
#include "attribution/kubernetes/scheduler_merge.h"
#include "base/check.h"

namespace {

using gpuassay::Check;

template <class Parsed>
bool Taken(const gpuassay::Result<Parsed>& parsed) {
  if (parsed) return true;
  Check(parsed.error().code == gpuassay::ErrorCode::kMalformed, "bad text is malformed");
  Check(parsed.error().what.find('\n') == std::string::npos, "an error is one line");
  return false;
}

void CheckText(const std::string& text) {
  Check(text.size() <= gpuassay::kOwnerTextBytesMax, "a text is bounded");
}

void CheckPod(const gpuassay::ApiPod& result) {
  const gpuassay::Pod& pod = result.pod;
  Check(!pod.identity.name.empty() && !pod.identity.uid.empty(), "a pod has a name and a UID");
  for (const std::string* text :
       {&pod.identity.name, &pod.identity.namespace_name, &pod.identity.uid, &pod.phase,
        &pod.controller.kind, &pod.controller.id}) {
    CheckText(*text);
  }
  Check(pod.containers.size() <= gpuassay::kPodContainersMax, "containers are bounded");
  for (const gpuassay::PodContainer& container : pod.containers) {
    CheckText(container.name);
    CheckText(container.id);
  }
  Check(pod.requests.size() <= gpuassay::kPodRequestsMax, "requests are bounded");
  for (const gpuassay::ResourceRequest& request : pod.requests) {
    CheckText(request.container);
    CheckText(request.resource);
    Check(std::isfinite(request.amount) && request.amount >= 0, "an amount is a number");
  }
  Check(pod.labels.size() <= gpuassay::kPodLabelsMax, "labels are bounded");
  for (const auto& [key, value] : pod.labels) {
    CheckText(key);
    CheckText(value);
  }
  if (pod.memory_request_bytes) {
    Check(std::isfinite(*pod.memory_request_bytes) && *pod.memory_request_bytes >= 0,
          "a request of memory is a number");
  }
}

gpuassay::KubernetesAnswers Answers(std::string_view text) {
  gpuassay::KubernetesAnswers answers;
  gpuassay::KubeletPod pod{"team", "p", {}};
  pod.containers.push_back({"main",
                            {{"nvidia.com/gpu", {std::string(text), "GPU-a"}}},
                            {{"claim", "gpu.nvidia.com", "node-1", "gpu-0"}}});
  auto kubelet = std::make_shared<gpuassay::KubeletAnswer>();
  kubelet->pods = {pod, {std::string(text), "q", {}}};
  answers.kubelet = kubelet;
  answers.kubelet_current = answers.api_current = true;
  return answers;
}

void CheckMerged(std::string_view text, gpuassay::ApiAnswer api) {
  gpuassay::KubernetesAnswers answers = Answers(text);
  answers.api = std::make_shared<const gpuassay::ApiAnswer>(std::move(api));
  const gpuassay::Scheduler merged = gpuassay::MergeAnswers(answers, {});
  Check(merged == gpuassay::MergeAnswers(answers, {}), "merging is the same each time");
  for (const gpuassay::Allocation& one : merged.allocations) CheckText(one.unit.device_id);
  for (const gpuassay::Pod& pod : merged.pods) CheckText(pod.identity.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const gpuassay::PodRules rules{{"example.com/gpu"}, {"*"}};
  gpuassay::ApiAnswer api;
  const auto take = [&api](const gpuassay::ApiPod& pod) {
    CheckPod(pod);
    api.pods[pod.pod.identity.uid] = std::make_shared<const gpuassay::ApiPod>(pod);
  };
  if (const auto pod = gpuassay::ParsePod(text, rules); Taken(pod)) take(*pod);
  if (const auto page = gpuassay::ParsePodPage(text, rules); Taken(page)) {
    for (const gpuassay::ApiPod& pod : page->pods) take(pod);
  }
  if (const auto event = gpuassay::ParseWatchEvent(text, rules); Taken(event)) {
    using Kind = gpuassay::WatchEvent::Kind;
    if (event->kind == Kind::kPut || event->kind == Kind::kDelete) take(event->pod);
  }
  if (auto slices = gpuassay::ParseResourceSlices(text); Taken(slices)) {
    Check(slices->size() <= gpuassay::kSliceDevicesMax, "devices are bounded");
    api.slices = std::move(*slices);
  }
  Check(gpuassay::StatusMessage(text).find('\n') == std::string::npos, "a message is one line");
  (void)gpuassay::ParseKubeTime(text);
  CheckMerged(text, std::move(api));
  return 0;
}
