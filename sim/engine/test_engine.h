// For tests: an engine of a scenario text or of a story that comes along, and its state at a time.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sim/engine/engine.h"

namespace gpuassay::sim {

inline constexpr std::uint64_t kMiB = 1024 * 1024;

inline Engine Make(std::string_view yaml) {
  Result<Scenario> scenario = ParseScenario(yaml, "test.yaml");
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().what);
  return Engine(std::move(*scenario));
}

inline Engine Story(const std::string& name) {
  Result<Scenario> scenario = LoadScenario(GPUASSAY_SOURCE_DIR "/sim/scenarios/" + name + ".yaml");
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().what);
  return Engine(std::move(*scenario));
}

inline const DeviceState& At(Engine& engine, Duration t, std::size_t device = 0) {
  engine.AdvanceTo(t);
  return engine.devices().at(device);
}

}  // namespace gpuassay::sim
