// nvmlDeviceGetFieldValues: each id with its own answer, time stamp and type.
#include <algorithm>

#include "sim/driver/core.h"
#include "sim/driver/quantities.h"

namespace gpuassay::sim {
namespace {

constexpr unsigned int kAllLinks = 0xFFFFFFFF;
constexpr int kFieldsMax = 4096;       // in one call
constexpr unsigned int kIdsEnd = 310;  // NVML_FI_MAX of the newest header

nvmlReturn_t GiveUint(bool supported, nvmlFieldValue_t* field, double value) {
  field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
  return Give(supported, &field->value.uiVal, Rounded(value));
}
nvmlReturn_t GiveUlong(bool supported, nvmlFieldValue_t* field, double value) {
  field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
  return Give(supported, &field->value.ullVal, Rounded(value));
}
nvmlReturn_t GiveInt(bool supported, nvmlFieldValue_t* field, double value) {
  field->valueType = NVML_VALUE_TYPE_SIGNED_INT;
  return Give(supported, &field->value.siVal, std::lround(value));
}

// First driver branch that knows an id, by the ranges in which NVIDIA's headers grew. Older drivers
// call the id an invalid argument.
std::uint32_t FieldIntroducedIn(unsigned int id) {
  struct Range {
    unsigned int first;
    std::uint32_t branch;
  };
  constexpr Range kRanges[] = {{289, 575}, {251, 570}, {230, 565}, {201, 550},
                               {197, 545}, {193, 535}, {187, 530}, {170, 525},
                               {161, 495}, {142, 450}, {92, 418},  {0, 0}};
  return std::ranges::find_if(kRanges, [id](const Range& range) { return id >= range.first; })
      ->branch;
}

template <class Number>
double SumOverLinks(const DeviceState& gpu, unsigned int scope, Number LinkState::*number) {
  double sum = 0;
  for (std::size_t i = 0; i < gpu.links.size(); ++i) {
    if (scope == kAllLinks || scope == i) {
      sum += static_cast<double>(gpu.links[i].*number);
    }
  }
  return sum;
}

// NVLink fields with the link as scope.
std::optional<nvmlReturn_t> LinkField(const DeviceState& gpu, nvmlFieldValue_t* field) {
  const unsigned int scope = field->scopeId;
  const bool one = scope < gpu.links.size();
  const bool any = one || (scope == kAllLinks && !gpu.links.empty());
  const double mb_per_second = gpu.model->nvlink_bytes_per_second_per_link / 1e6;
  const bool active = one && gpu.links[scope].active;
  switch (field->fieldId) {
    case NVML_FI_DEV_NVLINK_LINK_COUNT:
      return GiveUint(!gpu.links.empty(), field, static_cast<double>(gpu.links.size()));
    case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
      return GiveUlong(any, field, SumOverLinks(gpu, scope, &LinkState::transmit_kib));
    case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX:
      return GiveUlong(any, field, SumOverLinks(gpu, scope, &LinkState::receive_kib));
    case NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY:
      return GiveUlong(any, field, SumOverLinks(gpu, scope, &LinkState::replay_errors));
    case NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY:
      return GiveUlong(any, field, SumOverLinks(gpu, scope, &LinkState::recovery_errors));
    case NVML_FI_DEV_NVLINK_ERROR_DL_CRC:
      return GiveUlong(any, field, SumOverLinks(gpu, scope, &LinkState::crc_errors));
    case NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL:
      return GiveUlong(!gpu.links.empty(), field,
                       SumOverLinks(gpu, kAllLinks, &LinkState::crc_errors));
    case NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL:
      return GiveUlong(!gpu.links.empty(), field,
                       SumOverLinks(gpu, kAllLinks, &LinkState::replay_errors));
    case NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL:
      return GiveUlong(!gpu.links.empty(), field,
                       SumOverLinks(gpu, kAllLinks, &LinkState::recovery_errors));
    case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON:
      return GiveUint(!gpu.links.empty(), field, mb_per_second);
    case NVML_FI_DEV_NVLINK_GET_SPEED:
      return GiveUint(one, field, active ? mb_per_second : 0);
    case NVML_FI_DEV_NVLINK_GET_STATE:
      return GiveUint(one, field, active ? 1 : 0);
    case NVML_FI_DEV_NVLINK_GET_VERSION:
      return GiveUint(one, field, NvlinkVersionNumber(gpu));
    default:
      return std::nullopt;
  }
}

std::optional<nvmlReturn_t> PowerField(const DeviceState& gpu, nvmlFieldValue_t* field) {
  const Features& features = gpu.model->features;
  switch (field->fieldId) {
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
    case NVML_FI_DEV_ENERGY:
      return GiveUlong(features.energy, field, gpu.energy_j * 1000);
    case NVML_FI_DEV_POWER_AVERAGE:
      return GiveUint(features.power && features.power_averaged, field, gpu.power_average_w * 1000);
    case NVML_FI_DEV_POWER_INSTANT:
      return GiveUint(features.power && features.power_instant_field, field, gpu.power_w * 1000);
    case NVML_FI_DEV_POWER_MIN_LIMIT:
      return GiveUint(features.power, field, gpu.model->power_limit_min_w * 1000);
    case NVML_FI_DEV_POWER_MAX_LIMIT:
      return GiveUint(features.power, field, gpu.model->power_limit_max_w * 1000);
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
      return GiveUint(features.power, field, gpu.model->power_limit_default_w * 1000);
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
      return GiveUint(features.power, field, gpu.power_limit_w * 1000);
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT:
      return GiveUint(features.power, field, ConfiguredLimitW(gpu) * 1000);
    default:
      return std::nullopt;
  }
}

// Accumulated times in which something held the clocks down, in nanoseconds.
std::optional<nvmlReturn_t> ReasonField(const DeviceState& gpu, nvmlFieldValue_t* field) {
  const bool has = gpu.model->features.clock_event_reasons;
  const auto give = [&](double seconds) { return GiveUlong(has, field, seconds * 1e9); };
  switch (field->fieldId) {
    case NVML_FI_DEV_PERF_POLICY_POWER:
      return give(gpu.power_cap_seconds);
    case NVML_FI_DEV_PERF_POLICY_THERMAL:
      return give(gpu.software_thermal_seconds + gpu.hardware_thermal_seconds);
    case NVML_FI_DEV_PERF_POLICY_SYNC_BOOST:
      return give(gpu.sync_boost_seconds);
    case NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT:
      return give(gpu.power_brake_seconds);
    case NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION:
      return give(gpu.low_utilization_seconds);
    case NVML_FI_DEV_PERF_POLICY_RELIABILITY:
      return give(0);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN:
      return give(gpu.software_thermal_seconds);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN:
      return give(gpu.hardware_thermal_seconds);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN:
      return give(gpu.power_brake_seconds);
    default:
      return std::nullopt;
  }
}

std::optional<nvmlReturn_t> TemperatureField(const DeviceState& gpu, nvmlFieldValue_t* field) {
  const GpuModel& model = *gpu.model;
  const bool margins = model.features.margin_temperature;
  // Margins at which something happens, counted like nvmlDeviceGetMarginTemperature.
  switch (field->fieldId) {
    case NVML_FI_DEV_MEMORY_TEMP:
      return GiveUint(model.features.memory_temperature && gpu.memory_temperature_c.has_value(),
                      field, gpu.memory_temperature_c.value_or(0));
    case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT:
      return GiveInt(margins, field,
                     model.temperature_max_operating_c - model.temperature_shutdown_c);
    case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT:
      return GiveInt(margins, field,
                     model.temperature_max_operating_c - model.temperature_slowdown_c);
    case NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT:
      return GiveInt(margins && model.memory_temperature_max_c.has_value(), field, 0);
    case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT:
      return GiveInt(margins, field, 0);
    default:
      return std::nullopt;
  }
}

std::optional<nvmlReturn_t> HealthField(const DeviceState& gpu, nvmlFieldValue_t* field) {
  const Features& features = gpu.model->features;
  switch (field->fieldId) {
    case NVML_FI_DEV_ECC_CURRENT:
    case NVML_FI_DEV_ECC_PENDING:
      return GiveUint(features.ecc, field, gpu.config.ecc ? 1 : 0);
    case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
      return GiveUlong(EccEnabled(gpu), field, gpu.ecc_corrected);
    case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
      return GiveUlong(EccEnabled(gpu), field, gpu.ecc_uncorrected);
    case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
      return GiveUlong(EccEnabled(gpu), field, gpu.ecc_corrected_lifetime);
    case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
      return GiveUlong(EccEnabled(gpu), field, gpu.ecc_uncorrected_lifetime);
    case NVML_FI_DEV_RETIRED_SBE:
    case NVML_FI_DEV_RETIRED_DBE:
    case NVML_FI_DEV_RETIRED_PENDING:
      return GiveUint(features.page_retirement, field, 0);
    case NVML_FI_DEV_REMAPPED_COR:
      return GiveUint(features.row_remapping, field, gpu.remapped_correctable);
    case NVML_FI_DEV_REMAPPED_UNC:
      return GiveUint(features.row_remapping, field, gpu.remapped_uncorrectable);
    case NVML_FI_DEV_REMAPPED_PENDING:
      return GiveUint(features.row_remapping, field, gpu.row_remap_pending ? 1 : 0);
    case NVML_FI_DEV_REMAPPED_FAILURE:
      return GiveUint(features.row_remapping, field, gpu.row_remap_failed ? 1 : 0);
    case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION:
      return GiveUint(features.ecc, field, gpu.recovery_action);
    default:
      return std::nullopt;
  }
}

std::optional<nvmlReturn_t> PcieField(const DeviceState& gpu, nvmlFieldValue_t* field) {
  // Byte and error counters of the PCIe link: Ampere and newer.
  const bool counters = gpu.model->architecture >= Architecture::kAmpere;
  switch (field->fieldId) {
    case NVML_FI_DEV_PCIE_REPLAY_COUNTER:
      return GiveUint(true, field, gpu.pcie_replays);
    case NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS:  // a replay is a corrected error
      return GiveUint(counters, field, gpu.pcie_replays);
    case NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR:
    case NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR:
      return GiveUint(counters, field, 0);
    case NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
      return GiveUlong(counters, field, gpu.totals.pcie_transmit_bytes);
    case NVML_FI_DEV_PCIE_COUNT_RX_BYTES:
      return GiveUlong(counters, field, gpu.totals.pcie_receive_bytes);
    default:
      return std::nullopt;
  }
}

nvmlReturn_t Answer(const Driver& driver, const DeviceState& gpu, nvmlFieldValue_t* field) {
  const unsigned int id = field->fieldId;
  if (id == 0 || id >= kIdsEnd || FieldIntroducedIn(id) > driver.engine.scenario().driver.major) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  // A GPU that needs a reset still says so, and nothing else.
  if (gpu.reset_required && id != NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) {
    return NVML_ERROR_RESET_REQUIRED;
  }
  for (const auto group :
       {LinkField, PowerField, ReasonField, TemperatureField, HealthField, PcieField}) {
    if (const std::optional<nvmlReturn_t> answer = group(gpu, field)) {
      return *answer;
    }
  }
  return NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  const bool valid = values != nullptr && count > 0 && count <= kFieldsMax;
  return OnDevice(
      Function::nvmlDeviceGetFieldValues, device, valid,
      [&](const Call& call) {
        constexpr long long kLatencyUs = 5;
        const Driver& driver = call.driver();
        const auto stamp = static_cast<long long>(driver.StampUs(call.now()));
        for (nvmlFieldValue_t* field = values; field != values + count; ++field) {
          field->timestamp = stamp;
          field->latencyUsec = kLatencyUs;
          field->value = {};
          field->nvmlReturn =
              call.mig() != nullptr ? NVML_ERROR_NOT_SUPPORTED : Answer(driver, call.gpu(), field);
        }
        return NVML_SUCCESS;
      },
      Needs::kIdentity);
}

}  // extern "C"
