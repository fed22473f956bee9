// A process over time: which phase it is in, and its load during a tick.
#pragma once

#include "sim/engine/load.h"

namespace gpuassay::sim {

class Timeline {
 public:
  // `process` must outlive this.
  explicit Timeline(const ScenarioProcess& process);

  bool Alive(Duration t) const { return t >= process_->start && t < process_->end; }
  const ScenarioProcess& process() const { return *process_; }

  // Mean load over [begin, end) at a share of the full clock: exact over the phases in between.
  Load Mean(Duration begin, Duration end, double clock);

 private:
  // LoadOf a phase's activity. Most ticks ask for the phase and clocks of the tick before.
  const Load& Cached(std::size_t phase, double clock);
  struct CacheEntry {
    std::size_t phase = 0;
    double clock = 0;  // 0: empty
    Load load = {};
  };

  const ScenarioProcess* process_;
  std::vector<Duration> starts_;  // of each phase, since the process's start
  Duration cycle_ = kForever;     // length of all phases; kForever when the last has no end
  std::array<CacheEntry, 4> cache_;
  std::size_t cache_next_ = 0;
};

}  // namespace gpuassay::sim
