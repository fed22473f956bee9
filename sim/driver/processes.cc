// Process lists, in all the structures that NVML has had.
#include <algorithm>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

struct Listed {
  const ProcessState* process = nullptr;
  std::uint32_t gpu_instance = kNoInstance;
  std::uint32_t compute_instance = kNoInstance;
};

void Fill(const Listed& from, nvmlProcessInfo_v1_t* to) {
  to->pid = from.process->pid;
  to->usedGpuMemory = from.process->memory_bytes;
}

void Fill(const Listed& from, nvmlProcessInfo_t* to) {
  to->pid = from.process->pid;
  to->usedGpuMemory = from.process->memory_bytes;
  to->gpuInstanceId = from.gpu_instance;
  to->computeInstanceId = from.compute_instance;
}

void Fill(const Listed& from, nvmlProcessDetail_v1_t* to) {
  to->pid = from.process->pid;
  to->usedGpuMemory = from.process->memory_bytes;
  to->gpuInstanceId = from.gpu_instance;
  to->computeInstanceId = from.compute_instance;
  to->usedGpuCcProtectedMemory = 0;  // no scenario has confidential computing
}

// The processes that a handle lists: a MIG device its own, a GPU all, with their instances.
std::vector<Listed> ListProcesses(const Call& call, std::optional<ScenarioProcessType> type) {
  std::vector<Listed> listed;
  for (const ProcessState& process : call.gpu().processes) {
    if (type && process.type != *type) {
      continue;
    }
    Listed entry{.process = &process};
    if (process.mig_index) {
      const auto mig = std::ranges::find(call.gpu().mig, *process.mig_index, &MigState::index);
      if (mig == call.gpu().mig.end()) {
        continue;
      }
      entry.gpu_instance = mig->gpu_instance_id;
      entry.compute_instance = mig->compute_instance_id;
    }
    if (call.mig() == nullptr || process.mig_index == call.mig()->index) {
      listed.push_back(entry);
    }
  }
  return listed;
}

// `count`: the room on the way in, the number of processes on the way out.
template <class Info>
nvmlReturn_t GiveProcesses(const std::vector<Listed>& listed, unsigned int* count, Info* out) {
  const unsigned int room = *count;
  *count = static_cast<unsigned int>(listed.size());
  if (room < listed.size()) {
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  if (!listed.empty() && out == nullptr) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  for (const Listed& entry : listed) {
    Fill(entry, out++);
  }
  return NVML_SUCCESS;
}

template <class Info>
nvmlReturn_t Running(Function function, nvmlDevice_t device, unsigned int* count, Info* out,
                     ScenarioProcessType type) {
  return OnDevice(function, device, count != nullptr, [&](const Call& call) {
    return GiveProcesses(ListProcesses(call, type), count, out);
  });
}

constexpr auto kCompute = ScenarioProcessType::kCompute;
constexpr auto kGraphics = ScenarioProcessType::kGraphics;
constexpr auto kMps = ScenarioProcessType::kMps;

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  nvmlProcessInfo_v1_t* processes) {
  return Running(Function::nvmlDeviceGetComputeRunningProcesses, device, count, processes,
                 kCompute);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* processes) {
  return Running(Function::nvmlDeviceGetComputeRunningProcesses_v2, device, count, processes,
                 kCompute);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* processes) {
  return Running(Function::nvmlDeviceGetComputeRunningProcesses_v3, device, count, processes,
                 kCompute);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                   nvmlProcessInfo_v1_t* processes) {
  return Running(Function::nvmlDeviceGetGraphicsRunningProcesses, device, count, processes,
                 kGraphics);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                      nvmlProcessInfo_t* processes) {
  return Running(Function::nvmlDeviceGetGraphicsRunningProcesses_v2, device, count, processes,
                 kGraphics);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                      nvmlProcessInfo_t* processes) {
  return Running(Function::nvmlDeviceGetGraphicsRunningProcesses_v3, device, count, processes,
                 kGraphics);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_v1_t* processes) {
  return Running(Function::nvmlDeviceGetMPSComputeRunningProcesses, device, count, processes, kMps);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                        nvmlProcessInfo_t* processes) {
  return Running(Function::nvmlDeviceGetMPSComputeRunningProcesses_v2, device, count, processes,
                 kMps);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                        nvmlProcessInfo_t* processes) {
  return Running(Function::nvmlDeviceGetMPSComputeRunningProcesses_v3, device, count, processes,
                 kMps);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_v1_t* list) {
  return OnDevice(Function::nvmlDeviceGetRunningProcessDetailList, device, list != nullptr,
                  [&](const Call& call) -> nvmlReturn_t {
                    if (list->version != NVML_STRUCT_VERSION_OF(nvmlProcessDetailList_v1_t, 1U)) {
                      return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
                    }
                    std::optional<ScenarioProcessType> type;
                    switch (list->mode) {
                      case NVML_PROCESS_MODE_COMPUTE:
                        type = kCompute;
                        break;
                      case NVML_PROCESS_MODE_GRAPHICS:
                        type = kGraphics;
                        break;
                      case NVML_PROCESS_MODE_MPS:
                        type = kMps;
                        break;
                      case NVML_PROCESS_MODE_ALL:
                        break;
                      default:
                        return NVML_ERROR_INVALID_ARGUMENT;
                    }
                    return GiveProcesses(ListProcesses(call, type), &list->numProcArrayEntries,
                                         list->procArray);
                  });
}

}  // extern "C"
