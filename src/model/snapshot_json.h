// JSON of a snapshot: /api/v1/snapshot and `--json`. Field names are those of metrics.def, units
// its own.
#pragma once

#include <string>

#include "model/snapshot.h"

namespace gpuassay {

// One JSON object. A missing number is null, and the reason stands beside it in "missing":
// {"field": "reason"} of the same object. `indent` < 0: one line.
std::string SnapshotJson(const Snapshot& snapshot, int indent = -1);

}  // namespace gpuassay
