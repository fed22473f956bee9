// Where the scenarios that come with gpuassay are.
#pragma once

#include <string>

#include "base/result.h"

namespace gpuassay {

// `name_or_path`: a file, or the name of a scenario that comes with gpuassay ("demo"). Those lie
// beside the program: ../../sim/scenarios in a checkout's build/bin, ../share/gpuassay/scenarios
// when installed. kMalformed when there is neither; the message lists the names.
Result<std::string> FindScenario(const std::string& name_or_path);

}  // namespace gpuassay
