// Scenario files: any bytes are either a scenario or one line with the place of what is wrong; and
// a scenario that was accepted runs.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/engine/engine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto scenario = gpuassay::sim::ParseScenario(text, "fuzz.yaml");
  if (!scenario) {
    const std::string& what = scenario.error().what;
    const bool one_line = what.find('\n') == std::string::npos && what.starts_with("fuzz.yaml:");
    if (!one_line || scenario.error().code != gpuassay::ErrorCode::kMalformed) {
      std::abort();
    }
    return 0;
  }
  gpuassay::sim::Engine engine(std::move(*scenario));
  engine.AdvanceTo(std::chrono::seconds(3));
  return 0;
}
