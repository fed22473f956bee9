// `--source` everywhere a source can be: nvml[=LIBRARY], simulator=SCENARIO, replay=FILE.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sources/source.h"

namespace gpuassay {

class CallWatch;

struct SourceSpec {
  enum class Kind { kNvml, kSimulator, kReplay };
  Kind kind = Kind::kNvml;
  std::string argument;  // library, scenario or file; empty for the default library
};

// kMalformed with what is allowed.
Result<SourceSpec> ParseSourceSpec(std::string_view text);
std::string SourceSpecText(const SourceSpec& spec);

struct SourceContext {
  const Clock& clock;
  std::string hostname;
  double simulator_speed = 1;
  bool replay_as_fast_as_read = false;
  // Only for nvml, see NvmlOptions.
  std::vector<std::uint32_t> gpus_to_skip = {};
  CallWatch* watch = nullptr;
};

// Opens a source for use in this process (the agent opens it in its driver worker).
Result<std::unique_ptr<Source>> OpenSource(const SourceSpec& spec, const SourceContext& context);

}  // namespace gpuassay
