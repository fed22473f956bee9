// Turns tree nodes into values, strictly. The first thing that is wrong is kept with its place, and
// reading goes on with harmless values; so parsers read straight down and ask once at the end.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sim/scenario/yaml_tree.h"

namespace gpuassay::sim {

// The word that begins so, or the nearest to a misspelt one; empty when none is near (more than a
// third of the letters wrong).
std::string_view NearestWord(std::string_view word, std::span<const std::string_view> words);

// "a number" and what may follow it: "62 GiB" is {62, "GiB"}. nullopt when it starts with no finite
// number.
struct Quantity {
  double number = 0;
  std::string_view unit;
};
std::optional<Quantity> ParseQuantity(std::string_view text);

struct Range {
  double min, max;
};

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  bool failed() const { return error_.has_value(); }
  Error error() const { return *error_; }
  // Records an error at a node; only the first is kept.
  void Reject(const YamlNode& at, std::string_view text);

  // `name` is the key, for the message. Limits are inclusive.
  std::string Text(const YamlNode& node, std::string_view name, std::size_t length_max = 200);
  bool Flag(const YamlNode& node, std::string_view name);
  std::uint64_t Integer(const YamlNode& node, std::string_view name, std::uint64_t min,
                        std::uint64_t max);
  double Ratio(const YamlNode& node, std::string_view name);              // "96%", 0.96
  double Bytes(const YamlNode& node, std::string_view name);              // "62 GiB", 1024
  double BytesPerSecond(const YamlNode& node, std::string_view name);     // "400 GB/s"
  double PerSecond(const YamlNode& node, std::string_view name);          // "1000/s", "6/min"
  double Celsius(const YamlNode& node, std::string_view name, Range);     // 45, "45 C"
  double Watts(const YamlNode& node, std::string_view name, Range);       // 300, "300 W"
  double Megahertz(const YamlNode& node, std::string_view name, Range);   // 1200, "1.2 GHz"
  double KernelSeconds(const YamlNode& node, std::string_view name);      // "1us", "350 ns"
  Duration Time(const YamlNode& node, std::string_view name, bool zero);  // "30s"; zero allowed?
  // One of the words; the error names the nearest. Returns its index, 0 when wrong.
  std::size_t Word(const YamlNode& node, std::string_view name,
                   std::span<const std::string_view> words);
  // 3, "0-3", [0, 2-3] or "all", each below `end`; `what` for messages: "GPU".
  std::vector<std::uint32_t> Indices(const YamlNode& node, std::string_view name,
                                     std::string_view what, std::uint32_t end);

 private:
  double Scaled(const YamlNode& node, std::string_view name, std::string_view example, Range range,
                std::span<const std::pair<std::string_view, double>> units);
  void AddIndices(const YamlNode& node, std::string_view name, std::string_view what,
                  std::uint32_t end, std::vector<std::uint32_t>& out);

  std::string file_;
  std::optional<Error> error_;
};

// A mapping with a known set of keys.
class MapReader {
 public:
  // Rejects anything that is no mapping, and unknown keys with the nearest known one. `what` with
  // its article: "a process".
  MapReader(Reader& reader, const YamlNode& node, std::string_view what,
            std::span<const std::string_view> keys);

  // nullptr when absent.
  const YamlNode* Find(std::string_view key) const;
  // Rejects the mapping when the key is absent.
  const YamlNode* Require(std::string_view key);

 private:
  Reader& reader_;
  const YamlNode& node_;
  std::string what_;
};

}  // namespace gpuassay::sim
