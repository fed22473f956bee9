// Clocks and the reasons that hold them down.
#include <array>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

struct ClockRange {
  double now_mhz = 0, idle_mhz = 0, max_mhz = 0;
};

// Graphics and SM share a clock. nullopt: no such clock.
std::optional<ClockRange> ClockOf(const DeviceState& gpu, unsigned int type) {
  const GpuModel& model = *gpu.model;
  switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
      return ClockRange{gpu.sm_clock_mhz, model.sm_clock_idle_mhz, model.sm_clock_max_mhz};
    case NVML_CLOCK_MEM:
      return ClockRange{gpu.memory_clock_mhz, model.memory_clock_idle_mhz,
                        model.memory_clock_max_mhz};
    case NVML_CLOCK_VIDEO:
      return ClockRange{gpu.video_clock_mhz, model.video_clock_idle_mhz, model.video_clock_max_mhz};
    default:
      return std::nullopt;
  }
}

// `pick` makes the number out of the clock's range.
template <class Pick>
nvmlReturn_t GiveClock(Function function, nvmlDevice_t device, unsigned int type, unsigned int* mhz,
                       Pick&& pick) {
  return OnGpu(function, device, mhz != nullptr, [&](const DeviceState& gpu) -> nvmlReturn_t {
    const std::optional<ClockRange> clock = ClockOf(gpu, type);
    return clock ? pick(gpu, *clock) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

// Application clocks exist for SM and memory. No scenario sets them, so they are the default: all
// the way up.
nvmlReturn_t ApplicationsClock(Function function, nvmlDevice_t device, unsigned int type,
                               unsigned int* mhz) {
  return GiveClock(
      function, device, type, mhz, [&](const DeviceState& gpu, const ClockRange& clock) {
        const bool has = gpu.model->features.application_clocks && type != NVML_CLOCK_VIDEO;
        return Give(has, mhz, Rounded(clock.max_mhz));
      });
}

nvmlReturn_t EventReasons(Function function, nvmlDevice_t device, unsigned long long* reasons) {
  return OnGpu(function, device, reasons != nullptr, [&](const DeviceState& gpu) {
    return Give(gpu.model->features.clock_event_reasons, reasons, gpu.clock_event_reasons);
  });
}

nvmlReturn_t SupportedEventReasons(Function function, nvmlDevice_t device,
                                   unsigned long long* reasons) {
  return OnGpu(function, device, reasons != nullptr, [&](const DeviceState& gpu) {
    constexpr unsigned long long kAll =
        kReasonIdle | kReasonApplicationClocks | kReasonSoftwarePowerCap | kReasonHardwareSlowdown |
        kReasonSyncBoost | kReasonSoftwareThermal | kReasonHardwareThermal | kReasonPowerBrake;
    return Give(gpu.model->features.clock_event_reasons, reasons, kAll);
  });
}

// A list of NVML: `count` is the room on the way in and the need on the way out.
template <std::size_t N>
nvmlReturn_t GiveList(const std::array<unsigned int, N>& values, unsigned int* count,
                      unsigned int* out) {
  const bool fits = *count >= N && out != nullptr;
  *count = N;
  if (!fits) {
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  std::copy(values.begin(), values.end(), out);
  return NVML_SUCCESS;
}

std::optional<double> ViolationSeconds(const DeviceState& gpu, unsigned int policy) {
  switch (policy) {
    case NVML_PERF_POLICY_POWER:
      return gpu.power_cap_seconds;
    case NVML_PERF_POLICY_THERMAL:
      return gpu.software_thermal_seconds + gpu.hardware_thermal_seconds;
    case NVML_PERF_POLICY_SYNC_BOOST:
      return gpu.sync_boost_seconds;
    case NVML_PERF_POLICY_BOARD_LIMIT:
      return gpu.power_brake_seconds;
    case NVML_PERF_POLICY_LOW_UTILIZATION:
      return gpu.low_utilization_seconds;
    case NVML_PERF_POLICY_RELIABILITY:
      return 0.0;
    default:
      return std::nullopt;
  }
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int* mhz) {
  return GiveClock(Function::nvmlDeviceGetClockInfo, device, type, mhz,
                   [&](const DeviceState&, const ClockRange& clock) {
                     return Give(true, mhz, Rounded(clock.now_mhz));
                   });
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int* mhz) {
  return GiveClock(Function::nvmlDeviceGetMaxClockInfo, device, type, mhz,
                   [&](const DeviceState&, const ClockRange& clock) {
                     return Give(true, mhz, Rounded(clock.max_mhz));
                   });
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned int type, unsigned int which,
                                unsigned int* mhz) {
  return GiveClock(Function::nvmlDeviceGetClock, device, type, mhz,
                   [&](const DeviceState& gpu, const ClockRange& clock) -> nvmlReturn_t {
                     switch (which) {
                       case NVML_CLOCK_ID_CURRENT:
                         return Give(true, mhz, Rounded(clock.now_mhz));
                       case NVML_CLOCK_ID_APP_CLOCK_TARGET:
                       case NVML_CLOCK_ID_APP_CLOCK_DEFAULT:
                         return Give(
                             gpu.model->features.application_clocks && type != NVML_CLOCK_VIDEO,
                             mhz, Rounded(clock.max_mhz));
                       case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX:
                         return Give(type != NVML_CLOCK_VIDEO, mhz, Rounded(clock.max_mhz));
                       default:
                         return NVML_ERROR_INVALID_ARGUMENT;
                     }
                   });
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned int type,
                                            unsigned int* mhz) {
  return ApplicationsClock(Function::nvmlDeviceGetApplicationsClock, device, type, mhz);
}
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, unsigned int type,
                                                   unsigned int* mhz) {
  return ApplicationsClock(Function::nvmlDeviceGetDefaultApplicationsClock, device, type, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, unsigned int type,
                                                unsigned int* mhz) {
  return GiveClock(Function::nvmlDeviceGetMaxCustomerBoostClock, device, type, mhz,
                   [&](const DeviceState&, const ClockRange& clock) {
                     return Give(type != NVML_CLOCK_VIDEO, mhz, Rounded(clock.max_mhz));
                   });
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int* count,
                                                unsigned int* mhz) {
  return OnGpu(Function::nvmlDeviceGetSupportedMemoryClocks, device, count != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (!gpu.model->features.application_clocks) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 const std::array<unsigned int, 1> clocks = {
                     static_cast<unsigned int>(Rounded(gpu.model->memory_clock_max_mhz))};
                 return GiveList(clocks, count, mhz);
               });
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz,
                                                  unsigned int* count, unsigned int* mhz) {
  return OnGpu(Function::nvmlDeviceGetSupportedGraphicsClocks, device, count != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 const GpuModel& model = *gpu.model;
                 if (!model.features.application_clocks) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 if (memory_mhz != Rounded(model.memory_clock_max_mhz)) {
                   return NVML_ERROR_NOT_FOUND;
                 }
                 const std::array<unsigned int, 3> clocks = {
                     static_cast<unsigned int>(Rounded(model.sm_clock_max_mhz)),
                     static_cast<unsigned int>(Rounded(model.sm_clock_base_mhz)),
                     static_cast<unsigned int>(Rounded(model.sm_clock_idle_mhz))};
                 return GiveList(clocks, count, mhz);
               });
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned int* state) {
  return OnGpu(Function::nvmlDeviceGetPerformanceState, device, state != nullptr,
               [&](const DeviceState& gpu) { return Give(true, state, gpu.performance_state); });
}
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned int* state) {
  return OnGpu(Function::nvmlDeviceGetPowerState, device, state != nullptr,
               [&](const DeviceState& gpu) { return Give(true, state, gpu.performance_state); });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons) {
  return EventReasons(Function::nvmlDeviceGetCurrentClocksEventReasons, device, reasons);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long* reasons) {
  return EventReasons(Function::nvmlDeviceGetCurrentClocksThrottleReasons, device, reasons);
}
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long* reasons) {
  return SupportedEventReasons(Function::nvmlDeviceGetSupportedClocksEventReasons, device, reasons);
}
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                         unsigned long long* reasons) {
  return SupportedEventReasons(Function::nvmlDeviceGetSupportedClocksThrottleReasons, device,
                               reasons);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy,
                                          nvmlViolationTime_t* time) {
  return OnGpu(Function::nvmlDeviceGetViolationStatus, device, time != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (policy == NVML_PERF_POLICY_TOTAL_APP_CLOCKS ||
                     policy == NVML_PERF_POLICY_TOTAL_BASE_CLOCKS ||
                     !gpu.model->features.clock_event_reasons) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 const std::optional<double> seconds = ViolationSeconds(gpu, policy);
                 if (!seconds) {
                   return NVML_ERROR_INVALID_ARGUMENT;
                 }
                 const Driver& driver = *InstalledDriver();
                 time->referenceTime = driver.StampUs(driver.engine.now());
                 time->violationTime = Rounded(*seconds * 1e9);
                 return NVML_SUCCESS;
               });
}

}  // extern "C"
