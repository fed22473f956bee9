// MIG: modes, devices, profiles.
#include <algorithm>
#include <array>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

// The most MIG devices that the model can hold: instances of its smallest profile.
std::uint32_t DevicesMax(const GpuModel& model) {
  std::uint32_t most = 0;
  for (const MigProfile& profile : model.mig_profiles) {
    most = std::max(most, profile.instances_max);
  }
  return most;
}

nvmlReturn_t Attributes(Function function, nvmlDevice_t device,
                        nvmlDeviceAttributes_t* attributes) {
  return OnDevice(function, device, attributes != nullptr, [&](const Call& call) -> nvmlReturn_t {
    if (call.mig() == nullptr) {
      return NVML_ERROR_NOT_SUPPORTED;
    }
    const MigProfile& profile = *call.mig()->profile;
    *attributes = {};
    attributes->multiprocessorCount = profile.multiprocessors;
    attributes->sharedCopyEngineCount = profile.compute_slices;
    attributes->sharedDecoderCount = profile.compute_slices / 2;
    attributes->gpuInstanceSliceCount = profile.compute_slices;
    attributes->computeInstanceSliceCount = profile.compute_slices;
    attributes->memorySizeMB = call.mig()->memory_total_bytes >> 20;
    return NVML_SUCCESS;
  });
}

// A number of the MIG device behind the handle.
nvmlReturn_t InstanceNumber(Function function, nvmlDevice_t mig, unsigned int* id,
                            std::uint32_t MigState::*number) {
  return OnDevice(function, mig, id != nullptr, [&](const Call& call) -> nvmlReturn_t {
    return call.mig() == nullptr ? NVML_ERROR_INVALID_ARGUMENT
                                 : Give(true, id, call.mig()->*number);
  });
}

// NVML names a profile by its compute slices; nullptr when the model has none of that size. Of
// several (1g.5gb and 1g.10gb), NVML's first is the one with the least memory.
const MigProfile* ProfileOf(const GpuModel& model, unsigned int number) {
  constexpr std::array<std::uint32_t, 7> kSlices = {1, 2, 3, 4, 7, 8, 6};
  constexpr unsigned int kOneSliceMoreMemory = 9;  // NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2
  const bool more_memory = number == kOneSliceMoreMemory;
  if (number >= kSlices.size() && !more_memory) {
    return nullptr;
  }
  const std::uint32_t slices = more_memory ? 1 : kSlices[number];
  std::vector<const MigProfile*> found;
  for (const MigProfile& profile : model.mig_profiles) {
    const bool plain = profile.name.find('+') == std::string_view::npos;  // "1g.5gb+me"
    if (profile.compute_slices == slices && plain) {
      found.push_back(&profile);
    }
  }
  std::ranges::sort(found, {}, &MigProfile::memory_bytes);
  const std::size_t place = more_memory ? 1 : 0;
  return place < found.size() ? found[place] : nullptr;
}

constexpr unsigned int kProfileNumbers = 0x12;  // NVML_GPU_INSTANCE_PROFILE_COUNT

template <class Info>
void FillProfile(const MigProfile& profile, unsigned int number, Info* info) {
  info->id = number;
  info->sliceCount = profile.compute_slices;
  info->instanceCount = profile.instances_max;
  info->multiprocessorCount = profile.multiprocessors;
  info->copyEngineCount = profile.compute_slices;
  info->decoderCount = profile.compute_slices / 2;
  info->encoderCount = 0;
  info->jpegCount = 0;
  info->ofaCount = 0;
  info->memorySizeMB = profile.memory_bytes >> 20;
}

template <class Use>
nvmlReturn_t OnProfile(Function function, nvmlDevice_t device, unsigned int number, bool valid,
                       Use&& use) {
  return OnGpu(function, device, valid && number < kProfileNumbers,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 const MigProfile* profile = ProfileOf(*gpu.model, number);
                 return profile == nullptr ? NVML_ERROR_NOT_SUPPORTED : use(gpu, *profile);
               });
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                  unsigned int* pending) {
  return OnGpu(
      Function::nvmlDeviceGetMigMode, device, current != nullptr && pending != nullptr,
      [&](const DeviceState& gpu) -> nvmlReturn_t {
        if (gpu.model->mig_profiles.empty()) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        *current = *pending = gpu.mig_enabled ? 1 : 0;
        return NVML_SUCCESS;
      },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  return OnGpu(Function::nvmlDeviceGetMaxMigDeviceCount, device, count != nullptr,
               [&](const DeviceState& gpu) {
                 return Give(true, count, gpu.mig_enabled ? DevicesMax(*gpu.model) : 0U);
               });
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t* mig) {
  return OnDevice(Function::nvmlDeviceGetMigDeviceHandleByIndex, device, mig != nullptr,
                  [&](const Call& call) -> nvmlReturn_t {
                    const DeviceState& gpu = call.gpu();
                    if (gpu.model->mig_profiles.empty()) {
                      return NVML_ERROR_NOT_SUPPORTED;
                    }
                    if (call.mig() != nullptr || index >= DevicesMax(*gpu.model)) {
                      return NVML_ERROR_INVALID_ARGUMENT;
                    }
                    const auto found = std::ranges::find(gpu.mig, index, &MigState::index);
                    if (found == gpu.mig.end()) {
                      return NVML_ERROR_NOT_FOUND;
                    }
                    *mig = call.driver().MigHandle(gpu, *found);
                    return NVML_SUCCESS;
                  });
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t* device) {
  return OnDevice(
      Function::nvmlDeviceGetDeviceHandleFromMigDeviceHandle, mig, device != nullptr,
      [&](const Call& call) -> nvmlReturn_t {
        if (call.mig() == nullptr) {
          return NVML_ERROR_INVALID_ARGUMENT;
        }
        *device = call.driver().GpuHandle(call.gpu().index);
        return NVML_SUCCESS;
      },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  return OnDevice(
      Function::nvmlDeviceIsMigDeviceHandle, device, is_mig != nullptr,
      [&](const Call& call) { return Give(true, is_mig, call.mig() == nullptr ? 0U : 1U); },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int* id) {
  return InstanceNumber(Function::nvmlDeviceGetGpuInstanceId, mig, id, &MigState::gpu_instance_id);
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int* id) {
  return InstanceNumber(Function::nvmlDeviceGetComputeInstanceId, mig, id,
                        &MigState::compute_instance_id);
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t mig, nvmlDeviceAttributes_t* attributes) {
  return Attributes(Function::nvmlDeviceGetAttributes, mig, attributes);
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t* attributes) {
  return Attributes(Function::nvmlDeviceGetAttributes_v2, mig, attributes);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 nvmlGpuInstanceProfileInfo_t* info) {
  return OnProfile(Function::nvmlDeviceGetGpuInstanceProfileInfo, device, profile, info != nullptr,
                   [&](const DeviceState&, const MigProfile& row) {
                     FillProfile(row, profile, info);
                     info->isP2pSupported = 0;
                     return NVML_SUCCESS;
                   });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                  nvmlGpuInstanceProfileInfo_v2_t* info) {
  return OnProfile(
      Function::nvmlDeviceGetGpuInstanceProfileInfoV, device, profile, info != nullptr,
      [&](const DeviceState&, const MigProfile& row) -> nvmlReturn_t {
        if (info->version == NVML_STRUCT_VERSION_OF(nvmlGpuInstanceProfileInfo_v2_t, 2U)) {
          FillProfile(row, profile, info);
          info->isP2pSupported = 0;
          CopyText(std::string("MIG ").append(row.name), info->name);
          return NVML_SUCCESS;
        }
        if (info->version == NVML_STRUCT_VERSION_OF(nvmlGpuInstanceProfileInfo_v3_t, 3U)) {
          auto* newer = reinterpret_cast<nvmlGpuInstanceProfileInfo_v3_t*>(info);
          FillProfile(row, profile, newer);
          newer->capabilities = 0;
          CopyText(std::string("MIG ").append(row.name), newer->name);
          return NVML_SUCCESS;
        }
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
      });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int profile,
                                                       unsigned int* count) {
  return OnProfile(
      Function::nvmlDeviceGetGpuInstanceRemainingCapacity, device, profile, count != nullptr,
      [&](const DeviceState& gpu, const MigProfile& row) -> nvmlReturn_t {
        if (!gpu.mig_enabled) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        // By memory slices: 8 on every model with MIG but the A30 (4).
        std::uint32_t slices = 0;
        for (const MigProfile& any : gpu.model->mig_profiles) {
          slices = std::max(slices, any.memory_slices);
        }
        std::uint32_t taken = 0;
        for (const MigState& mig : gpu.mig) {
          taken += mig.profile->memory_slices;
        }
        const std::uint32_t left = slices - std::min(slices, taken);
        const auto same =
            static_cast<std::uint32_t>(std::ranges::count(gpu.mig, &row, &MigState::profile));
        *count = std::min(left / std::max(row.memory_slices, 1U),
                          row.instances_max - std::min(row.instances_max, same));
        return NVML_SUCCESS;
      });
}

}  // extern "C"
