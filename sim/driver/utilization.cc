// Utilisation of GPUs and of processes, as samples with time stamps.
#include <algorithm>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

// What tools are told to allocate for process samples, whatever there is at the moment.
constexpr unsigned int kProcessSamplesRoom = 100;

// Utilisation is not told on GPUs in MIG mode, nor of their instances.
bool HasUtilization(const DeviceState& gpu) {
  return gpu.model->features.utilization && !gpu.mig_enabled;
}

unsigned int PeriodUs(const DeviceState& gpu) {
  return static_cast<unsigned int>(Rounded(gpu.model->utilization_period_s * 1e6));
}

template <class Percent>
nvmlReturn_t EngineUtilization(Function function, nvmlDevice_t device, unsigned int* percent,
                               unsigned int* period_us, Percent&& value) {
  return OnGpu(function, device, percent != nullptr && period_us != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (!gpu.model->features.encoder_decoder || gpu.mig_enabled) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 *percent = value(gpu);
                 *period_us = PeriodUs(gpu);
                 return NVML_SUCCESS;
               });
}

// The newest sample of each process after `last_seen_us` in which it did something, by PID.
std::vector<ProcessUtilizationSample> NewestPerProcess(const Driver& driver, const DeviceState& gpu,
                                                       unsigned long long last_seen_us) {
  std::vector<ProcessUtilizationSample> newest;
  for (auto sample = gpu.process_samples.rbegin(); sample != gpu.process_samples.rend(); ++sample) {
    if (driver.StampUs(sample->at) <= last_seen_us) {
      break;  // oldest first: the rest is older
    }
    const bool active = (sample->sm_percent | sample->memory_percent | sample->encoder_percent |
                         sample->decoder_percent) != 0;
    if (active &&
        std::ranges::find(newest, sample->pid, &ProcessUtilizationSample::pid) == newest.end()) {
      newest.push_back(*sample);
    }
  }
  std::ranges::sort(newest, {}, &ProcessUtilizationSample::pid);
  return newest;
}

bool HasProcessUtilization(const DeviceState& gpu) {
  return gpu.model->features.process_utilization && !gpu.mig_enabled;
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  return OnGpu(Function::nvmlDeviceGetUtilizationRates, device, utilization != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (!HasUtilization(gpu)) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 utilization->gpu = gpu.utilization_percent;
                 utilization->memory = gpu.memory_utilization_percent;
                 return NVML_SUCCESS;
               });
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type,
                                  unsigned long long last_seen_us, unsigned int* value_type,
                                  unsigned int* count, nvmlSample_t* samples) {
  const bool valid =
      value_type != nullptr && count != nullptr && type <= 6 && (samples == nullptr || *count > 0);
  return OnGpu(
      Function::nvmlDeviceGetSamples, device, valid, [&](const DeviceState& gpu) -> nvmlReturn_t {
        const bool memory = type == NVML_MEMORY_UTILIZATION_SAMPLES;
        if (!HasUtilization(gpu) || (!memory && type != NVML_GPU_UTILIZATION_SAMPLES)) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        if (samples == nullptr) {
          *count = static_cast<unsigned int>(kSampleHistory);
          return NVML_SUCCESS;
        }
        const Driver& driver = *InstalledDriver();
        const auto first =
            std::ranges::find_if(gpu.utilization_samples, [&](const UtilizationSample& sample) {
              return driver.StampUs(sample.at) > last_seen_us;
            });
        unsigned int written = 0;
        for (auto sample = first; sample != gpu.utilization_samples.end() && written < *count;
             ++sample) {
          nvmlSample_t& out = samples[written++];
          out = {};
          out.timeStamp = driver.StampUs(sample->at);
          out.sampleValue.uiVal = memory ? sample->memory_percent : sample->gpu_percent;
        }
        *count = written;
        return written > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
      });
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int* percent,
                                             unsigned int* period_us) {
  return EngineUtilization(Function::nvmlDeviceGetEncoderUtilization, device, percent, period_us,
                           [](const DeviceState& gpu) { return gpu.encoder_percent; });
}
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int* percent,
                                             unsigned int* period_us) {
  return EngineUtilization(Function::nvmlDeviceGetDecoderUtilization, device, percent, period_us,
                           [](const DeviceState& gpu) { return gpu.decoder_percent; });
}
// No scenario uses the JPEG and optical-flow engines.
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int* percent,
                                         unsigned int* period_us) {
  return EngineUtilization(Function::nvmlDeviceGetJpgUtilization, device, percent, period_us,
                           [](const DeviceState&) { return 0U; });
}
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int* percent,
                                         unsigned int* period_us) {
  return EngineUtilization(Function::nvmlDeviceGetOfaUtilization, device, percent, period_us,
                           [](const DeviceState&) { return 0U; });
}

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int* sessions,
                                       unsigned int* average_fps,
                                       unsigned int* average_latency_us) {
  const bool valid = sessions != nullptr && average_fps != nullptr && average_latency_us != nullptr;
  return OnGpu(Function::nvmlDeviceGetEncoderStats, device, valid,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (!gpu.model->features.encoder_decoder) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 *sessions = *average_fps = *average_latency_us = 0;
                 return NVML_SUCCESS;
               });
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* samples,
                                             unsigned int* count, unsigned long long last_seen_us) {
  return OnGpu(Function::nvmlDeviceGetProcessUtilization, device, count != nullptr,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (!HasProcessUtilization(gpu)) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 const Driver& driver = *InstalledDriver();
                 const auto newest = NewestPerProcess(driver, gpu, last_seen_us);
                 if (newest.empty()) {
                   *count = 0;
                   return NVML_ERROR_NOT_FOUND;
                 }
                 const auto found = static_cast<unsigned int>(newest.size());
                 if (samples == nullptr || *count < found) {
                   *count = std::max(found, kProcessSamplesRoom);
                   return NVML_ERROR_INSUFFICIENT_SIZE;
                 }
                 *count = found;
                 for (const ProcessUtilizationSample& sample : newest) {
                   *samples++ = {.pid = sample.pid,
                                 .timeStamp = driver.StampUs(sample.at),
                                 .smUtil = sample.sm_percent,
                                 .memUtil = sample.memory_percent,
                                 .encUtil = sample.encoder_percent,
                                 .decUtil = sample.decoder_percent};
                 }
                 return NVML_SUCCESS;
               });
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_v1_t* info) {
  return OnGpu(
      Function::nvmlDeviceGetProcessesUtilizationInfo, device, info != nullptr,
      [&](const DeviceState& gpu) -> nvmlReturn_t {
        if (info->version != NVML_STRUCT_VERSION_OF(nvmlProcessesUtilizationInfo_v1_t, 1U)) {
          return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        }
        if (!HasProcessUtilization(gpu)) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        const Driver& driver = *InstalledDriver();
        const auto newest = NewestPerProcess(driver, gpu, info->lastSeenTimeStamp);
        if (newest.empty()) {
          info->processSamplesCount = 0;
          return NVML_ERROR_NOT_FOUND;
        }
        const auto found = static_cast<unsigned int>(newest.size());
        const bool fits = info->procUtilArray != nullptr && info->processSamplesCount >= found;
        info->processSamplesCount = fits ? found : std::max(found, kProcessSamplesRoom);
        if (!fits) {
          return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        nvmlProcessUtilizationInfo_v1_t* out = info->procUtilArray;
        for (const ProcessUtilizationSample& sample : newest) {
          *out++ = {.timeStamp = driver.StampUs(sample.at),
                    .pid = sample.pid,
                    .smUtil = sample.sm_percent,
                    .memUtil = sample.memory_percent,
                    .encUtil = sample.encoder_percent,
                    .decUtil = sample.decoder_percent,
                    .jpgUtil = 0,
                    .ofaUtil = 0};
        }
        return NVML_SUCCESS;
      });
}

}  // extern "C"
