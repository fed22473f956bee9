#include "cli/table.h"

#include <algorithm>

#include "base/check.h"
#include "base/plain_text.h"

namespace gpuassay {
namespace {

constexpr std::string_view kGap = "  ";

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Characters of UTF-8 text.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !ContinuesCharacter(c); }));
}

std::string CutTo(std::string text, std::size_t width_max) {
  if (Width(text) <= width_max) return text;
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++bytes) {
    if (!ContinuesCharacter(text[bytes]) && ++characters == width_max) break;
  }
  return text.substr(0, bytes) + "~";
}

}  // namespace

std::string Coloured(std::string_view text, Colour colour) {
  const auto in = [text](std::string_view code) {
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  };
  switch (colour) {
    case Colour::kNone:
      break;
    case Colour::kDim:
      return in("2");
    case Colour::kYellow:
      return in("33");
    case Colour::kRed:
      return in("31");
  }
  return std::string(text);
}

void Table::Add(std::vector<Cell> cells) {
  Check(cells.size() == columns_.size(), "a row has as many cells as the table has columns");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].text = CutTo(Printable(std::move(cells[i].text)), columns_[i].width_max);
  }
  rows_.push_back(std::move(cells));
}

std::string Table::Render(bool colour) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i].text));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const auto& text_of, const auto& colour_of) {
    std::string gap;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& text = text_of(i);
      const std::string padding(widths[i] - Width(text), ' ');
      const bool right = columns_[i].align == Align::kRight;
      if (right) gap += padding;
      if (!text.empty()) {
        out += gap + (colour ? Coloured(text, colour_of(i)) : text);
        gap.clear();
      }
      if (!right) gap += padding;
      gap += kGap;
    }
    out += '\n';
  };
  add_line([&](std::size_t i) -> const std::string& { return columns_[i].title; },
           [](std::size_t) { return Colour::kDim; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t i) -> const std::string& { return row[i].text; },
             [&](std::size_t i) { return row[i].colour; });
  }
  return out;
}

}  // namespace gpuassay
