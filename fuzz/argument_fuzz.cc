// Texts of the command line: durations, sources, names of DCGM versions. What is accepted must
// survive being written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/source_spec.h"
#include "base/check.h"
#include "base/duration.h"
#include "exposition/exposition.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gpuassay::Check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto duration = gpuassay::ParseDuration(text)) {
    Check(duration->count() >= 0, "no negative duration");
    const auto again = gpuassay::ParseDuration(gpuassay::FormatDuration(*duration));
    Check(again && *again == *duration, "a duration is read as it was written");
  }
  if (const auto spec = gpuassay::ParseSourceSpec(text)) {
    Check(gpuassay::SourceSpecText(*spec) == text, "a source is written as it was read");
  }
  if (gpuassay::ParseDcgmNames(text)) Check(size == 3, "4.8, 4.9 or off");
  return 0;
}
