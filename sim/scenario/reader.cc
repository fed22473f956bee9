#include "sim/scenario/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/duration.h"
#include "base/plain_text.h"

namespace gpuassay::sim {
namespace {

using Unit = std::pair<std::string_view, double>;

constexpr std::array<Unit, 10> kByteUnits = {{{"", 1},
                                              {"B", 1},
                                              {"kB", 1e3},
                                              {"MB", 1e6},
                                              {"GB", 1e9},
                                              {"TB", 1e12},
                                              {"KiB", 1024.0},
                                              {"MiB", 1048576.0},
                                              {"GiB", 1073741824.0},
                                              {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 8> kByteRateUnits = {{{"B/s", 1},
                                                 {"kB/s", 1e3},
                                                 {"MB/s", 1e6},
                                                 {"GB/s", 1e9},
                                                 {"KiB/s", 1024.0},
                                                 {"MiB/s", 1048576.0},
                                                 {"GiB/s", 1073741824.0},
                                                 {"", 1}}};
constexpr std::array<Unit, 4> kRateUnits = {
    {{"", 1}, {"/s", 1}, {"/min", 1.0 / 60}, {"/h", 1.0 / 3600}}};
constexpr std::array<Unit, 5> kKernelUnits = {
    {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<Unit, 3> kCelsiusUnits = {{{"", 1}, {"C", 1}, {"°C", 1}}};
constexpr std::array<Unit, 3> kWattUnits = {{{"", 1}, {"W", 1}, {"kW", 1000}}};
constexpr std::array<Unit, 3> kClockUnits = {{{"", 1}, {"MHz", 1}, {"GHz", 1000}}};
constexpr std::array<Unit, 2> kRatioUnits = {{{"", 1}, {"%", 0.01}}};

constexpr std::size_t kQuoteMax = 60;  // longest piece of input that a message repeats

std::string Quote(std::string_view text) {
  return text.size() <= kQuoteMax ? std::string(text)
                                  : std::string(text.substr(0, kQuoteMax)) + "...";
}

std::string_view KindName(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a mapping";
  }
  return "something else";
}

// Levenshtein distance; words are short.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

std::optional<std::uint64_t> ParseWhole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string_view NearestWord(std::string_view word, std::span<const std::string_view> words) {
  std::string_view best;
  if (word.size() > kQuoteMax) {
    return best;
  }
  constexpr std::size_t kBeginningMin = 3;
  for (const std::string_view candidate : words) {
    if (word.size() >= kBeginningMin && candidate.starts_with(word)) {
      return candidate;
    }
  }
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : words) {
    const std::size_t distance = Distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::optional<Quantity> ParseQuantity(std::string_view text) {
  Quantity quantity;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (failure != std::errc() || !std::isfinite(quantity.number)) {
    return std::nullopt;
  }
  quantity.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  quantity.unit.remove_prefix(std::min(quantity.unit.find_first_not_of(' '), quantity.unit.size()));
  return quantity;
}

void Reader::Reject(const YamlNode& at, std::string_view text) {
  if (!error_) {
    error_ = Error{ErrorCode::kMalformed, PlaceMessage(file_, at.line, at.column, text)};
  }
}

std::string Reader::Text(const YamlNode& node, std::string_view name, std::size_t length_max) {
  if (node.kind != YamlNode::Kind::kScalar || node.text.empty()) {
    Reject(node, fmt::format("`{}` must be a text, not {}", name, KindName(node.kind)));
    return "";
  }
  if (node.text.size() > length_max) {
    Reject(node, fmt::format("`{}` is longer than {} bytes", name, length_max));
    return "";
  }
  // Folded descriptions end with a line break, which is no harm.
  std::string line = OneLine(node.text);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

bool Reader::Flag(const YamlNode& node, std::string_view name) {
  if (node.text == "true" || node.text == "yes" || node.text == "on") {
    return true;
  }
  if (node.text != "false" && node.text != "no" && node.text != "off") {
    Reject(node, fmt::format("`{}` must be true or false, not `{}`", name, Quote(node.text)));
  }
  return false;
}

std::uint64_t Reader::Integer(const YamlNode& node, std::string_view name, std::uint64_t min,
                              std::uint64_t max) {
  const std::optional<std::uint64_t> value = ParseWhole(node.text);
  if (node.kind != YamlNode::Kind::kScalar || !value) {
    Reject(node, fmt::format("`{}` must be a whole number from {} to {}", name, min, max));
    return min;
  }
  if (*value < min || *value > max) {
    Reject(node, fmt::format("`{}` is {}, but must be from {} to {}", name, *value, min, max));
    return min;
  }
  return *value;
}

double Reader::Scaled(const YamlNode& node, std::string_view name, std::string_view example,
                      Range range, std::span<const Unit> units) {
  const std::optional<Quantity> quantity =
      node.kind == YamlNode::Kind::kScalar ? ParseQuantity(node.text) : std::nullopt;
  const auto unit = quantity ? std::ranges::find(units, quantity->unit, &Unit::first) : units.end();
  if (unit == units.end()) {
    Reject(node, fmt::format("`{}` must look like {}, not `{}`", name, example,
                             node.kind == YamlNode::Kind::kScalar ? Quote(node.text)
                                                                  : KindName(node.kind)));
    return range.min;
  }
  const double value = quantity->number * unit->second;
  if (!(value >= range.min && value <= range.max)) {
    Reject(node, fmt::format("`{}` is {:g}, but must be from {:g} to {:g}", name, value, range.min,
                             range.max));
    return range.min;
  }
  return value;
}

double Reader::Ratio(const YamlNode& node, std::string_view name) {
  return Scaled(node, name, "96% or 0.96", {0, 1}, kRatioUnits);
}
double Reader::Bytes(const YamlNode& node, std::string_view name) {
  return Scaled(node, name, "62 GiB or 4234 MiB", {0, 1e15}, kByteUnits);
}
double Reader::BytesPerSecond(const YamlNode& node, std::string_view name) {
  return Scaled(node, name, "20 GB/s", {0, 1e14}, kByteRateUnits);
}
double Reader::PerSecond(const YamlNode& node, std::string_view name) {
  return Scaled(node, name, "1000/s or 6/min", {0, 1e9}, kRateUnits);
}
double Reader::Celsius(const YamlNode& node, std::string_view name, Range range) {
  return Scaled(node, name, "45 or 45 C", range, kCelsiusUnits);
}
double Reader::Watts(const YamlNode& node, std::string_view name, Range range) {
  return Scaled(node, name, "300 W", range, kWattUnits);
}
double Reader::Megahertz(const YamlNode& node, std::string_view name, Range range) {
  return Scaled(node, name, "1200 MHz", range, kClockUnits);
}
double Reader::KernelSeconds(const YamlNode& node, std::string_view name) {
  return Scaled(node, name, "1us, 350 ns or 10ms", {1e-9, 1e5}, kKernelUnits);
}

Duration Reader::Time(const YamlNode& node, std::string_view name, bool zero) {
  std::string text = node.text;
  std::erase(text, ' ');
  const Result<Duration> parsed =
      node.kind == YamlNode::Kind::kScalar
          ? ParseDuration(text)
          : Result<Duration>(Fail(ErrorCode::kMalformed, std::string(KindName(node.kind))));
  if (!parsed) {
    Reject(node, fmt::format("`{}` must be a duration such as 30s, 5m or 250ms, not `{}`", name,
                             node.kind == YamlNode::Kind::kScalar ? Quote(node.text)
                                                                  : parsed.error().what));
    return {};
  }
  if (!zero && *parsed <= Duration::zero()) {
    Reject(node, fmt::format("`{}` must be longer than zero", name));
  }
  return *parsed;
}

std::size_t Reader::Word(const YamlNode& node, std::string_view name,
                         std::span<const std::string_view> words) {
  const auto found = std::ranges::find(words, std::string_view(node.text));
  if (node.kind == YamlNode::Kind::kScalar && found != words.end()) {
    return static_cast<std::size_t>(found - words.begin());
  }
  const std::string_view nearest = NearestWord(node.text, words);
  std::string text = fmt::format("`{}` cannot be `{}`", name, Quote(node.text));
  if (node.kind != YamlNode::Kind::kScalar) {
    text = fmt::format("`{}` must be a word, not {}", name, KindName(node.kind));
  }
  text += nearest.empty() ? fmt::format("; it can be {}", fmt::join(words, ", "))
                          : fmt::format("; did you mean `{}`?", nearest);
  Reject(node, text);
  return 0;
}

std::vector<std::uint32_t> Reader::Indices(const YamlNode& node, std::string_view name,
                                           std::string_view what, std::uint32_t end) {
  std::vector<std::uint32_t> out;
  if (node.kind == YamlNode::Kind::kSequence) {
    for (const YamlNode& item : node.items) {
      AddIndices(item, name, what, end, out);
    }
  } else if (node.text == "all") {
    out.resize(end);
    std::iota(out.begin(), out.end(), 0U);
  } else {
    AddIndices(node, name, what, end, out);
  }
  if (out.empty()) {
    Reject(node, fmt::format("`{}` names no {}; write all, 0, 0-3 or [0, 2]", name, what));
  }
  std::ranges::sort(out);
  const auto same = std::ranges::unique(out);
  out.erase(same.begin(), same.end());
  return out;
}

void Reader::AddIndices(const YamlNode& node, std::string_view name, std::string_view what,
                        std::uint32_t end, std::vector<std::uint32_t>& out) {
  const std::string_view text = node.text;
  const std::size_t dash = text.find('-');
  const std::optional<std::uint64_t> first = ParseWhole(text.substr(0, dash));
  const std::optional<std::uint64_t> last =
      dash == std::string_view::npos ? first : ParseWhole(text.substr(dash + 1));
  if (node.kind != YamlNode::Kind::kScalar || !first || !last || *first > *last) {
    Reject(node, fmt::format("`{}` must be all, 0, 0-3 or [0, 2], not `{}`", name, Quote(text)));
    return;
  }
  if (*last >= end) {
    Reject(node, end == 0 ? fmt::format("there is no {} {}: there are none", what, *last)
                          : fmt::format("there is no {} {}; the last is {}", what, *last, end - 1));
    return;
  }
  for (std::uint64_t i = *first; i <= *last && out.size() <= end; ++i) {
    out.push_back(static_cast<std::uint32_t>(i));
  }
}

MapReader::MapReader(Reader& reader, const YamlNode& node, std::string_view what,
                     std::span<const std::string_view> keys)
    : reader_(reader), node_(node), what_(what) {
  if (node.kind != YamlNode::Kind::kMap) {
    reader.Reject(node, fmt::format("{} must be a mapping, not {}", what, KindName(node.kind)));
    return;
  }
  for (std::size_t i = 0; i < node.items.size(); i += 2) {
    const std::string& key = node.items[i].text;
    if (std::ranges::find(keys, std::string_view(key)) != keys.end()) {
      continue;
    }
    const std::string_view nearest = NearestWord(key, keys);
    reader.Reject(node.items[i],
                  fmt::format("{} has no `{}`; {}", what, Quote(key),
                              nearest.empty() ? fmt::format("it can have {}", fmt::join(keys, ", "))
                                              : fmt::format("did you mean `{}`?", nearest)));
  }
}

const YamlNode* MapReader::Find(std::string_view key) const {
  if (node_.kind != YamlNode::Kind::kMap) {
    return nullptr;
  }
  for (std::size_t i = 0; i + 1 < node_.items.size(); i += 2) {
    if (node_.items[i].text == key) {
      return &node_.items[i + 1];
    }
  }
  return nullptr;
}

const YamlNode* MapReader::Require(std::string_view key) {
  const YamlNode* found = Find(key);
  if (found == nullptr) {
    reader_.Reject(node_, fmt::format("{} needs `{}`", what_, key));
  }
  return found;
}

}  // namespace gpuassay::sim
