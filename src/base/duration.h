// Durations as people write them: "250ms", "1s", "30m", "1.5h", "2d".
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace gpuassay {

// Units us, ms, s, m, h, d; a bare number is in `bare_unit`. kMalformed for anything else, for
// negative durations and for more than 1000 days. The message names the text and shows an example.
Result<Duration> ParseDuration(std::string_view text, Duration bare_unit = std::chrono::seconds(1));

// Shortest exact form: "250ms", "90s", "2m", "1h".
std::string FormatDuration(Duration duration);

}  // namespace gpuassay
