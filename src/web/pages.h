// The small pages of the server, as texts. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/snapshot.h"

namespace gpuassay {

// "ok" and a line per source: "nvml: up, read 0.4 s ago". Alive means that this process answers;
// a driver that hangs does not change that.
std::string HealthText(const Snapshot& snapshot, WallTime now);

// The HTML of "/".
std::string_view IndexHtml();

// For 404: the paths there are.
std::string_view PathsText();

}  // namespace gpuassay
