#include "sources/nvml/processes.h"

#include <algorithm>
#include <tuple>

namespace gpuassay {
namespace {

constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;
constexpr std::size_t kListDefault = 64;
constexpr std::size_t kListMax = 65536;
// The list may grow between the call that tells its size and the one that reads it.
constexpr int kTriesMax = 4;

ProcessType TypeOf(bool compute, bool graphics, bool mps) {
  if (mps) return ProcessType::kMps;
  if (compute && graphics) return ProcessType::kComputeAndGraphics;
  return graphics ? ProcessType::kGraphics : ProcessType::kCompute;
}

// A list that the GPU or the driver does not have is an empty one.
bool IsAbsent(nvmlReturn_t result) {
  return result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND;
}

Reading MemoryOf(unsigned long long bytes) {
  // Not told: Windows' driver model, or a container that may not see it.
  if (IsBlank(bytes)) return Missing::kNotSupported;
  return static_cast<double>(bytes);
}

// PIDs in sorted processes, each once; only those on one instance when `mig` is given.
double CountPids(const std::vector<GpuProcess>& processes, const MigIdentity* mig) {
  double count = 0;
  const GpuProcess* former = nullptr;
  for (const GpuProcess& process : processes) {
    if (mig != nullptr && (process.gpu_instance_id != mig->gpu_instance_id ||
                           process.compute_instance_id.value_or(mig->compute_instance_id) !=
                               mig->compute_instance_id)) {
      continue;
    }
    if (former == nullptr || former->pid != process.pid) count += 1;
    former = &process;
  }
  return count;
}

}  // namespace

void ProcessLists::AddRow(const nvmlProcessInfo_t& info, Kind kind) {
  rows_.push_back(
      {info.pid, info.gpuInstanceId, info.computeInstanceId, MemoryOf(info.usedGpuMemory), kind});
}

void ProcessLists::AddRow(const nvmlProcessInfo_v1_t& info, Kind kind) {
  rows_.push_back({info.pid, kNoInstance, kNoInstance, MemoryOf(info.usedGpuMemory), kind});
}

template <NvmlFunction F, class Info>
nvmlReturn_t ProcessLists::Fill(DeviceCalls& calls, nvmlDevice_t device, bool remember, Kind kind,
                                std::vector<Info>& buffer) {
  if (buffer.empty()) buffer.resize(kListDefault);
  nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
  for (int tries = 0; tries < kTriesMax && result == NVML_ERROR_INSUFFICIENT_SIZE; ++tries) {
    auto count = static_cast<unsigned int>(buffer.size());
    result = remember ? calls.Ask<F>(0, device, &count, buffer.data())
                      : calls.AskFresh<F>(device, &count, buffer.data());
    if (result == NVML_SUCCESS) {
      const std::size_t filled = std::min<std::size_t>(count, buffer.size());
      for (std::size_t i = 0; i < filled; ++i) AddRow(buffer[i], kind);
    } else if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
      const std::size_t wanted = std::max<std::size_t>(count + count / 8 + 8, buffer.size() + 1);
      if (buffer.size() >= kListMax) break;
      buffer.resize(std::min(wanted, kListMax));
    }
  }
  return result;
}

template <NvmlFunction V3, NvmlFunction V2, NvmlFunction V1>
nvmlReturn_t ProcessLists::FillNewest(DeviceCalls& calls, nvmlDevice_t device, bool remember,
                                      Kind kind) {
  if (calls.library().Has<V3>()) return Fill<V3>(calls, device, remember, kind, buffer_);
  if (calls.library().Has<V2>()) return Fill<V2>(calls, device, remember, kind, buffer_);
  return Fill<V1>(calls, device, remember, kind, old_buffer_);
}

nvmlReturn_t ProcessLists::AskKind(DeviceCalls& calls, Kind kind, nvmlDevice_t device,
                                   bool remember) {
  switch (kind) {
    case kCompute:
      return FillNewest<NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3,
                        NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v2,
                        NvmlFunction::nvmlDeviceGetComputeRunningProcesses>(calls, device, remember,
                                                                            kind);
    case kGraphics:
      return FillNewest<NvmlFunction::nvmlDeviceGetGraphicsRunningProcesses_v3,
                        NvmlFunction::nvmlDeviceGetGraphicsRunningProcesses_v2,
                        NvmlFunction::nvmlDeviceGetGraphicsRunningProcesses>(calls, device,
                                                                             remember, kind);
    case kMps:
      return Fill<NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3>(calls, device, remember,
                                                                            kind, buffer_);
  }
  return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t ProcessLists::AskGpu(DeviceCalls& calls, Kind kind) {
  return AskKind(calls, kind, calls.handle(), true);
}

nvmlReturn_t ProcessLists::AskInstance(DeviceCalls& calls, Kind kind,
                                       const Mig::Instance& instance) {
  const std::size_t before = rows_.size();
  const nvmlReturn_t result = AskKind(calls, kind, instance.handle, false);
  for (std::size_t i = before; i < rows_.size(); ++i) {
    if (rows_[i].gpu_instance_id == kNoInstance) {
      rows_[i].gpu_instance_id = instance.gpu_instance_id;
      rows_[i].compute_instance_id = instance.compute_instance_id;
    }
  }
  return result;
}

void ProcessLists::Join() {
  const auto key = [](const Row& row) {
    return std::tie(row.pid, row.gpu_instance_id, row.compute_instance_id);
  };
  std::sort(rows_.begin(), rows_.end(),
            [&](const Row& a, const Row& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (kept > 0 && key(rows_[kept - 1]) == key(rows_[i])) {
      Row& row = rows_[kept - 1];
      row.kinds = static_cast<std::uint8_t>(row.kinds | rows_[i].kinds);
      // Each list tells all the memory of the process.
      if (!row.memory || (rows_[i].memory && *rows_[i].memory > *row.memory)) {
        row.memory = rows_[i].memory;
      }
    } else {
      rows_[kept++] = rows_[i];
    }
  }
  rows_.resize(kept);
}

void ProcessLists::Publish(ProcessNames& names, Gpu& gpu) const {
  const std::size_t count = std::min(rows_.size(), kProcessesPerGpuMax);
  gpu.processes_dropped = static_cast<std::uint32_t>(rows_.size() - count);
  gpu.processes.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Row& row = rows_[i];
    GpuProcess& process = gpu.processes[i];
    process.pid = row.pid;
    process.type =
        TypeOf((row.kinds & kCompute) != 0, (row.kinds & kGraphics) != 0, (row.kinds & kMps) != 0);
    process.gpu_instance_id.reset();
    process.compute_instance_id.reset();
    if (row.gpu_instance_id != kNoInstance) process.gpu_instance_id = row.gpu_instance_id;
    if (row.compute_instance_id != kNoInstance) {
      process.compute_instance_id = row.compute_instance_id;
    }
    process.name = names.Find(row.pid);
    process.readings = {};
    process.readings.memory_used_bytes = row.memory;
  }
}

void ProcessLists::Read(DeviceCalls& calls, std::span<const Mig::Instance> mig, ProcessNames& names,
                        Gpu& gpu) {
  rows_.clear();
  nvmlReturn_t trouble = NVML_SUCCESS;
  for (const Kind kind : {kCompute, kGraphics, kMps}) {
    nvmlReturn_t result = AskGpu(calls, kind);
    // The GPU itself answers for all instances, given the privilege. The other two lists are only
    // worth the calls when they exist at all.
    if (result != NVML_SUCCESS && !mig.empty() && (kind == kCompute || !IsAbsent(result))) {
      for (const Mig::Instance& instance : mig) {
        result = AskInstance(calls, kind, instance);
        if (result != NVML_SUCCESS) break;
      }
    }
    // Without the compute list nobody can say how many there are.
    if (result != NVML_SUCCESS && (kind == kCompute || !IsAbsent(result)) &&
        trouble == NVML_SUCCESS) {
      trouble = result;
    }
  }
  Join();
  Publish(names, gpu);
  const auto count = [&](const MigIdentity* instance) -> Reading {
    if (trouble != NVML_SUCCESS) return MissingFor(trouble);
    return CountPids(gpu.processes, instance);
  };
  gpu.readings.process_count = count(nullptr);
  if (gpu.readings.process_count && gpu.processes_dropped > 0) {
    gpu.readings.process_count = *gpu.readings.process_count + gpu.processes_dropped;
  }
  for (MigInstance& instance : gpu.mig) {
    instance.readings.process_count = count(&instance.identity);
  }
}

}  // namespace gpuassay
