#include "cli/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/duration.h"

namespace gpuassay {

Result<Duration> DurationOption(std::string_view option, const std::string& text, Duration min,
                                Duration max) {
  const Result<Duration> duration = ParseDuration(text);
  if (!duration) {
    return Fail(ErrorCode::kMalformed, fmt::format("{}: {}", option, duration.error().what));
  }
  if (*duration < min || *duration > max) {
    return Fail(ErrorCode::kMalformed, fmt::format("{}: '{}' is not between {} and {}", option,
                                                   text, FormatDuration(min), FormatDuration(max)));
  }
  return *duration;
}

bool WantsColour(int fd) {
  // https://no-color.org: set and not empty.
  const char* const no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  return isatty(fd) == 1;
}

}  // namespace gpuassay
