// Writes Prometheus text 0.0.4 and OpenMetrics 1.0.0 into one string: families, labels, numbers,
// escaping. Facts: prometheus.io "Exposition formats", openmetrics.io specification 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "exposition/exposition.h"

namespace gpuassay {

// Longest label value; the rest is cut at a character boundary.
inline constexpr std::size_t kLabelBytesMax = 256;

// Appends `value` for use between the quotes of a label: at most `bytes_max` bytes of it,
// backslash, quote and newline escaped, invalid UTF-8 and other control characters as U+FFFD.
void AppendEscaped(std::string& out, std::string_view value,
                   std::size_t bytes_max = kLabelBytesMax);

// Appends `key="value"`, with a comma before it when `out` is not empty.
void AppendLabel(std::string& out, std::string_view key, std::string_view value,
                 std::size_t bytes_max = kLabelBytesMax);
void AppendLabel(std::string& out, std::string_view key, std::uint64_t value);

// The shortest text that reads back as the same double; whole numbers in full up to 10^15.
void AppendNumber(std::string& out, double value);

enum class MetricType { kGauge, kCounter, kInfo };

class TextWriter {
 public:
  // Appends to `out`, which outlives the writer.
  TextWriter(TextFormat format, std::string& out) : format_(format), out_(out) {}

  // Begins a family. `name` is the name of its samples: a counter's ends in _total, an info's in
  // _info. The header appears with the first sample, so a family without samples leaves no trace.
  // OpenMetrics: a counter that is not called _total (names we do not choose) becomes "unknown",
  // and the unit is only told when the name ends in it.
  void Family(std::string_view name, MetricType type, std::string_view unit, std::string_view help);

  // One sample of the family: `labels` and `more` are texts from AppendLabel, either may be empty.
  // Values that are not finite are left out.
  void Sample(std::string_view labels, std::string_view more, double value);
  // The same with the value as text.
  void SampleText(std::string_view labels, std::string_view more, std::string_view value);

  TextFormat format() const { return format_; }

 private:
  void Header();
  void HelpText();
  void Begin(std::string_view labels, std::string_view more);

  TextFormat format_;
  std::string& out_;
  std::string_view name_;
  std::string_view unit_;
  std::string_view help_;
  MetricType type_ = MetricType::kGauge;
  bool header_written_ = false;
};

}  // namespace gpuassay
