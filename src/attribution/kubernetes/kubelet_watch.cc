#include "attribution/kubernetes/kubelet_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attribution/kubernetes/backoff.h"

namespace gpuassay {
namespace {

constexpr Duration kPauseMin = std::chrono::seconds(1);  // between two questions

// The kubelet lists pods in a random order.
void Sort(KubeletAnswer& answer) {
  std::ranges::stable_sort(answer.pods, [](const KubeletPod& a, const KubeletPod& b) {
    return std::tie(a.namespace_name, a.name) < std::tie(b.namespace_name, b.name);
  });
}

}  // namespace

KubeletWatch::KubeletWatch(const KubernetesOptions& options, const Clock& clock,
                           std::function<void()> on_answer)
    : poll_(options.poll),
      timeout_(options.timeout),
      backoff_min_(options.backoff_min),
      clock_(clock),
      on_answer_(std::move(on_answer)),
      client_(options.pod_resources_socket) {}

KubeletWatch::~KubeletWatch() {
  Stop();
  Join();
}

void KubeletWatch::Join() {
  if (thread_.joinable()) thread_.join();
}

void KubeletWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

void KubeletWatch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  client_.Cancel();
}

void KubeletWatch::Poke() {
  const std::lock_guard lock(mutex_);
  poked_ = true;
  changed_.notify_all();
}

// True when it is time to end.
bool KubeletWatch::Wait(Duration duration, bool until_poked) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::max(duration, Duration(0)),
                    [&] { return stopped_ || (until_poked && poked_); });
  return stopped_;
}

bool KubeletWatch::TakePoke() {
  const std::lock_guard lock(mutex_);
  return std::exchange(poked_, false);
}

bool KubeletWatch::Ask() {
  {
    const std::lock_guard lock(mutex_);
    book_.Asked();
  }
  const SteadyTime start = clock_.Steady();
  Result<KubeletAnswer> answer = client_.Ask(timeout_);
  const Duration took = clock_.Steady() - start;
  const std::lock_guard lock(mutex_);
  if (!answer) {
    book_.Failed(answer.error());
    return false;
  }
  book_.Succeeded(clock_.Wall(), took);
  Sort(*answer);
  if (answer_ && !answer->allocatable_error.empty()) answer->allocatable = answer_->allocatable;
  if (answer_ && answer_->pods == answer->pods && answer_->allocatable == answer->allocatable &&
      answer_->allocatable_error == answer->allocatable_error) {
    return false;
  }
  answer_ = std::make_shared<const KubeletAnswer>(std::move(*answer));
  return true;
}

void KubeletWatch::Run() {
  Backoff failures(backoff_min_, poll_);
  Backoff pauses(kPauseMin, poll_);
  while (true) {
    const bool was_poked = TakePoke();
    const bool is_new = Ask();
    if (Wait(Duration(0), false)) return;
    on_answer_();
    if (!Latest().current) {
      if (Wait(std::min(failures.Next(), poll_), false)) return;
      continue;
    }
    failures.Reset();
    if (is_new || !was_poked) pauses.Reset();
    const Duration pause = std::min(pauses.Next(), poll_);
    if (Wait(pause, /*until_poked=*/false) || Wait(poll_ - pause, /*until_poked=*/true)) return;
  }
}

KubeletWatch::Told KubeletWatch::Latest() const {
  const std::lock_guard lock(mutex_);
  return {answer_, book_.tried() && book_.status().error.empty(), book_.tried()};
}

SourceStatus KubeletWatch::Status() const {
  const std::lock_guard lock(mutex_);
  SourceStatus status = book_.status();
  const bool answered = status.error.empty();
  status.error = KubeletTrouble(status, answer_.get());
  if (answered && !status.error.empty()) status.missing = Missing::kNotSupported;  // a part of it
  return status;
}

std::string KubeletTrouble(const SourceStatus& status, const KubeletAnswer* answer) {
  if (!status.error.empty()) {
    return answer == nullptr
               ? status.error + "; which container has which device is missing"
               : status.error + "; what it told before is kept, later changes are missing";
  }
  if (answer != nullptr && !answer->allocatable_error.empty()) {
    return answer->allocatable_error + (answer->allocatable.empty()
                                            ? "; which devices can be handed out is missing"
                                            : "; which devices can be handed out is as before");
  }
  return "";
}

}  // namespace gpuassay
