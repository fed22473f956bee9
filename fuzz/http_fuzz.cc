// What the HTTP side reads from strangers: Accept headers, addresses, names that become labels, and
// the text of /proc. The input is one text, given to each.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "exposition/exposition.h"
#include "exposition/text_writer.h"
#include "web/accept.h"
#include "web/address.h"

namespace {

using gpuassay::Check;

// A label value must stay between its quotes, on its line, within its bound.
void CheckEscaped(std::string_view value) {
  std::string out;
  gpuassay::AppendEscaped(out, value);
  constexpr std::size_t kGrowthMax = 3;  // one bad byte becomes the three of U+FFFD
  Check(out.size() <= gpuassay::kLabelBytesMax * kGrowthMax, "an escaped label is bounded");
  for (std::size_t i = 0; i < out.size(); ++i) {
    Check(static_cast<unsigned char>(out[i]) >= 0x20, "no control character in a label");
    if (out[i] == '\\') {
      ++i;
      Check(i < out.size() && std::string_view("\\\"n").find(out[i]) != std::string_view::npos,
            "every backslash escapes something");
    } else {
      Check(out[i] != '"', "no quote ends a label early");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kNameBytes = std::string_view("application/openmetrics-text").size();
  if (gpuassay::ChooseFormat(text) == gpuassay::TextFormat::kOpenMetrics) {
    Check(size >= kNameBytes, "OpenMetrics has to be asked for by name");
  }
  const auto address = gpuassay::ParseAddress(text);
  if (!address) {
    Check(address.error().code == gpuassay::ErrorCode::kMalformed, "a bad address is bad input");
  }
  CheckEscaped(text);
  const std::size_t half = size / 2;
  const auto usage =
      gpuassay::ParseProcessUsage(text.substr(0, half), text.substr(half), 100, 4096);
  if (usage) Check(usage->cpu_seconds >= 0, "CPU time is not negative");
  return 0;
}
