// Which driver call is under way, in memory shared with the process that supervises the worker, so
// that "the driver hangs" can say in which call, on which GPU and since when. One writer, any
// number of readers; two relaxed stores per call.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpuassay {

class CallWatch {
 public:
  static constexpr std::uint32_t kIdle = 0xFFFFFFFF;
  static constexpr std::uint32_t kNoGpu = 0xFFFFFFFF;

  // `function` is an index into nvml_functions.def, see NvmlFunctionName.
  void Enter(std::uint32_t function, std::uint32_t gpu) {
    gpu_.store(gpu, std::memory_order_relaxed);
    function_.store(function, std::memory_order_release);
    calls_.fetch_add(1, std::memory_order_relaxed);
  }
  void Leave() { function_.store(kIdle, std::memory_order_release); }

  std::uint32_t function() const { return function_.load(std::memory_order_acquire); }
  std::uint32_t gpu() const { return gpu_.load(std::memory_order_relaxed); }
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> function_ = kIdle;
  std::atomic<std::uint32_t> gpu_ = kNoGpu;
  std::atomic<std::uint64_t> calls_ = 0;
};

// "nvmlDeviceGetPowerUsage"; "?" when out of range.
const char* NvmlFunctionName(std::uint32_t function);

}  // namespace gpuassay
