// JSON of the views: /api/v1/views and `gpuassay views --json`.
//   {"time", "hostname", "allocations_known", "resources": [], "devices": [], "pods": [],
//   "disagreements": []}
// A device has "hardware", "scheduler" and "process"; a pod names the devices of its units by UUID,
// and a device the pods of its allocations, so both directions can be followed.
#pragma once

#include <string>

#include "views/views.h"

namespace gpuassay {

// One JSON object. A missing number is null, and the reason stands beside it in "missing":
// {"field": "reason"} of the same object. A text that nobody told is null too. `indent` < 0: one
// line. Bytes that are no UTF-8 are replaced by U+FFFD.
std::string ViewsJson(const Views& views, int indent = -1);
std::string ViewsJson(const Snapshot& snapshot, int indent = -1);

}  // namespace gpuassay
