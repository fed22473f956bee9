// Which of our two formats a client wants.
#pragma once

#include <string_view>

#include "exposition/exposition.h"

namespace gpuassay {

// From the `Accept` header (RFC 9110, 12.5.1), empty when there is none. OpenMetrics only when the
// client names it, in version 1.0.0 or without a version, and wants it at least as much as text.
// A header that accepts neither, or cannot be read, gets text: an answer is better than a 406.
TextFormat ChooseFormat(std::string_view accept);

}  // namespace gpuassay
