#include "sources/nvml/device_calls.h"

#include <fmt/format.h>

#include "base/log.h"

namespace gpuassay {
namespace {

// Part of a protocol, not a trouble.
bool IsExpected(nvmlReturn_t code) {
  return code == NVML_SUCCESS || code == NVML_ERROR_NOT_FOUND ||
         code == NVML_ERROR_INSUFFICIENT_SIZE;
}

bool IsWorthALine(nvmlReturn_t code) {
  return !IsExpected(code) && MissingFor(code) == Missing::kDriverError;
}

}  // namespace

void DeviceCalls::ForgetRefusals() {
  for (auto& variants : last_) {
    for (nvmlReturn_t& last : variants) {
      if (last == NVML_ERROR_NOT_SUPPORTED) last = NVML_SUCCESS;
    }
  }
}

void DeviceCalls::Note(NvmlFunction function, nvmlReturn_t& last, nvmlReturn_t result) {
  if (IsWorthALine(result)) {
    LogWarning(fmt::format("GPU {}: {}", gpu_, NvmlErrorLine(function, result)));
  } else if (IsWorthALine(last) && IsExpected(result)) {
    LogInfo(fmt::format("GPU {}: {} answers again", gpu_,
                        NvmlFunctionName(static_cast<std::uint32_t>(function))));
  }
  last = result;
}

void DeviceCalls::Fault(nvmlReturn_t result) {
  switch (result) {
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_TIMEOUT:
    case NVML_ERROR_UNINITIALIZED:
    case NVML_ERROR_DRIVER_NOT_LOADED:
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      stopped_ = result;
      break;
    case NVML_ERROR_RESET_REQUIRED:
      reset_required_ = true;
      break;
    default:
      break;
  }
}

}  // namespace gpuassay
