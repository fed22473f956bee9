// Why a table shows "-": one line per reason, collected while the table is made.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/reading.h"

namespace gpuassay {

class Footnotes {
 public:
  // `what`: the column, as in the table's title.
  void Add(Missing reason, std::string_view what, std::uint32_t gpu);

  // "-  not supported: tensor, DRAM (GPU 0-7): this GPU model ...", broken at 100 columns; empty
  // when nothing is missing.
  std::string Render() const;

 private:
  // GPUs by reason and column; columns in the order of their first use.
  std::map<Missing, std::map<std::string, std::set<std::uint32_t>>> gpus_;
  std::vector<std::string> order_;
};

// "0-3,5" of {0, 1, 2, 3, 5}.
std::string Ranges(const std::set<std::uint32_t>& numbers);

// Breaks at spaces so that no line is longer than `columns`; later lines begin with `indent`
// spaces.
std::string Wrapped(std::string_view text, std::size_t columns, std::size_t indent);

}  // namespace gpuassay
