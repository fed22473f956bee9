// Values of command-line options that several commands have.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace gpuassay {

// A duration between `min` and `max`; a bare number is in seconds. kMalformed names the option, the
// text and what is allowed.
Result<Duration> DurationOption(std::string_view option, const std::string& text, Duration min,
                                Duration max = std::chrono::days(1000));

// True when `fd` is a terminal that wants colour (NO_COLOR is not set, TERM is not "dumb").
bool WantsColour(int fd);

}  // namespace gpuassay
