#include "views/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/plain_text.h"
#include "views/owner_text.h"

namespace gpuassay {
namespace {

std::string WithUnit(const Reading& reading, double scale, std::string_view unit) {
  if (!reading) return std::string(MissingName(reading.missing()));
  return fmt::format("{} {}", NumberText(*reading * scale), unit);
}

// Characters, as far as a terminal takes one column for each.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string NumberText(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3g}", value);
}

std::string PercentText(const Reading& ratio) { return WithUnit(ratio, 100, "%"); }
std::string MebibytesText(const Reading& bytes) {
  return bytes ? MebibytesText(*bytes) : std::string(MissingName(bytes.missing()));
}
std::string WattsText(const Reading& watts) { return WithUnit(watts, 1, "W"); }
std::string JoulesText(const Reading& joules) { return WithUnit(joules, 1, "J"); }
std::string SecondsText(const Reading& seconds) { return WithUnit(seconds, 1, "s"); }

std::string CountText(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ColumnsText(const std::vector<std::vector<std::string>>& lines,
                        std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], Width(line[i]));
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text(indent);
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += Printable(line[i]);
      text.append(widths[i] - Width(line[i]) + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

}  // namespace gpuassay
