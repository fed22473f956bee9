#include "sim/engine/engine.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "sim/engine/device.h"

namespace gpuassay::sim {
namespace {

// Calls that the real driver refuses to ordinary users in some set-up: profiling counters, other
// users' processes, events.
constexpr std::array<std::string_view, 6> kPrivileged = {"nvmlGpmSampleGet",
                                                         "nvmlGpmMigSampleGet",
                                                         "nvmlDeviceGetProcessUtilization",
                                                         "nvmlDeviceGetProcessesUtilizationInfo",
                                                         "nvmlDeviceRegisterEvents",
                                                         "nvmlDeviceGetAccountingStats"};

}  // namespace

struct Engine::Impl {
  Scenario scenario;
  std::uint64_t tick = 0;
  std::vector<Device> devices;
  std::vector<DeviceState> states;
};

Engine::Engine(Scenario scenario) : impl_(std::make_unique<Impl>()) {
  impl_->scenario = std::move(scenario);
  const auto count = static_cast<std::uint32_t>(impl_->scenario.gpus.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    impl_->devices.emplace_back(impl_->scenario, i);
    impl_->states.push_back(impl_->devices.back().Start());
  }
}

Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::AdvanceTo(Duration t) {
  while (TickTime(impl_->tick + 1) <= t) {
    ++impl_->tick;
    for (std::size_t i = 0; i < impl_->devices.size(); ++i) {
      impl_->devices[i].Advance(impl_->tick, impl_->states[i]);
    }
  }
}

Duration Engine::now() const { return TickTime(impl_->tick); }

const Scenario& Engine::scenario() const { return impl_->scenario; }

const std::vector<DeviceState>& Engine::devices() const { return impl_->states; }

std::vector<DeviceEvent> Engine::EventsAfter(std::uint32_t device, Duration after) const {
  Check(device < impl_->devices.size(), "device index");
  std::vector<DeviceEvent> out;
  for (const DeviceEvent& event : impl_->devices[device].events()) {
    if (event.at > after) {
      out.push_back(event);
    }
  }
  return out;
}

std::optional<Duration> Engine::HangEnd(Duration t, std::optional<std::uint32_t> device) const {
  std::optional<Duration> end;
  for (const Fault& fault : impl_->scenario.faults) {
    const bool concerns = !fault.gpu || (device && *fault.gpu == *device);
    if (fault.kind == FaultKind::kDriverHang && concerns && LastsAt(fault, t)) {
      end = std::max(end.value_or(EndOf(fault)), EndOf(fault));
    }
  }
  return end;
}

bool Engine::VersionMismatch(Duration t, Duration initialized_at) const {
  return std::ranges::any_of(impl_->scenario.faults, [&](const Fault& fault) {
    return fault.kind == FaultKind::kVersionMismatch && LastsAt(fault, t) &&
           initialized_at < fault.at;
  });
}

bool Engine::PermissionDenied(Duration t, std::string_view function) const {
  return std::ranges::any_of(impl_->scenario.faults, [&](const Fault& fault) {
    if (fault.kind != FaultKind::kPermissionDenied || !LastsAt(fault, t)) {
      return false;
    }
    return fault.functions.empty()
               ? std::ranges::find(kPrivileged, function) != kPrivileged.end()
               : std::ranges::find(fault.functions, function) != fault.functions.end();
  });
}

}  // namespace gpuassay::sim
