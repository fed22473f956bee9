#include "attribution/kubernetes/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace gpuassay {
namespace {

constexpr std::size_t kQuantityBytesMax = 64;

// The powers of ten come as strings of digits would: "1e3" and "1k" are both exactly 1000.
std::optional<double> Suffix(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 16> kSuffixes = {{
      {"", 1.0},
      {"n", 1e-9},
      {"u", 1e-6},
      {"m", 1e-3},
      {"k", 1e3},
      {"M", 1e6},
      {"G", 1e9},
      {"T", 1e12},
      {"P", 1e15},
      {"E", 1e18},
      {"Ki", 1024.0},
      {"Mi", 1048576.0},
      {"Gi", 1073741824.0},
      {"Ti", 0x1p40},
      {"Pi", 0x1p50},
      {"Ei", 0x1p60},
  }};
  for (const auto& [suffix, factor] : kSuffixes) {
    if (text == suffix) return factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> ParseQuantity(std::string_view text) {
  if (text.empty() || text.size() > kQuantityBytesMax) return std::nullopt;
  if (text.front() == '+') text.remove_prefix(1);
  const std::size_t digits = text.find_first_not_of("0123456789.");
  std::string_view number = text.substr(0, digits);
  std::string_view suffix = digits == std::string_view::npos ? "" : text.substr(digits);
  // "1E" is a suffix, "1E3" and "1e3" are exponents.
  if (suffix.size() > 1 && (suffix.front() == 'e' || suffix.front() == 'E') && suffix != "Ei") {
    number = text;
    suffix = "";
  }
  if (number.empty() || number.front() == 'e' || number.front() == 'E') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value,
                                            std::chars_format::general);
  const std::optional<double> factor = Suffix(suffix);
  if (error != std::errc() || end != number.data() + number.size() || !factor) return std::nullopt;
  // Thousandths and less by division: 0.001 has no exact double, 1000 has.
  const double result = *factor < 1 ? value / std::round(1 / *factor) : value * *factor;
  if (!std::isfinite(result) || result < 0) return std::nullopt;
  return result;
}

}  // namespace gpuassay
