#include "web/accept.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace gpuassay {
namespace {

std::string_view Trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Takes the part up to `separator` off the front, outside of quoted strings.
std::string_view TakePart(std::string_view& text, char separator) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (text[end] == '"') quoted = !quoted;
    if (quoted && text[end] == '\\') ++end;
    if (!quoted && text[end] == separator) break;
  }
  end = std::min(end, text.size());
  const std::string_view part = Trim(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

char Lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

// "0.5"; anything unreadable counts as not wanted.
double ParseWeight(std::string_view text) {
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  const bool readable = error == std::errc() && end == text.data() + text.size();
  return readable && weight >= 0 && weight <= 1 ? weight : 0;
}

struct MediaRange {
  std::string_view type;
  std::string_view version;  // empty when there is none
  double weight = 1;
};

MediaRange ParseMediaRange(std::string_view text) {
  MediaRange range;
  range.type = TakePart(text, ';');
  while (!text.empty()) {
    const std::string_view parameter = TakePart(text, ';');
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = Trim(parameter.substr(0, equals));
    std::string_view value = Trim(parameter.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    if (EqualIgnoringCase(key, "q")) range.weight = ParseWeight(value);
    if (EqualIgnoringCase(key, "version")) range.version = value;
  }
  return range;
}

// How much text is wanted: by the most specific range that covers it.
struct TextWish {
  double weight = 0;
  int precision = 0;

  void Consider(const MediaRange& range) {
    int range_precision = 0;
    if (range.type == "*/*") range_precision = 1;
    if (EqualIgnoringCase(range.type, "text/*")) range_precision = 2;
    if (EqualIgnoringCase(range.type, "text/plain")) {
      if (range.version.empty()) range_precision = 3;
      if (range.version == "0.0.4") range_precision = 4;
    }
    if (range_precision == 0 || range_precision < precision) return;
    weight = range_precision == precision ? std::max(weight, range.weight) : range.weight;
    precision = range_precision;
  }
};

}  // namespace

TextFormat ChooseFormat(std::string_view accept) {
  TextWish text;
  double open_metrics = 0;
  while (!accept.empty()) {
    const MediaRange range = ParseMediaRange(TakePart(accept, ','));
    text.Consider(range);
    const bool named = EqualIgnoringCase(range.type, "application/openmetrics-text");
    if (named && (range.version.empty() || range.version == "1.0.0")) {
      open_metrics = std::max(open_metrics, range.weight);
    }
  }
  return open_metrics > 0 && open_metrics >= text.weight ? TextFormat::kOpenMetrics
                                                         : TextFormat::kPrometheus;
}

}  // namespace gpuassay
