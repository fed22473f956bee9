// JSON of a snapshot: /api/v1/snapshot and `--json`. Field names are those of metrics.def, units
// its own. docs/commands.md describes the keys.
#pragma once

#include <string>

#include "base/clock.h"
#include "model/snapshot.h"

namespace gpuassay {

// One JSON object. A missing number is null, and the reason stands beside it in "missing":
// {"field": "reason"} of the same object. A text the driver does not tell is null too. `indent` <
// 0: one line. Bytes that are no UTF-8 are replaced by U+FFFD.
std::string SnapshotJson(const Snapshot& snapshot, int indent = -1);

// RFC 3339 in UTC with milliseconds: "2026-01-01T00:00:00.000Z".
std::string TimeText(WallTime time);

}  // namespace gpuassay
