#include "base/duration.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace gpuassay {
namespace {

struct Unit {
  std::string_view name;
  double microseconds;
};

constexpr std::array<Unit, 6> kUnits = {{
    {"us", 1},
    {"ms", 1e3},
    {"s", 1e6},
    {"m", 60e6},
    {"h", 3600e6},
    {"d", 86400e6},
}};
constexpr double kLongestUs = 1000 * 86400e6;

std::unexpected<Error> Bad(std::string_view text) {
  return Fail(ErrorCode::kMalformed,
              fmt::format("'{}' is not a duration; write for example 500ms, 1s, 30m or 2h", text));
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text, Duration bare_unit) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return Bad(text);
  const std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  double factor = 0;
  if (suffix.empty()) factor = static_cast<double>(bare_unit.count());
  for (const Unit& unit : kUnits) {
    if (unit.name == suffix) factor = unit.microseconds;
  }
  const double microseconds = number * factor;
  if (factor == 0 || microseconds > kLongestUs) return Bad(text);
  return Duration(std::llround(microseconds));
}

std::string FormatDuration(Duration duration) {
  const Duration::rep us = duration.count();
  constexpr std::array<Unit, 5> kWhole = {
      {{"h", 3600e6}, {"m", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}}};
  for (const Unit& unit : kWhole) {
    const auto size = static_cast<Duration::rep>(unit.microseconds);
    if (us != 0 && us % size == 0) return fmt::format("{}{}", us / size, unit.name);
  }
  return "0s";
}

}  // namespace gpuassay
