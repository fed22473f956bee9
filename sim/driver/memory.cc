// Memory of GPUs and MIG devices.
#include <algorithm>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

struct MemoryNumbers {
  std::uint64_t total = 0, reserved = 0, used = 0, free = 0;  // bytes; the last three add up
};

MemoryNumbers MemoryOf(const Call& call) {
  MemoryNumbers memory;
  if (const MigState* mig = call.mig()) {
    memory.total = mig->memory_total_bytes;
    memory.reserved = mig->memory_reserved_bytes;
    memory.used = mig->memory_used_bytes;
  } else {
    memory.total = call.gpu().model->memory_bytes;
    memory.reserved = call.gpu().model->memory_reserved_bytes;
    memory.used = call.gpu().memory_used_bytes;
  }
  memory.used = std::min(memory.used, memory.total - memory.reserved);
  memory.free = memory.total - memory.reserved - memory.used;
  return memory;
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  return OnDevice(Function::nvmlDeviceGetMemoryInfo, device, memory != nullptr,
                  [&](const Call& call) {
                    const MemoryNumbers numbers = MemoryOf(call);
                    memory->total = numbers.total;
                    memory->free = numbers.free;
                    memory->used = numbers.used + numbers.reserved;
                    return NVML_SUCCESS;
                  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  return OnDevice(Function::nvmlDeviceGetMemoryInfo_v2, device, memory != nullptr,
                  [&](const Call& call) -> nvmlReturn_t {
                    if (memory->version != NVML_STRUCT_VERSION_OF(nvmlMemory_v2_t, 2U)) {
                      return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
                    }
                    const MemoryNumbers numbers = MemoryOf(call);
                    memory->total = numbers.total;
                    memory->reserved = numbers.reserved;
                    memory->free = numbers.free;
                    memory->used = numbers.used;
                    return NVML_SUCCESS;
                  });
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
  return OnDevice(Function::nvmlDeviceGetBAR1MemoryInfo, device, memory != nullptr,
                  [&](const Call& call) {
                    // The driver maps a little for itself and for each process.
                    constexpr std::uint64_t kPerProcess = std::uint64_t{2} << 20;
                    const DeviceState& gpu = call.gpu();
                    std::uint64_t total = gpu.model->bar1_bytes;
                    std::uint64_t processes = gpu.processes.size();
                    if (const MigState* mig = call.mig()) {
                      const double share = static_cast<double>(mig->memory_total_bytes) /
                                           static_cast<double>(gpu.model->memory_bytes);
                      total = Rounded(static_cast<double>(total) * share);
                      processes = static_cast<std::uint64_t>(
                          std::ranges::count(gpu.processes, mig->index, &ProcessState::mig_index));
                    }
                    memory->bar1Total = total;
                    memory->bar1Used = std::min(total, (processes + 1) * kPerProcess);
                    memory->bar1Free = total - memory->bar1Used;
                    return NVML_SUCCESS;
                  });
}

}  // extern "C"
