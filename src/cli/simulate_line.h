// One line per moment for `gpuassay simulate`: the node as a whole. Pure.
#pragma once

#include <string>

#include "base/clock.h"
#include "model/snapshot.h"

namespace gpuassay {

// Title line, ending in a newline.
std::string SimulateTitle();

// `since_start`: scenario time. Means of the ratios, sums of power, memory and rates, the highest
// temperature; over the GPUs that know them, "-" when none does.
std::string SimulateLine(const Snapshot& snapshot, Duration since_start);

}  // namespace gpuassay
