// Integrates on the node what gauges sample (M24): busy seconds, SM-active seconds, joules,
// throttled seconds by reason, held-idle seconds, bytes. Fills the kDerived fields of each snapshot
// and the Xid counts, from consecutive snapshots of one node.
//
// How an interval is valued. The reading of a snapshot stands for the interval that ended with it:
// GPM ratios and utilization_mean_ratio are means over exactly that interval, power_watts is a mean
// of its last second on current models. Nothing is taken from the reading at its beginning.
//
// What is integrated. A GPU counts from one snapshot to the next when it was reached in both and
// not more than kGapMax (or three intervals) lies between them; only then do its counters and
// observed_seconds_total move. A reading that is missing stops its own counter and no other. The
// driver's own counters (energy, throttled time) are used where it has them: the difference to
// their last reading; when that is negative or impossible (the driver was loaded anew, a garbage
// value) the interval is bridged with the gauge beside it, or adds nothing.
//
// What is missing. A counter is missing, with the reason of its input, until that input has been
// read once; from then on it is known for ever, also while the GPU is lost.
#pragma once

#include <memory>

#include "model/snapshot.h"

namespace gpuassay {

class Integrator {
 public:
  // A longer gap between two readings is not integrated: nobody knows what happened in it.
  static constexpr Duration kGapMax = std::chrono::seconds(10);
  // An SM-active share below this is no work: the counters of an idle GPU are not exactly zero.
  static constexpr double kIdleSmActiveRatioMax = 0.001;
  // More than any board draws; an energy counter that rises faster is not believed.
  static constexpr double kPlausiblePowerWattsMax = 10'000;
  // GPUs and MIG instances remembered after they have gone; the longest unseen goes first.
  static constexpr std::size_t kGpuStatesMax = 2 * kGpusMax;
  static constexpr std::size_t kMigStatesMax = 4 * kGpusMax * kMigInstancesMax;

  // `interval`: how often readings come; three of them may lie apart where that is over kGapMax.
  explicit Integrator(Duration interval = std::chrono::seconds(1));
  ~Integrator();

  // `snapshot` must be later than the one before; an earlier or equal time only copies the totals.
  // Counters never go down: a GPU that is lost keeps its totals, driver counters that were reset
  // are bridged, a GPU that is gone for an hour and comes back goes on. A process that has left the
  // list of its GPU frees its entry; a new one with its PID starts at 0. Not thread-safe.
  void Apply(Snapshot& snapshot);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
