// What happens to readings that can no longer be renewed.
#pragma once

#include "model/snapshot.h"

namespace gpuassay {

// Every measured reading of GPUs, links, MIG instances and processes becomes missing for `reason`;
// identities and counters (which are sums of the past and stay true) are kept; `up` becomes 0.
void MarkReadingsMissing(Snapshot& snapshot, Missing reason);

}  // namespace gpuassay
