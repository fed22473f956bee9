#include "cli/footnotes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuassay {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 4;

}  // namespace

void Footnotes::Add(Missing reason, std::string_view what, std::uint32_t gpu) {
  const std::string column(what);
  if (std::ranges::find(order_, column) == order_.end()) order_.push_back(column);
  gpus_[reason][column].insert(gpu);
}

std::string Footnotes::Render() const {
  std::string out;
  for (const auto& [reason, columns] : gpus_) {
    // Columns that are missing on the same GPUs share one mention of them.
    std::vector<std::pair<std::set<std::uint32_t>, std::vector<std::string>>> groups;
    for (const std::string& column : order_) {
      const auto found = columns.find(column);
      if (found == columns.end()) continue;
      const auto group =
          std::ranges::find(groups, found->second, [](const auto& entry) { return entry.first; });
      if (group != groups.end()) {
        group->second.push_back(column);
      } else {
        groups.emplace_back(found->second, std::vector{column});
      }
    }
    std::vector<std::string> parts;
    for (const auto& [gpus, names] : groups) {
      parts.push_back(fmt::format("{} (GPU {})", fmt::join(names, ", "), Ranges(gpus)));
    }
    std::string name(MissingName(reason));
    std::ranges::replace(name, '_', ' ');
    out +=
        Wrapped(fmt::format("-   {}: {}: {}.", name, fmt::join(parts, "; "), MissingText(reason)),
                kColumns, kIndent);
    out += '\n';
  }
  return out;
}

std::string Ranges(const std::set<std::uint32_t>& numbers) {
  std::string out;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    auto next = std::next(last);
    while (next != numbers.end() && *next == *last + 1) last = next++;
    if (!out.empty()) out += ',';
    out += last == first ? fmt::format("{}", *first) : fmt::format("{}-{}", *first, *last);
    first = next;
  }
  return out;
}

std::string Wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string out;
  std::size_t line = 0;
  while (!text.empty()) {
    const std::size_t word_end = std::min(text.find(' ', text.find_first_not_of(' ')), text.size());
    const std::string_view word = text.substr(0, word_end);  // with the spaces before it
    const std::size_t start = std::min(word.find_first_not_of(' '), word.size());
    if (line > 0 && line + word.size() > columns) {
      out += '\n' + std::string(indent, ' ');
      out += word.substr(start);
      line = indent + word.size() - start;
    } else {
      out += word;
      line += word.size();
    }
    text.remove_prefix(word_end);
  }
  return out;
}

}  // namespace gpuassay
