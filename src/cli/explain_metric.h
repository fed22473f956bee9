// What `gpuassay explain METRIC` and `explain missing` print. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/snapshot.h"

namespace gpuassay {

// `name`: a Prometheus name, a field, or a DCGM name of either version. kMalformed suggests the
// nearest names.
Result<std::string> ExplainMetric(std::string_view name);

// Every missing field by reason, with the GPUs it is missing on, and what the driver library lacks.
std::string ExplainMissing(const Snapshot& snapshot);

// The `count` known names nearest to `name`, nearest first.
std::vector<std::string> NearestNames(std::string_view name, std::size_t count);

}  // namespace gpuassay
