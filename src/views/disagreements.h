// Compares the views with each other. Private to src/views.
#pragma once

#include "views/views.h"

namespace gpuassay {

// Fills the disagreements of devices, pods and the node; everything else of `views` is there.
void FindDisagreements(const Snapshot& snapshot, Views& views);

}  // namespace gpuassay
