// The views for a person: `gpuassay views`.
#pragma once

#include <string>

#include "views/views.h"

namespace gpuassay {

// Of each device what the hardware does, what the scheduler handed out and which processes run,
// side by side; of each pod its devices; then the disagreements, one line each. A missing number is
// the name of its reason, never 0. `colour`: disagreements stand out.
std::string ViewsText(const Views& views, bool colour);

}  // namespace gpuassay
