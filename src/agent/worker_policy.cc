#include "agent/worker_policy.h"

#include <algorithm>

#include "base/check.h"

namespace gpuassay {

void WorkerPolicy::OnStarted(SteadyTime now) {
  Check(!running_, "one worker at a time");
  running_ = true;
  killed_ = false;
  asked_to_end_ = false;
  last_sign_ = now;
}

void WorkerPolicy::OnReading(SteadyTime now) {
  last_sign_ = now;
  backoff_ = {};
  last_hanging_gpu_.reset();
  // A GPU that is read again after its quarantine is forgiven.
  std::erase_if(quarantines_, [](const Quarantine& q) { return !q.skipped; });
}

void WorkerPolicy::OnExit(SteadyTime now, bool asked_for_successor) {
  running_ = false;
  if (asked_for_successor || asked_to_end_) {
    start_not_before_ = now + options_.backoff_first;
    return;
  }
  Failed(now);
}

void WorkerPolicy::OnAbandoned(SteadyTime now) {
  running_ = false;
  ++stuck_workers_;
  Failed(now);
}

void WorkerPolicy::Failed(SteadyTime now) {
  backoff_ =
      backoff_.count() == 0 ? options_.backoff_first : std::min(backoff_ * 2, options_.backoff_max);
  start_not_before_ = now + backoff_;
}

void WorkerPolicy::OnHangingGpu(SteadyTime now, std::optional<std::uint32_t> gpu) {
  const bool again = gpu.has_value() && last_hanging_gpu_ == gpu;
  last_hanging_gpu_ = gpu;
  if (!gpu.has_value()) return;
  const auto known = std::ranges::find(quarantines_, *gpu, &Quarantine::gpu);
  if (known != quarantines_.end()) {  // it was being tried again and hangs still
    known->length *= 2;
    known->until = now + known->length;
    known->skipped = true;
  } else if (again) {
    quarantines_.push_back({*gpu, now + options_.quarantine, options_.quarantine, true});
  }
}

void WorkerPolicy::Resume(SteadyTime now) {
  released_ = false;
  backoff_ = {};
  start_not_before_ = now;
}

bool WorkerPolicy::Hanging(SteadyTime now) const {
  return running_ && now - last_sign_ >= options_.hang_after;
}

std::vector<std::uint32_t> WorkerPolicy::skipped_gpus() const {
  std::vector<std::uint32_t> gpus;
  for (const Quarantine& q : quarantines_) {
    if (q.skipped) gpus.push_back(q.gpu);
  }
  return gpus;
}

WorkerPolicy::Action WorkerPolicy::Decide(SteadyTime now) {
  if (!running_) {
    const bool may_start =
        !released_ && now >= start_not_before_ && stuck_workers_ < options_.stuck_workers_max;
    return may_start ? Action::kStart : Action::kNone;
  }
  if (killed_) {
    return now - killed_at_ >= options_.kill_grace ? Action::kAbandon : Action::kNone;
  }
  const bool too_late_to_ask = asked_to_end_ && now - asked_at_ >= options_.kill_grace;
  if (too_late_to_ask || now - last_sign_ >= options_.replace_after) {
    killed_ = true;
    killed_at_ = now;
    return Action::kKill;
  }
  if (asked_to_end_ || !(released_ || QuarantineIsOver(now))) return Action::kNone;
  asked_to_end_ = true;
  asked_at_ = now;
  return Action::kAskToEnd;
}

bool WorkerPolicy::QuarantineIsOver(SteadyTime now) {
  bool over = false;
  for (Quarantine& q : quarantines_) {
    if (!q.skipped || now < q.until) continue;
    q.skipped = false;
    over = true;
  }
  return over;
}

SteadyTime WorkerPolicy::NextDecision(SteadyTime now) const {
  constexpr Duration kLongest = std::chrono::seconds(60);
  SteadyTime next = now + kLongest;
  if (!running_) {
    const bool waiting = !released_ && stuck_workers_ < options_.stuck_workers_max;
    return waiting ? std::min(next, std::max(now, start_not_before_)) : next;
  }
  if (killed_) return std::min(next, std::max(now, killed_at_ + options_.kill_grace));
  next = std::min(next, last_sign_ + options_.replace_after);
  if (asked_to_end_) return std::max(now, std::min(next, asked_at_ + options_.kill_grace));
  if (released_) return now;
  if (!Hanging(now)) next = std::min(next, last_sign_ + options_.hang_after);
  for (const Quarantine& q : quarantines_) {
    if (q.skipped) next = std::min(next, q.until);
  }
  return std::max(now, next);
}

}  // namespace gpuassay
