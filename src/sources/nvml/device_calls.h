// One GPU's way into the library. Remembers what this GPU does not support, so that it is not asked
// again until ForgetRefusals(); stops asking for the rest of a cycle once the GPU is lost or a call
// timed out, so that one bad GPU costs one call; logs an unexpected error once per change.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "model/reading.h"
#include "sources/nvml/library.h"

namespace gpuassay {

// All bits set is how the driver says "no value" where there is no other way.
template <class T>
constexpr bool IsBlank(T value) {
  return value == std::numeric_limits<T>::max();
}

// A ratio from percent; over 100 % cannot be true.
constexpr Reading RatioFromPercent(std::uint64_t percent) {
  return percent > 100 ? Reading(Missing::kImplausible)
                       : Reading(static_cast<double>(percent) / 100.0);
}

class DeviceCalls {
 public:
  static constexpr std::size_t kVariantsMax = 4;

  DeviceCalls(NvmlLibrary& library, std::uint32_t gpu, nvmlDevice_t handle)
      : library_(&library), gpu_(gpu), handle_(handle) {}

  void BeginCycle() {
    stopped_ = NVML_SUCCESS;
    reset_required_ = false;
  }
  void ForgetRefusals();

  // `variant` tells calls of one function apart (a clock, a threshold): each is remembered by
  // itself.
  template <NvmlFunction F, class... Args>
  nvmlReturn_t Ask(unsigned int variant, Args... args) {
    nvmlReturn_t& last = last_[static_cast<std::size_t>(F)][variant];
    if (last == NVML_ERROR_NOT_SUPPORTED) return last;
    if (stopped_ != NVML_SUCCESS) return stopped_;
    const nvmlReturn_t result = library_->Call<F>(gpu_, args...);
    if (result != last) [[unlikely]] {
      Note(F, last, result);
    }
    if (result != NVML_SUCCESS) [[unlikely]] {
      Fault(result);
    }
    return result;
  }

  // The same without the memory, for handles that come and go (MIG) and single links.
  template <NvmlFunction F, class... Args>
  nvmlReturn_t AskFresh(Args... args) {
    if (stopped_ != NVML_SUCCESS) return stopped_;
    const nvmlReturn_t result = library_->Call<F>(gpu_, args...);
    if (result != NVML_SUCCESS) [[unlikely]] {
      Fault(result);
    }
    return result;
  }

  // A number whose last parameter is where to put it, times `unit`. The handle comes first.
  template <NvmlFunction F, class T = unsigned int, class... Args>
  Reading AskNumber(double unit, unsigned int variant, Args... args) {
    T value = 0;
    const nvmlReturn_t result = Ask<F>(variant, handle_, args..., &value);
    if (result != NVML_SUCCESS) return MissingFor(result);
    if (IsBlank(value)) return Missing::kImplausible;
    return static_cast<double>(value) * unit;
  }

  NvmlLibrary& library() { return *library_; }
  std::uint32_t gpu() const { return gpu_; }
  nvmlDevice_t handle() const { return handle_; }
  void Move(std::uint32_t gpu, nvmlDevice_t handle) {
    gpu_ = gpu;
    handle_ = handle;
  }

  // NVML_SUCCESS, or why nothing more is asked in this cycle: lost, timed out, library of no use.
  nvmlReturn_t stopped() const { return stopped_; }
  bool lost() const { return stopped_ == NVML_ERROR_GPU_IS_LOST; }
  bool reset_required() const { return reset_required_; }

 private:
  void Note(NvmlFunction function, nvmlReturn_t& last, nvmlReturn_t result);
  void Fault(nvmlReturn_t result);

  NvmlLibrary* library_;
  std::uint32_t gpu_;
  nvmlDevice_t handle_;
  nvmlReturn_t stopped_ = NVML_SUCCESS;
  bool reset_required_ = false;
  std::array<std::array<nvmlReturn_t, kVariantsMax>, kNvmlFunctionCount> last_ = {};
};

}  // namespace gpuassay
