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
  Load Mean(Duration begin, Duration end, double clock) const;

 private:
  const ScenarioProcess* process_;
  std::vector<Duration> starts_;  // of each phase, since the process's start
  Duration cycle_ = kForever;     // length of all phases; kForever when the last has no end
};

}  // namespace gpuassay::sim
