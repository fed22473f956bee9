#include "sim/engine/timeline.h"

#include <algorithm>

namespace gpuassay::sim {

Timeline::Timeline(const ScenarioProcess& process) : process_(&process) {
  Duration at = {};
  for (const Phase& phase : process.phases) {
    starts_.push_back(at);
    if (phase.length == kForever) {
      return;
    }
    at += phase.length;
  }
  cycle_ = at;
}

const Load& Timeline::Cached(std::size_t phase, double clock) {
  for (const CacheEntry& entry : cache_) {
    if (entry.phase == phase && entry.clock == clock) {
      return entry.load;
    }
  }
  CacheEntry& entry = cache_[cache_next_];
  cache_next_ = (cache_next_ + 1) % cache_.size();
  entry = {phase, clock, LoadOf(process_->phases[phase].activity, clock)};
  return entry.load;
}

Load Timeline::Mean(Duration begin, Duration end, double clock) {
  Load mean = {};
  const double whole = Seconds(end - begin);
  const Duration last = std::min(end, process_->end) - process_->start;
  Duration at = std::max(begin, process_->start) - process_->start;
  if (starts_.empty()) {
    return mean;
  }
  while (at < last) {
    const bool over = cycle_ != kForever && at >= cycle_;
    if (over && !process_->repeat) {
      break;
    }
    const Duration base = over ? cycle_ * (at / cycle_) : Duration::zero();
    const Duration within = at - base;
    const auto next = std::ranges::upper_bound(starts_, within);
    const auto index = static_cast<std::size_t>(next - starts_.begin()) - 1;
    const Phase& phase = process_->phases[index];
    const Duration phase_end =
        phase.length == kForever ? last : std::min(last, base + starts_[index] + phase.length);
    const Load part = phase.kernels.empty() ? Cached(index, clock)
                                            : LoadOfKernels(phase.kernels, within - starts_[index],
                                                            phase_end - base - starts_[index]);
    AddScaled(mean, part, Seconds(phase_end - at) / whole);
    at = phase_end;
  }
  return mean;
}

}  // namespace gpuassay::sim
