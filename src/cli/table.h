// Tables of text for a terminal: columns as wide as their widest cell, two spaces between them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuassay {

enum class Colour { kNone, kDim, kYellow, kRed };

struct Cell {
  std::string text;
  Colour colour = Colour::kNone;
};

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    std::size_t width_max = 100;  // a longer text is cut and ends in "~"
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns. Control characters are shown as "?": names come from outside.
  void Add(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }

  // Title line and rows, each ending in a newline, without spaces at the end.
  std::string Render(bool colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// `text` in that colour, by ANSI escapes.
std::string Coloured(std::string_view text, Colour colour);

}  // namespace gpuassay
