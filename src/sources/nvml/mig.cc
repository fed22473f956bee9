#include "sources/nvml/mig.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "model/catalogue.h"
#include "sources/nvml/identity.h"

namespace gpuassay {
namespace {

constexpr std::array<unsigned int, 5> kGpmMetrics = {
    NVML_GPM_METRIC_GRAPHICS_UTIL, NVML_GPM_METRIC_SM_UTIL, NVML_GPM_METRIC_SM_OCCUPANCY,
    NVML_GPM_METRIC_ANY_TENSOR_UTIL, NVML_GPM_METRIC_DRAM_BW_UTIL};

// What the driver answers about a MIG handle of a layout that is gone.
bool IsStale(nvmlReturn_t result) {
  return result == NVML_ERROR_INVALID_ARGUMENT || result == NVML_ERROR_NOT_FOUND ||
         result == NVML_ERROR_GPU_NOT_FOUND;
}

void SetGpm(MigReadings& readings, const GpmSampler& gpm) {
  readings.graphics_engine_active_ratio = gpm.Percent(0);
  readings.sm_active_ratio = gpm.Percent(1);
  readings.sm_occupancy_ratio = gpm.Percent(2);
  readings.tensor_active_ratio = gpm.Percent(3);
  readings.dram_active_ratio = gpm.Percent(4);
}

void SetGpm(MigReadings& readings, Missing reason) {
  readings.graphics_engine_active_ratio = reason;
  readings.sm_active_ratio = reason;
  readings.sm_occupancy_ratio = reason;
  readings.tensor_active_ratio = reason;
  readings.dram_active_ratio = reason;
}

}  // namespace

std::string MigProfileFromName(std::string_view device_name) {
  constexpr std::string_view kMark = " MIG ";
  const std::size_t at = device_name.rfind(kMark);
  return at == std::string_view::npos ? "" : std::string(device_name.substr(at + kMark.size()));
}

std::string MigProfileFromAttributes(const nvmlDeviceAttributes_t& attributes,
                                     std::uint64_t gpu_memory_mib) {
  const auto mib = static_cast<double>(attributes.memorySizeMB);
  double gib = std::ceil(mib / 1024);
  if (gpu_memory_mib > 0) {
    const auto whole = static_cast<double>(gpu_memory_mib);
    const double eighths = std::min(std::ceil(mib / whole * 8), 8.0);
    gib = std::round(eighths / 8 * std::ceil(whole / 1024));
  }
  const unsigned int gpu_slices = attributes.gpuInstanceSliceCount;
  const unsigned int compute_slices = attributes.computeInstanceSliceCount;
  // A compute instance that is only a part of its GPU instance is named with both.
  const std::string part =
      compute_slices > 0 && compute_slices < gpu_slices ? fmt::format("{}c.", compute_slices) : "";
  return fmt::format("{}{}g.{:.0f}gb", part, gpu_slices, gib);
}

MemoryReadings ReadMemoryInfo(DeviceCalls& calls, nvmlDevice_t device) {
  MemoryReadings readings;
  nvmlMemory_v2_t memory = {};
  memory.version = NVML_STRUCT_VERSION_OF(nvmlMemory_v2_t, 2U);
  readings.result = calls.AskFresh<NvmlFunction::nvmlDeviceGetMemoryInfo_v2>(device, &memory);
  if (readings.result == NVML_ERROR_FUNCTION_NOT_FOUND ||
      readings.result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH ||
      readings.result == NVML_ERROR_NOT_SUPPORTED) {
    nvmlMemory_t old = {};
    const bool untold = readings.result != NVML_ERROR_NOT_SUPPORTED;
    readings.result = calls.AskFresh<NvmlFunction::nvmlDeviceGetMemoryInfo>(device, &old);
    if (readings.result == NVML_SUCCESS) {
      readings.total = static_cast<double>(old.total);
      readings.used = static_cast<double>(old.used);
      readings.free = static_cast<double>(old.free);
      readings.reserved = untold ? Missing::kDriverTooOld : Missing::kNotSupported;
    }
  } else if (readings.result == NVML_SUCCESS) {
    readings.total = static_cast<double>(memory.total);
    readings.used = static_cast<double>(memory.used);
    readings.free = static_cast<double>(memory.free);
    readings.reserved = static_cast<double>(memory.reserved);
  }
  if (readings.result != NVML_SUCCESS) {
    const Missing why = MissingFor(readings.result);
    readings.total = readings.used = readings.free = readings.reserved = why;
  } else if (*readings.used > *readings.total || *readings.free > *readings.total) {
    readings.used = readings.free = Missing::kImplausible;
  }
  return readings;
}

void Mig::Enumerate(DeviceCalls& calls, Gpu& gpu) {
  gpu.mig.clear();
  instances_.clear();
  unsigned int current = 0;
  unsigned int pending = 0;
  const nvmlReturn_t mode =
      calls.Ask<NvmlFunction::nvmlDeviceGetMigMode>(0, calls.handle(), &current, &pending);
  gpu.readings.mig_enabled =
      mode == NVML_SUCCESS ? Reading(current != 0 ? 1.0 : 0.0) : Reading(MissingFor(mode));
  unsigned int count = 0;
  if (mode == NVML_SUCCESS && current != 0 &&
      calls.Ask<NvmlFunction::nvmlDeviceGetMaxMigDeviceCount>(0, calls.handle(), &count) ==
          NVML_SUCCESS) {
    // Indices may have holes; there are more indices than instances at times.
    for (unsigned int i = 0; i < count && gpu.mig.size() < kMigInstancesMax; ++i) {
      nvmlDevice_t handle = nullptr;
      const nvmlReturn_t result = calls.AskFresh<NvmlFunction::nvmlDeviceGetMigDeviceHandleByIndex>(
          calls.handle(), i, &handle);
      if (result == NVML_SUCCESS) Add(calls, i, handle, gpu);
      if (calls.stopped() != NVML_SUCCESS) break;
    }
  }
  KeepSamplers(gpu);
}

bool Mig::Add(DeviceCalls& calls, std::uint32_t index, nvmlDevice_t handle, Gpu& gpu) {
  MigInstance mig;
  mig.identity.index = index;
  if (ReadUuid(calls, handle, mig.identity.uuid) != NVML_SUCCESS) return false;
  Instance instance;
  instance.handle = handle;
  if (calls.AskFresh<NvmlFunction::nvmlDeviceGetGpuInstanceId>(handle, &instance.gpu_instance_id) !=
          NVML_SUCCESS ||
      calls.AskFresh<NvmlFunction::nvmlDeviceGetComputeInstanceId>(
          handle, &instance.compute_instance_id) != NVML_SUCCESS) {
    return false;
  }
  mig.identity.gpu_instance_id = instance.gpu_instance_id;
  mig.identity.compute_instance_id = instance.compute_instance_id;

  std::array<char, 128> name = {};
  if (calls.AskFresh<NvmlFunction::nvmlDeviceGetName>(
          handle, name.data(), static_cast<unsigned int>(name.size())) == NVML_SUCCESS) {
    mig.identity.profile =
        MigProfileFromName(std::string_view(name.data(), strnlen(name.data(), name.size())));
  }
  nvmlDeviceAttributes_t attributes = {};
  const nvmlReturn_t result =
      calls.AskFresh<NvmlFunction::nvmlDeviceGetAttributes_v2>(handle, &attributes);
  if (result == NVML_SUCCESS) {
    mig.readings.multiprocessors = static_cast<double>(attributes.multiprocessorCount);
    if (mig.identity.profile.empty()) {
      const Reading total = ReadMemoryInfo(calls, calls.handle()).total;
      mig.identity.profile = MigProfileFromAttributes(
          attributes, total ? static_cast<std::uint64_t>(*total / 1048576) : 0);
    }
  } else {
    mig.readings.multiprocessors = MissingFor(result);
  }
  instances_.push_back(instance);
  gpu.mig.push_back(std::move(mig));
  return true;
}

void Mig::KeepSamplers(const Gpu& gpu) {
  for (Sampler& sampler : samplers_) sampler.used = false;
  for (const MigInstance& mig : gpu.mig) {
    const auto known =
        std::ranges::find(samplers_, mig.identity.gpu_instance_id, &Sampler::gpu_instance_id);
    if (known == samplers_.end()) {
      samplers_.push_back(
          {mig.identity.gpu_instance_id, mig.identity.uuid, GpmSampler(*library_), true});
      samplers_.back().gpm.SetMetrics(kGpmMetrics);
    } else if (!known->used) {
      // The same number on another instance: its counters have nothing to do with the former ones.
      if (known->uuid != mig.identity.uuid) known->gpm.Fail(Missing::kNeverSampled);
      known->uuid = mig.identity.uuid;
      known->used = true;
    }
  }
  std::vector<Sampler> kept;
  for (Sampler& sampler : samplers_) {
    if (sampler.used) kept.push_back(std::move(sampler));
  }
  samplers_ = std::move(kept);
}

bool Mig::ReadMemory(DeviceCalls& calls, Gpu& gpu) {
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    MigReadings& readings = gpu.mig[i].readings;
    const MemoryReadings memory = ReadMemoryInfo(calls, instances_[i].handle);
    if (IsStale(memory.result)) return false;
    // Handles are used again: another size is another instance.
    if (readings.memory_total_bytes && memory.total &&
        *readings.memory_total_bytes != *memory.total) {
      return false;
    }
    readings.memory_total_bytes = memory.total;
    readings.memory_used_bytes = memory.used;
    readings.memory_free_bytes = memory.free;
    readings.memory_reserved_bytes = memory.reserved;
  }
  return true;
}

void Mig::ReadGpm(DeviceCalls& calls, const Cycle& cycle, Gpu& gpu) {
  for (Sampler& sampler : samplers_) {
    sampler.gpm.Read(calls, cycle, sampler.gpu_instance_id);
    for (MigInstance& mig : gpu.mig) {
      if (mig.identity.gpu_instance_id == sampler.gpu_instance_id) {
        SetGpm(mig.readings, sampler.gpm);
      }
    }
  }
}

void Mig::ReadFast(DeviceCalls& calls, const Cycle& cycle, std::optional<Missing> no_gpm,
                   Gpu& gpu) {
  if (instances_.empty()) return;
  if (!ReadMemory(calls, gpu)) {
    Enumerate(calls, gpu);
    if (!ReadMemory(calls, gpu)) {
      for (MigInstance& mig : gpu.mig) SetAllMissing(mig.readings, Missing::kDriverError);
      return;
    }
  }
  if (no_gpm) {
    for (MigInstance& mig : gpu.mig) SetGpm(mig.readings, *no_gpm);
  } else {
    ReadGpm(calls, cycle, gpu);
  }
}

}  // namespace gpuassay
