// Power, energy, temperature, fans.
#include "sim/driver/core.h"
#include "sim/driver/quantities.h"

namespace gpuassay::sim {

double ReportedPowerW(const DeviceState& gpu) {
  return gpu.model->features.power_averaged ? gpu.power_average_w : gpu.power_w;
}

double ConfiguredLimitW(const DeviceState& gpu) {
  return gpu.config.power_limit_w.value_or(gpu.model->power_limit_default_w);
}

int MarginC(const DeviceState& gpu) {
  return static_cast<int>(std::lround(gpu.model->temperature_max_operating_c)) -
         static_cast<int>(std::lround(gpu.temperature_c));
}

namespace {

// `watts` is what the GPU has; not supported where the model has no power readings.
template <class Watts>
nvmlReturn_t GivePower(Function function, nvmlDevice_t device, unsigned int* mw, Watts&& watts) {
  return OnGpu(function, device, mw != nullptr, [&](const DeviceState& gpu) {
    return Give(gpu.model->features.power, mw, Rounded(watts(gpu) * 1000));
  });
}

nvmlReturn_t FanSpeed(Function function, nvmlDevice_t device, unsigned int fan,
                      unsigned int* percent) {
  return OnGpu(function, device, percent != nullptr, [&](const DeviceState& gpu) -> nvmlReturn_t {
    if (!gpu.model->features.fan) {
      return NVML_ERROR_NOT_SUPPORTED;
    }
    return fan == 0 ? Give(true, percent, Rounded(gpu.fan_percent)) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* mw) {
  return GivePower(Function::nvmlDeviceGetPowerUsage, device, mw, ReportedPowerW);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* mj) {
  return OnGpu(Function::nvmlDeviceGetTotalEnergyConsumption, device, mj != nullptr,
               [&](const DeviceState& gpu) {
                 return Give(gpu.model->features.energy, mj, Rounded(gpu.energy_j * 1000));
               });
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* mw) {
  return GivePower(Function::nvmlDeviceGetEnforcedPowerLimit, device, mw,
                   [](const DeviceState& gpu) { return gpu.power_limit_w; });
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int* mw) {
  return GivePower(Function::nvmlDeviceGetPowerManagementLimit, device, mw, ConfiguredLimitW);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int* mw) {
  return GivePower(Function::nvmlDeviceGetPowerManagementDefaultLimit, device, mw,
                   [](const DeviceState& gpu) { return gpu.model->power_limit_default_w; });
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int* min_mw,
                                                          unsigned int* max_mw) {
  return OnGpu(Function::nvmlDeviceGetPowerManagementLimitConstraints, device,
               min_mw != nullptr && max_mw != nullptr, [&](const DeviceState& gpu) {
                 const bool power = gpu.model->features.power;
                 const nvmlReturn_t result =
                     Give(power, min_mw, Rounded(gpu.model->power_limit_min_w * 1000));
                 return result != NVML_SUCCESS
                            ? result
                            : Give(power, max_mw, Rounded(gpu.model->power_limit_max_w * 1000));
               });
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, unsigned int* mode) {
  return OnGpu(Function::nvmlDeviceGetPowerManagementMode, device, mode != nullptr,
               [&](const DeviceState& gpu) { return Give(gpu.model->features.power, mode, 1U); });
}

nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, unsigned int* source) {
  return OnGpu(Function::nvmlDeviceGetPowerSource, device, source != nullptr,
               [&](const DeviceState&) { return Give(true, source, 0U); });  // mains
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor,
                                      unsigned int* celsius) {
  const bool valid = celsius != nullptr && sensor == NVML_TEMPERATURE_GPU;
  return OnGpu(Function::nvmlDeviceGetTemperature, device, valid, [&](const DeviceState& gpu) {
    return Give(true, celsius, Rounded(gpu.temperature_c));
  });
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t* temperature) {
  return OnGpu(Function::nvmlDeviceGetTemperatureV, device, temperature != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (temperature->version != NVML_STRUCT_VERSION_OF(nvmlTemperature_v1_t, 1U)) {
                   return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
                 }
                 return temperature->sensorType == NVML_TEMPERATURE_GPU
                            ? Give(true, &temperature->temperature, Rounded(gpu.temperature_c))
                            : NVML_ERROR_INVALID_ARGUMENT;
               });
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int threshold,
                                               unsigned int* celsius) {
  return OnGpu(Function::nvmlDeviceGetTemperatureThreshold, device, celsius != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 const GpuModel& model = *gpu.model;
                 // Where temperatures are told as margins, the thresholds are fields 193-196.
                 const bool classic = !model.features.margin_temperature;
                 switch (threshold) {
                   case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
                     return Give(classic, celsius, Rounded(model.temperature_shutdown_c));
                   case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
                     return Give(classic, celsius, Rounded(model.temperature_slowdown_c));
                   case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
                     return Give(classic && model.memory_temperature_max_c.has_value(), celsius,
                                 Rounded(model.memory_temperature_max_c.value_or(0)));
                   case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
                     return Give(classic, celsius, Rounded(model.temperature_max_operating_c));
                   default:
                     return threshold < 8 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
                 }
               });
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
                                            nvmlMarginTemperature_v1_t* margin) {
  return OnGpu(Function::nvmlDeviceGetMarginTemperature, device, margin != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (margin->version != NVML_STRUCT_VERSION_OF(nvmlMarginTemperature_v1_t, 1U)) {
                   return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
                 }
                 return Give(gpu.model->features.margin_temperature, &margin->marginTemperature,
                             MarginC(gpu));
               });
}

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int* fans) {
  return OnGpu(
      Function::nvmlDeviceGetNumFans, device, fans != nullptr,
      [&](const DeviceState& gpu) { return Give(true, fans, gpu.model->features.fan ? 1U : 0U); });
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* percent) {
  return FanSpeed(Function::nvmlDeviceGetFanSpeed, device, 0, percent);
}
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan,
                                      unsigned int* percent) {
  return FanSpeed(Function::nvmlDeviceGetFanSpeed_v2, device, fan, percent);
}
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned int fan,
                                         unsigned int* percent) {
  return FanSpeed(Function::nvmlDeviceGetTargetFanSpeed, device, fan, percent);
}

}  // extern "C"
