#include "sources/nvml/readings.h"

#include <cmath>
#include <iterator>

#include "sources/nvml/mig.h"

namespace gpuassay {
namespace {

using enum NvmlFunction;

constexpr double kMegahertz = 1e6;
constexpr double kMilli = 1e-3;
constexpr double kNano = 1e-9;

struct FieldRow {
  unsigned int id;
  Reading GpuReadings::*member;
  double unit;
};

constexpr FieldRow kFastRows[] = {
    {NVML_FI_DEV_POWER_INSTANT, &GpuReadings::power_instant_watts, kMilli},
    {NVML_FI_DEV_MEMORY_TEMP, &GpuReadings::memory_temperature_celsius, 1},
    {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, &GpuReadings::driver_energy_joules, kMilli},
    {NVML_FI_DEV_PERF_POLICY_POWER, &GpuReadings::driver_throttled_power_seconds, kNano},
    {NVML_FI_DEV_PERF_POLICY_THERMAL, &GpuReadings::driver_throttled_thermal_seconds, kNano},
    {NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, &GpuReadings::driver_throttled_sync_boost_seconds, kNano},
    {NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, &GpuReadings::driver_throttled_board_limit_seconds,
     kNano},
    {NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION,
     &GpuReadings::driver_throttled_low_utilization_seconds, kNano},
    {NVML_FI_DEV_PERF_POLICY_RELIABILITY, &GpuReadings::driver_throttled_reliability_seconds,
     kNano},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
     &GpuReadings::driver_throttled_software_thermal_seconds, kNano},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
     &GpuReadings::driver_throttled_hardware_thermal_seconds, kNano},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
     &GpuReadings::driver_throttled_power_brake_seconds, kNano},
    {NVML_FI_DEV_PCIE_REPLAY_COUNTER, &GpuReadings::pcie_replays_total, 1},
    {NVML_FI_DEV_REMAPPED_COR, &GpuReadings::remapped_rows_correctable, 1},
    {NVML_FI_DEV_REMAPPED_UNC, &GpuReadings::remapped_rows_uncorrectable, 1},
    {NVML_FI_DEV_REMAPPED_PENDING, &GpuReadings::row_remap_pending, 1},
    {NVML_FI_DEV_REMAPPED_FAILURE, &GpuReadings::row_remap_failed, 1},
    {NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, &GpuReadings::recovery_action, 1},
};

constexpr FieldRow kSlowRows[] = {
    {NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, &GpuReadings::pcie_correctable_errors_total, 1},
    {NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, &GpuReadings::pcie_nonfatal_errors_total, 1},
    {NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR, &GpuReadings::pcie_fatal_errors_total, 1},
    {NVML_FI_DEV_RETIRED_SBE, &GpuReadings::retired_pages_single_bit, 1},
    {NVML_FI_DEV_RETIRED_DBE, &GpuReadings::retired_pages_double_bit, 1},
    {NVML_FI_DEV_RETIRED_PENDING, &GpuReadings::retired_pages_pending, 1},
};
// Behind the table, in this order.
constexpr std::size_t kLinkCountPlace = std::size(kSlowRows);
constexpr std::size_t kShutdownPlace = kLinkCountPlace + 1;
constexpr std::size_t kSlowdownPlace = kLinkCountPlace + 2;
constexpr std::size_t kGpuMaxPlace = kLinkCountPlace + 3;

struct ReasonRow {
  std::uint64_t bit;
  Reading GpuReadings::*member;
};
constexpr ReasonRow kReasonRows[] = {
    {nvmlClocksEventReasonGpuIdle, &GpuReadings::clock_event_idle},
    {nvmlClocksEventReasonApplicationsClocksSetting, &GpuReadings::clock_event_application_clocks},
    {nvmlClocksEventReasonSwPowerCap, &GpuReadings::clock_event_software_power_cap},
    {nvmlClocksEventReasonHwSlowdown, &GpuReadings::clock_event_hardware_slowdown},
    {nvmlClocksEventReasonSyncBoost, &GpuReadings::clock_event_sync_boost},
    {nvmlClocksEventReasonSwThermalSlowdown, &GpuReadings::clock_event_software_thermal},
    {nvmlClocksEventReasonHwThermalSlowdown, &GpuReadings::clock_event_hardware_thermal},
    {nvmlClocksEventReasonHwPowerBrakeSlowdown, &GpuReadings::clock_event_power_brake},
    {nvmlClocksEventReasonDisplayClockSetting, &GpuReadings::clock_event_display},
};

// The batch has no such field, or there is no batch: a single function may know.
bool NeedsFallback(const Reading& reading) {
  return !reading && (reading.missing() == Missing::kNotSupported ||
                      reading.missing() == Missing::kDriverTooOld);
}

// Keeps the reason of the field when the function does not know either.
void FallBack(Reading& reading, const Reading& function) {
  if (function || function.missing() != Missing::kNotSupported) reading = function;
}

void ReadRemappedRows(DeviceCalls& calls, GpuReadings& readings) {
  unsigned int correctable = 0;
  unsigned int uncorrectable = 0;
  unsigned int pending = 0;
  unsigned int failed = 0;
  const nvmlReturn_t result = calls.Ask<nvmlDeviceGetRemappedRows>(
      0, calls.handle(), &correctable, &uncorrectable, &pending, &failed);
  const auto set = [result](Reading& reading, unsigned int value) {
    reading =
        result == NVML_SUCCESS ? Reading(static_cast<double>(value)) : Reading(MissingFor(result));
  };
  set(readings.remapped_rows_correctable, correctable);
  set(readings.remapped_rows_uncorrectable, uncorrectable);
  set(readings.row_remap_pending, pending != 0 ? 1 : 0);
  set(readings.row_remap_failed, failed != 0 ? 1 : 0);
}

void ReadUtilization(DeviceCalls& calls, GpuReadings& readings) {
  nvmlUtilization_t utilization = {};
  const nvmlReturn_t result =
      calls.Ask<nvmlDeviceGetUtilizationRates>(0, calls.handle(), &utilization);
  const bool known = result == NVML_SUCCESS;
  readings.utilization_ratio = known ? RatioFromPercent(utilization.gpu) : MissingFor(result);
  readings.memory_copy_utilization_ratio =
      known ? RatioFromPercent(utilization.memory) : MissingFor(result);
}

template <NvmlFunction F>
Reading AskEngine(DeviceCalls& calls) {
  unsigned int percent = 0;
  unsigned int period_us = 0;
  const nvmlReturn_t result = calls.Ask<F>(0, calls.handle(), &percent, &period_us);
  return result == NVML_SUCCESS ? RatioFromPercent(percent) : MissingFor(result);
}

void ReadClockEvents(DeviceCalls& calls, GpuReadings& readings) {
  unsigned long long reasons = 0;
  nvmlReturn_t result =
      calls.Ask<nvmlDeviceGetCurrentClocksEventReasons>(0, calls.handle(), &reasons);
  if (result == NVML_ERROR_FUNCTION_NOT_FOUND) {  // its name before driver 535
    result = calls.Ask<nvmlDeviceGetCurrentClocksThrottleReasons>(0, calls.handle(), &reasons);
  }
  for (const ReasonRow& row : kReasonRows) {
    readings.*row.member = result == NVML_SUCCESS ? Reading((reasons & row.bit) != 0 ? 1.0 : 0.0)
                                                  : Reading(MissingFor(result));
  }
}

Reading AskEccErrors(DeviceCalls& calls, unsigned int type, unsigned int counter) {
  return calls.AskNumber<nvmlDeviceGetTotalEccErrors, unsigned long long>(1, type * 2 + counter,
                                                                          type, counter);
}

Reading AskMargin(DeviceCalls& calls) {
  nvmlMarginTemperature_v1_t margin = {};
  margin.version = NVML_STRUCT_VERSION_OF(nvmlMarginTemperature_v1_t, 1U);
  const nvmlReturn_t result = calls.Ask<nvmlDeviceGetMarginTemperature>(0, calls.handle(), &margin);
  return result == NVML_SUCCESS ? Reading(margin.marginTemperature) : MissingFor(result);
}

void ReadPowerLimits(DeviceCalls& calls, GpuReadings& readings) {
  readings.power_limit_watts = calls.AskNumber<nvmlDeviceGetEnforcedPowerLimit>(kMilli, 0);
  readings.power_limit_default_watts =
      calls.AskNumber<nvmlDeviceGetPowerManagementDefaultLimit>(kMilli, 0);
  unsigned int min_mw = 0;
  unsigned int max_mw = 0;
  const nvmlReturn_t result =
      calls.Ask<nvmlDeviceGetPowerManagementLimitConstraints>(0, calls.handle(), &min_mw, &max_mw);
  const bool known = result == NVML_SUCCESS;
  readings.power_limit_min_watts = known ? Reading(min_mw * kMilli) : MissingFor(result);
  readings.power_limit_max_watts = known ? Reading(max_mw * kMilli) : MissingFor(result);
}

void ReadBar1(DeviceCalls& calls, GpuReadings& readings) {
  nvmlBAR1Memory_t bar1 = {};
  const nvmlReturn_t result = calls.Ask<nvmlDeviceGetBAR1MemoryInfo>(0, calls.handle(), &bar1);
  const bool known = result == NVML_SUCCESS;
  readings.bar1_total_bytes =
      known ? Reading(static_cast<double>(bar1.bar1Total)) : MissingFor(result);
  readings.bar1_used_bytes =
      known ? Reading(static_cast<double>(bar1.bar1Used)) : MissingFor(result);
}

Reading AskFabricState(DeviceCalls& calls) {
  nvmlGpuFabricInfo_v2_t info = {};
  info.version = NVML_STRUCT_VERSION_OF(nvmlGpuFabricInfo_v2_t, 2U);
  const nvmlReturn_t result = calls.Ask<nvmlDeviceGetGpuFabricInfoV>(0, calls.handle(), &info);
  if (result != NVML_SUCCESS) return MissingFor(result);
  // 0: the GPU is not part of a fabric.
  return info.state == 0 ? Reading(Missing::kNotSupported)
                         : Reading(static_cast<double>(info.state));
}

Reading AskEccMode(DeviceCalls& calls) {
  unsigned int current = 0;
  unsigned int pending = 0;
  const nvmlReturn_t result =
      calls.Ask<nvmlDeviceGetEccMode>(0, calls.handle(), &current, &pending);
  return result == NVML_SUCCESS ? Reading(current != 0 ? 1.0 : 0.0) : MissingFor(result);
}

}  // namespace

void AddFastFields(FieldBatch& batch) {
  for (const FieldRow& row : kFastRows) batch.Add(row.id);
}

void AddSlowFields(FieldBatch& batch) {
  for (const FieldRow& row : kSlowRows) batch.Add(row.id);
  batch.Add(NVML_FI_DEV_NVLINK_LINK_COUNT);
  batch.Add(NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT);
  batch.Add(NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT);
  batch.Add(NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT);
}

PcieFields AddPcieCounters(FieldBatch& batch) {
  PcieFields fields;
  fields.transmit = batch.Add(NVML_FI_DEV_PCIE_COUNT_TX_BYTES);
  fields.receive = batch.Add(NVML_FI_DEV_PCIE_COUNT_RX_BYTES);
  return fields;
}

Reading LinkCountField(const FieldBatch& batch) { return batch.Get(kLinkCountPlace); }

void ReadFastFields(DeviceCalls& calls, const FieldBatch& batch, GpuReadings& readings) {
  for (std::size_t i = 0; i < std::size(kFastRows); ++i) {
    readings.*kFastRows[i].member = batch.Get(i, kFastRows[i].unit);
  }
  if (NeedsFallback(readings.driver_energy_joules)) {
    FallBack(readings.driver_energy_joules,
             calls.AskNumber<nvmlDeviceGetTotalEnergyConsumption, unsigned long long>(kMilli, 0));
  }
  if (NeedsFallback(readings.pcie_replays_total)) {
    FallBack(readings.pcie_replays_total, calls.AskNumber<nvmlDeviceGetPcieReplayCounter>(1, 0));
  }
  if (NeedsFallback(readings.remapped_rows_correctable)) ReadRemappedRows(calls, readings);
}

void ReadSlowFields(const FieldBatch& batch, GpuReadings& readings) {
  for (std::size_t i = 0; i < std::size(kSlowRows); ++i) {
    readings.*kSlowRows[i].member = batch.Get(i, kSlowRows[i].unit);
  }
}

void ReadFastCalls(DeviceCalls& calls, GpuReadings& readings) {
  ReadUtilization(calls, readings);
  readings.encoder_utilization_ratio = AskEngine<nvmlDeviceGetEncoderUtilization>(calls);
  readings.decoder_utilization_ratio = AskEngine<nvmlDeviceGetDecoderUtilization>(calls);
  const auto clock = [&](unsigned int type) {
    return calls.AskNumber<nvmlDeviceGetClockInfo>(kMegahertz, type, type);
  };
  readings.sm_clock_hertz = clock(NVML_CLOCK_SM);
  readings.memory_clock_hertz = clock(NVML_CLOCK_MEM);
  readings.video_clock_hertz = clock(NVML_CLOCK_VIDEO);
  readings.performance_state = calls.AskNumber<nvmlDeviceGetPerformanceState>(1, 0);
  // NVML's number for "unknown".
  if (readings.performance_state && *readings.performance_state > 15) {
    readings.performance_state = Missing::kNotSupported;
  }
  const MemoryReadings memory = ReadMemoryInfo(calls, calls.handle());
  readings.memory_total_bytes = memory.total;
  readings.memory_used_bytes = memory.used;
  readings.memory_free_bytes = memory.free;
  readings.memory_reserved_bytes = memory.reserved;
  readings.power_watts = calls.AskNumber<nvmlDeviceGetPowerUsage>(kMilli, 0);
  readings.temperature_celsius =
      calls.AskNumber<nvmlDeviceGetTemperature>(1, 0, NVML_TEMPERATURE_GPU);
  readings.temperature_margin_celsius = AskMargin(calls);
  readings.fan_speed_ratio = calls.AskNumber<nvmlDeviceGetFanSpeed>(0.01, 0);
  ReadClockEvents(calls, readings);
  readings.pcie_link_generation = calls.AskNumber<nvmlDeviceGetCurrPcieLinkGeneration>(1, 0);
  readings.pcie_link_width = calls.AskNumber<nvmlDeviceGetCurrPcieLinkWidth>(1, 0);
  readings.ecc_corrected_errors_total =
      AskEccErrors(calls, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC);
  readings.ecc_uncorrected_errors_total =
      AskEccErrors(calls, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC);
}

void ReadSlowCalls(DeviceCalls& calls, GpuReadings& readings) {
  const auto clock_max = [&](unsigned int type) {
    return calls.AskNumber<nvmlDeviceGetMaxClockInfo>(kMegahertz, type, type);
  };
  readings.sm_clock_max_hertz = clock_max(NVML_CLOCK_SM);
  readings.memory_clock_max_hertz = clock_max(NVML_CLOCK_MEM);
  readings.sm_clock_application_hertz = calls.AskNumber<nvmlDeviceGetApplicationsClock>(
      kMegahertz, NVML_CLOCK_SM, static_cast<unsigned int>(NVML_CLOCK_SM));
  ReadBar1(calls, readings);
  ReadPowerLimits(calls, readings);
  readings.pcie_link_generation_max = calls.AskNumber<nvmlDeviceGetMaxPcieLinkGeneration>(1, 0);
  readings.pcie_link_width_max = calls.AskNumber<nvmlDeviceGetMaxPcieLinkWidth>(1, 0);
  readings.persistence_mode_enabled = calls.AskNumber<nvmlDeviceGetPersistenceMode>(1, 0);
  readings.compute_mode = calls.AskNumber<nvmlDeviceGetComputeMode>(1, 0);
  readings.ecc_enabled = AskEccMode(calls);
  readings.ecc_corrected_errors_lifetime_total =
      AskEccErrors(calls, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_AGGREGATE_ECC);
  readings.ecc_uncorrected_errors_lifetime_total =
      AskEccErrors(calls, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC);
  readings.fabric_state = AskFabricState(calls);
}

Reading ThresholdFromMargin(const Reading& temperature, const Reading& margin,
                            const Reading& tlimit) {
  for (const Reading* part : {&tlimit, &margin, &temperature}) {
    if (!*part) return *part;
  }
  return *temperature + *margin - *tlimit;
}

Reading SteadyThreshold(const Reading& former, const Reading& computed) {
  if (former && computed && std::abs(*former - *computed) <= 1) return former;
  return computed;
}

void ReadThresholds(DeviceCalls& calls, const FieldBatch& slow, GpuReadings& readings) {
  const auto classic = [&](unsigned int threshold) {
    return calls.AskNumber<nvmlDeviceGetTemperatureThreshold>(1, threshold, threshold);
  };
  const auto set = [&](Reading& reading, unsigned int threshold, std::size_t place) {
    const Reading known = classic(threshold);
    const Reading tlimit = slow.Get(place);
    if (known || !tlimit) {
      reading = known;
      return;
    }
    reading =
        SteadyThreshold(reading, ThresholdFromMargin(readings.temperature_celsius,
                                                     readings.temperature_margin_celsius, tlimit));
  };
  set(readings.temperature_shutdown_celsius, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, kShutdownPlace);
  set(readings.temperature_slowdown_celsius, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, kSlowdownPlace);
  set(readings.temperature_max_operating_celsius, NVML_TEMPERATURE_THRESHOLD_GPU_MAX, kGpuMaxPlace);
  // The memory's distance from its own limit is not reported, so its margin gives no temperature.
  readings.memory_temperature_max_operating_celsius = classic(NVML_TEMPERATURE_THRESHOLD_MEM_MAX);
}

}  // namespace gpuassay
