#include "agent/source_spec.h"

#include <fmt/format.h>

#include <utility>

#include "sim/scenario/scenario.h"
#include "sources/nvml/nvml_source.h"
#include "sources/replay/recording.h"
#include "sources/simulator/simulator_source.h"

namespace gpuassay {
namespace {

std::string_view KindText(SourceSpec::Kind kind) {
  switch (kind) {
    case SourceSpec::Kind::kNvml:
      return "nvml";
    case SourceSpec::Kind::kSimulator:
      return "simulator";
    case SourceSpec::Kind::kReplay:
      return "replay";
  }
  return "?";
}

}  // namespace

Result<SourceSpec> ParseSourceSpec(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view kind = text.substr(0, equals);
  const std::string argument(equals == text.npos ? "" : text.substr(equals + 1));
  if (kind == "nvml") {
    if (equals != text.npos && argument.empty()) {
      return Fail(ErrorCode::kMalformed, "source 'nvml=': name the library, or write just nvml");
    }
    return SourceSpec{SourceSpec::Kind::kNvml, argument};
  }
  if (kind == "simulator" || kind == "replay") {
    if (argument.empty()) {
      return Fail(ErrorCode::kMalformed,
                  fmt::format("source '{}': name the file, {}=FILE", text, kind));
    }
    return SourceSpec{kind == "replay" ? SourceSpec::Kind::kReplay : SourceSpec::Kind::kSimulator,
                      argument};
  }
  return Fail(
      ErrorCode::kMalformed,
      fmt::format("source '{}' is none of nvml[=LIBRARY], simulator=SCENARIO, replay=FILE", text));
}

std::string SourceSpecText(const SourceSpec& spec) {
  if (spec.argument.empty()) return std::string(KindText(spec.kind));
  return fmt::format("{}={}", KindText(spec.kind), spec.argument);
}

Result<std::unique_ptr<Source>> OpenSource(const SourceSpec& spec, const SourceContext& context) {
  switch (spec.kind) {
    case SourceSpec::Kind::kNvml: {
      NvmlOptions options;
      if (!spec.argument.empty()) options.library = spec.argument;
      options.hostname = context.hostname;
      options.clock = &context.clock;
      options.gpus_to_skip = context.gpus_to_skip;
      options.watch = context.watch;
      return OpenNvml(std::move(options));
    }
    case SourceSpec::Kind::kSimulator: {
      Result<sim::Scenario> scenario = sim::LoadScenario(spec.argument);
      if (!scenario) return std::unexpected(scenario.error());
      return MakeRealTimeSimulator(std::move(*scenario), context.clock, context.simulator_speed,
                                   context.hostname);
    }
    case SourceSpec::Kind::kReplay:
      return OpenReplay(
          spec.argument,
          context.replay_as_fast_as_read ? ReplayPace::kAsFastAsRead : ReplayPace::kRecorded,
          context.clock);
  }
  return Fail(ErrorCode::kUnsupported, "unknown kind of source");
}

}  // namespace gpuassay
