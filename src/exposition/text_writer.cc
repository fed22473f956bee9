#include "exposition/text_writer.h"

#include <array>
#include <charconv>
#include <cmath>

namespace gpuassay {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Bytes of the well-formed UTF-8 character at the start of `text` (RFC 3629: shortest form, no
// surrogates, at most U+10FFFF); 0 when there is none.
std::size_t Utf8Length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;
  if (first >= 0xE0 && first <= 0xEF) length = 3;
  if (first >= 0xF0 && first <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_large = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

// A name without the suffix that OpenMetrics adds to the samples of the family.
std::string_view FamilyName(std::string_view name, MetricType type) {
  const std::string_view suffix = type == MetricType::kCounter ? "_total"
                                  : type == MetricType::kInfo  ? "_info"
                                                               : "";
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

std::string_view TypeText(std::string_view name, MetricType type, TextFormat format) {
  if (type == MetricType::kGauge) return "gauge";
  if (type == MetricType::kInfo) return format == TextFormat::kOpenMetrics ? "info" : "gauge";
  if (format == TextFormat::kPrometheus || name.ends_with("_total")) return "counter";
  return "unknown";
}

}  // namespace

void AppendEscaped(std::string& out, std::string_view value, std::size_t bytes_max) {
  std::size_t used = 0;
  while (!value.empty()) {
    const std::size_t length = Utf8Length(value);
    const std::size_t step = length == 0 ? 1 : length;
    if (used + step > bytes_max) return;
    const char byte = value[0];
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\\' || byte == '"') {
      out += '\\';
      out += byte;
    } else if (length == 0 || (static_cast<unsigned char>(byte) < 0x20) || byte == 0x7F) {
      out += kReplacement;
    } else {
      out += value.substr(0, length);
    }
    used += step;
    value.remove_prefix(step);
  }
}

void AppendLabel(std::string& out, std::string_view key, std::string_view value,
                 std::size_t bytes_max) {
  if (!out.empty()) out += ',';
  out += key;
  out += "=\"";
  AppendEscaped(out, value, bytes_max);
  out += '"';
}

void AppendLabel(std::string& out, std::string_view key, std::uint64_t value) {
  std::array<char, 24> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  AppendLabel(out, key, std::string_view(digits.data(), result.ptr));
}

void AppendNumber(std::string& out, double value) {
  constexpr double kWholeMax = 1e15;
  std::array<char, 32> digits;
  char* const end = digits.data() + digits.size();
  const bool whole = std::abs(value) < kWholeMax && std::trunc(value) == value;
  const auto result = whole ? std::to_chars(digits.data(), end, static_cast<std::int64_t>(value))
                            : std::to_chars(digits.data(), end, value);
  out.append(digits.data(), result.ptr);
}

void TextWriter::Family(std::string_view name, MetricType type, std::string_view unit,
                        std::string_view help) {
  name_ = name;
  type_ = type;
  unit_ = unit;
  help_ = help;
  header_written_ = false;
}

void TextWriter::Sample(std::string_view labels, std::string_view more, double value) {
  if (!std::isfinite(value)) return;
  Begin(labels, more);
  AppendNumber(out_, value);
  out_ += '\n';
}

void TextWriter::SampleText(std::string_view labels, std::string_view more,
                            std::string_view value) {
  Begin(labels, more);
  out_ += value;
  out_ += '\n';
}

void TextWriter::Begin(std::string_view labels, std::string_view more) {
  if (!header_written_) Header();
  out_ += name_;
  if (!labels.empty() || !more.empty()) {
    out_ += '{';
    out_ += labels;
    if (!labels.empty() && !more.empty()) out_ += ',';
    out_ += more;
    out_ += '}';
  }
  out_ += ' ';
}

void TextWriter::Header() {
  header_written_ = true;
  const bool open_metrics = format_ == TextFormat::kOpenMetrics;
  const std::string_view type = TypeText(name_, type_, format_);
  const std::string_view family = open_metrics ? FamilyName(name_, type_) : name_;
  out_ += "# HELP ";
  out_ += family;
  out_ += ' ';
  HelpText();
  out_ += "\n# TYPE ";
  out_ += family;
  out_ += ' ';
  out_ += type;
  out_ += '\n';
  const bool named_by_unit = !unit_.empty() && family.size() > unit_.size() &&
                             family.ends_with(unit_) &&
                             family[family.size() - unit_.size() - 1] == '_';
  if (open_metrics && named_by_unit) {
    out_ += "# UNIT ";
    out_ += family;
    out_ += ' ';
    out_ += unit_;
    out_ += '\n';
  }
}

void TextWriter::HelpText() {
  for (const char byte : help_) {
    if (byte == '\n') {
      out_ += "\\n";
    } else if (byte == '\\' || (byte == '"' && format_ == TextFormat::kOpenMetrics)) {
      out_ += '\\';
      out_ += byte;
    } else {
      out_ += byte;
    }
  }
}

}  // namespace gpuassay
