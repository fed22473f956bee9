// Memory errors: ECC counters, retired pages, remapped rows.
#include "sim/driver/core.h"
#include "sim/driver/quantities.h"

namespace gpuassay::sim {

bool EccEnabled(const DeviceState& gpu) { return gpu.model->features.ecc && gpu.config.ecc; }

namespace {

// All errors of a scenario happen in device memory.
std::uint64_t ErrorsOf(const DeviceState& gpu, unsigned int error_type, unsigned int counter_type) {
  const bool corrected = error_type == NVML_MEMORY_ERROR_TYPE_CORRECTED;
  if (counter_type == NVML_VOLATILE_ECC) {
    return Rounded(corrected ? gpu.ecc_corrected : gpu.ecc_uncorrected);
  }
  return Rounded(corrected ? gpu.ecc_corrected_lifetime : gpu.ecc_uncorrected_lifetime);
}

bool ValidCounter(unsigned int error_type, unsigned int counter_type) {
  return error_type <= NVML_MEMORY_ERROR_TYPE_UNCORRECTED && counter_type <= NVML_AGGREGATE_ECC;
}

// No scenario retires pages: an empty list.
nvmlReturn_t RetiredPages(Function function, nvmlDevice_t device, unsigned int cause,
                          unsigned int* count) {
  return OnGpu(function, device, count != nullptr && cause <= 1, [&](const DeviceState& gpu) {
    return Give(gpu.model->features.page_retirement, count, 0U);
  });
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int* current,
                                  unsigned int* pending) {
  return OnGpu(
      Function::nvmlDeviceGetEccMode, device, current != nullptr && pending != nullptr,
      [&](const DeviceState& gpu) -> nvmlReturn_t {
        if (!gpu.model->features.ecc) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        *current = *pending = gpu.config.ecc ? 1 : 0;
        return NVML_SUCCESS;
      },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, unsigned int* mode) {
  return OnGpu(
      Function::nvmlDeviceGetDefaultEccMode, device, mode != nullptr,
      [&](const DeviceState& gpu) { return Give(gpu.model->features.ecc, mode, 1U); },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int error_type,
                                         unsigned int counter_type, unsigned long long* count) {
  return OnGpu(Function::nvmlDeviceGetTotalEccErrors, device,
               count != nullptr && ValidCounter(error_type, counter_type),
               [&](const DeviceState& gpu) {
                 return Give(EccEnabled(gpu), count, ErrorsOf(gpu, error_type, counter_type));
               });
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int error_type,
                                             unsigned int counter_type, unsigned int location,
                                             unsigned long long* count) {
  const bool valid = count != nullptr && ValidCounter(error_type, counter_type) &&
                     location <= NVML_MEMORY_LOCATION_SRAM;
  return OnGpu(
      Function::nvmlDeviceGetMemoryErrorCounter, device, valid, [&](const DeviceState& gpu) {
        const bool memory = location == NVML_MEMORY_LOCATION_DEVICE_MEMORY;
        return Give(EccEnabled(gpu), count, memory ? ErrorsOf(gpu, error_type, counter_type) : 0U);
      });
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, unsigned int error_type,
                                            unsigned int counter_type,
                                            nvmlEccErrorCounts_t* counts) {
  return OnGpu(Function::nvmlDeviceGetDetailedEccErrors, device,
               counts != nullptr && ValidCounter(error_type, counter_type),
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 if (!EccEnabled(gpu)) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 *counts = {};
                 counts->deviceMemory = ErrorsOf(gpu, error_type, counter_type);
                 return NVML_SUCCESS;
               });
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int* count,
                                       unsigned long long*) {
  return RetiredPages(Function::nvmlDeviceGetRetiredPages, device, cause, count);
}
nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned int cause,
                                          unsigned int* count, unsigned long long*,
                                          unsigned long long*) {
  return RetiredPages(Function::nvmlDeviceGetRetiredPages_v2, device, cause, count);
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned int* pending) {
  return OnGpu(Function::nvmlDeviceGetRetiredPagesPendingStatus, device, pending != nullptr,
               [&](const DeviceState& gpu) {
                 return Give(gpu.model->features.page_retirement, pending, 0U);
               });
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int* correctable,
                                       unsigned int* uncorrectable, unsigned int* pending,
                                       unsigned int* failed) {
  const bool valid =
      correctable != nullptr && uncorrectable != nullptr && pending != nullptr && failed != nullptr;
  return OnGpu(
      Function::nvmlDeviceGetRemappedRows, device, valid,
      [&](const DeviceState& gpu) -> nvmlReturn_t {
        if (!gpu.model->features.row_remapping) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        *correctable = gpu.remapped_correctable;
        *uncorrectable = gpu.remapped_uncorrectable;
        *pending = gpu.row_remap_pending ? 1 : 0;
        *failed = gpu.row_remap_failed ? 1 : 0;
        return NVML_SUCCESS;
      },
      Needs::kIdentity);
}

}  // extern "C"
