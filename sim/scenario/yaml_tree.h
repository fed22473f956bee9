// A YAML document as a plain tree that knows where each node stands. Stricter than YAML: one
// document, no anchors, aliases or tags, no duplicate keys, keys are scalars; and bounded in bytes,
// nodes and depth, so that no input costs more than its size.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuassay::sim {

inline constexpr std::size_t kYamlBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kYamlNodesMax = 200'000;
inline constexpr std::size_t kYamlDepthMax = 16;

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  std::string text;             // kScalar
  std::vector<YamlNode> items;  // kSequence: the items; kMap: key, value, key, value ...
  int line = 1, column = 1;     // of the node's first character, counted from 1
};

// "FILE:LINE:COLUMN: text" with everything in one line.
std::string PlaceMessage(std::string_view file, int line, int column, std::string_view text);

// An empty document is a null node. kMalformed with place otherwise.
Result<YamlNode> ParseYamlTree(std::string_view yaml, std::string_view file);

}  // namespace gpuassay::sim
