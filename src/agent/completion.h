// What is added to each reading of a source before anybody sees it, in this order: who the
// processes belong to (join), the integrals (counters), the shares (ledger).
#pragma once

#include <memory>

#include "agent/node_join.h"
#include "attribution/split/ledger.h"
#include "base/clock.h"
#include "counters/integrator.h"
#include "model/snapshot.h"

namespace gpuassay {

// Not thread-safe. The snapshots of one node, in the order of time.
class Completion {
 public:
  // `interval`: how often readings come. `join`: null when nothing of the node is to be read.
  explicit Completion(Duration interval = std::chrono::seconds(1),
                      std::unique_ptr<NodeJoin> join = nullptr);

  // The source begins anew (another driver worker): so does a simulated node around it.
  void SourceStarts();
  void Apply(Snapshot& snapshot);
  // The first step alone, for recordings: whoever replays them makes the others.
  void Join(Snapshot& snapshot);

 private:
  std::unique_ptr<NodeJoin> join_;
  Integrator integrator_;
  OwnerLedger ledger_;
};

}  // namespace gpuassay
