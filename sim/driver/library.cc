// libnvidia-ml.so.1: installs the scenario of the environment when the library is loaded, and makes
// the functions missing that the scenario's driver does not have.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sim/driver/core.h"
#include "sim/driver/real_time.h"
#include "sim/driver/symbols.h"

namespace gpuassay::sim {
namespace {

constexpr double kSpeedMax = 1e6;

// A number from the environment; `otherwise` when it is not set.
Result<double> Number(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    return otherwise;
  }
  const std::string_view all = text;
  double value = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error != std::errc() || end != all.data() + all.size() || !std::isfinite(value)) {
    return Fail(ErrorCode::kMalformed, fmt::format("{}={}: not a number", variable, all));
  }
  return value;
}

struct Settings {
  std::string scenario;
  double speed = 1;
  std::optional<WallTime> start;
};

Result<Settings> ReadEnvironment() {
  Settings settings;
  const char* scenario = std::getenv("GPUASSAY_SIM_SCENARIO");
  if (scenario == nullptr || *scenario == '\0') {
    return Fail(ErrorCode::kNotFound,
                "GPUASSAY_SIM_SCENARIO is not set: it names the scenario file to simulate");
  }
  settings.scenario = scenario;
  const Result<double> speed = Number("GPUASSAY_SIM_SPEED", 1);
  if (!speed) {
    return std::unexpected(speed.error());
  }
  if (*speed <= 0 || *speed > kSpeedMax) {
    return Fail(
        ErrorCode::kMalformed,
        fmt::format("GPUASSAY_SIM_SPEED={}: want a factor above 0, to {}", *speed, kSpeedMax));
  }
  settings.speed = *speed;
  constexpr double kNotSet = -1;
  const Result<double> start = Number("GPUASSAY_SIM_START", kNotSet);
  if (!start) {
    return std::unexpected(start.error());
  }
  if (*start >= 0) {
    settings.start = WallTime(Duration(static_cast<Duration::rep>(*start * 1e6)));
  }
  return settings;
}

Result<DriverVersion> InstallFromEnvironment() {
  const Result<Settings> settings = ReadEnvironment();
  if (!settings) {
    return std::unexpected(settings.error());
  }
  Result<Scenario> scenario = LoadScenario(settings->scenario);
  if (!scenario) {
    return std::unexpected(scenario.error());
  }
  DriverVersion version = scenario->driver;
  // Never destroyed: calls may still wait in it when the process ends.
  TimeSource* time = MakeRealTime(settings->speed, settings->start).release();
  Install(Engine(std::move(*scenario)), *time);
  return version;
}

[[gnu::constructor]] void Load() {
  const Result<DriverVersion> version = InstallFromEnvironment();
  if (!version) {
    SetLoadError(fmt::format("simulated NVIDIA driver: {}", version.error().what));
    return;
  }
  HideSymbols(reinterpret_cast<const void*>(&Load), [&](std::string_view name) {
    return IntroducedIn(name).value_or(0) > version->major;
  });
}

}  // namespace
}  // namespace gpuassay::sim
