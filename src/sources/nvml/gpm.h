// GPU performance monitoring (Hopper and newer): rates from two samples of the hardware counters.
// One sampler per GPU, and one per GPU instance in MIG mode.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sources/nvml/cycle.h"
#include "sources/nvml/device_calls.h"

namespace gpuassay {

class GpmSampler {
 public:
  // Two samples must lie further apart than this (nvml.h); a reading that comes sooner keeps the
  // former values.
  static constexpr Duration kIntervalMin = std::chrono::milliseconds(100);

  explicit GpmSampler(NvmlLibrary& library) : library_(&library) {}
  ~GpmSampler();
  GpmSampler(GpmSampler&& other) noexcept;
  GpmSampler& operator=(GpmSampler&&) = delete;

  // The metrics to ask for, at most GPUASSAY_GPM_METRICS_MAX; values are found by their place.
  void SetMetrics(std::span<const unsigned int> ids);

  // Takes a sample of the GPU (or of one GPU instance) and computes the metrics over the time since
  // the former one.
  void Read(DeviceCalls& calls, const Cycle& cycle, std::optional<unsigned int> gpu_instance);
  // All values missing, as when the GPU has no GPM; the next Read starts anew.
  void Fail(Missing reason);

  Reading Percent(std::size_t metric) const;             // as a ratio 0..1
  Reading MebibytesPerSecond(std::size_t metric) const;  // as bytes per second
  std::size_t size() const { return ids_.size(); }

 private:
  bool Allocate(DeviceCalls& calls);
  void Compute(DeviceCalls& calls);

  NvmlLibrary* library_;
  std::array<nvmlGpmSample_t, 2> samples_ = {};
  std::size_t newest_ = 0;  // the sample to compare the next one with
  bool sampled_ = false;
  SteadyTime sampled_at_;
  std::vector<unsigned int> ids_;
  std::vector<Reading> values_;  // in the driver's units
};

// Whether the GPU has GPM; asked once until forgotten.
class GpmSupport {
 public:
  // The reason why there is none, or nullopt. `architecture`: NVML's number, 0 unknown.
  std::optional<Missing> Check(DeviceCalls& calls, unsigned int architecture);
  void Forget() { known_ = false; }

 private:
  bool known_ = false;
  std::optional<Missing> missing_;
};

}  // namespace gpuassay
