// Integrates on the node what gauges sample (M24): busy seconds, SM-active seconds, joules,
// throttled seconds by reason, held-idle seconds, bytes. Fills the kDerived fields of each snapshot
// and the Xid counts, from consecutive snapshots of one node.
#pragma once

#include <memory>

#include "model/snapshot.h"

namespace gpuassay {

class Integrator {
 public:
  // A longer gap between two readings is not integrated: nobody knows what happened in it.
  static constexpr Duration kGapMax = std::chrono::seconds(10);

  Integrator();
  ~Integrator();

  // `snapshot` must be later than the one before; an earlier or equal time only copies the totals.
  // Counters never go down: a GPU that is lost keeps its totals, driver counters that were reset
  // are bridged, a GPU that is gone for an hour and comes back goes on.
  void Apply(Snapshot& snapshot);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
