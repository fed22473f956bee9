#include "sources/nvml/utilization.h"

#include <algorithm>
#include <utility>

namespace gpuassay {
namespace {

// The driver keeps about 120 samples.
constexpr std::size_t kSamplesDefault = 128;
constexpr std::size_t kSamplesMax = 4096;
// nvml.h: the sample period is 1/6 s to 1 s.
constexpr Duration kPeriodMin = std::chrono::milliseconds(100);
constexpr Duration kPeriodMax = std::chrono::seconds(2);
// A last-seen stamp this far in the future means that the wall clock was set back.
constexpr unsigned long long kClockSlackUs = 2'000'000;

std::uint64_t PercentOf(unsigned int type, const nvmlValue_t& value) {
  if (type == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG) return value.ullVal;
  return value.uiVal;
}

}  // namespace

Reading UtilizationSamples::Mean(DeviceCalls& calls, const Cycle& cycle, const Reading& current) {
  if (buffer_.empty()) buffer_.resize(kSamplesDefault);
  const std::uint64_t now_us = DriverStamp(cycle.wall);
  if (last_seen_us_ > now_us + kClockSlackUs) last_seen_us_ = now_us;

  unsigned int type = NVML_VALUE_TYPE_UNSIGNED_INT;
  unsigned int count = 0;
  const auto ask = [&] {
    count = static_cast<unsigned int>(buffer_.size());
    return calls.Ask<NvmlFunction::nvmlDeviceGetSamples>(
        0, calls.handle(), NVML_GPU_UTILIZATION_SAMPLES, last_seen_us_, &type, &count,
        buffer_.data());
  };
  nvmlReturn_t result = ask();
  if (result == NVML_ERROR_INSUFFICIENT_SIZE && count > buffer_.size()) {
    buffer_.resize(std::min<std::size_t>(count, kSamplesMax));
    result = ask();
  }
  if (result != NVML_SUCCESS) {
    const bool fallback = result == NVML_ERROR_NOT_FOUND || result == NVML_ERROR_NOT_SUPPORTED ||
                          result == NVML_ERROR_FUNCTION_NOT_FOUND;
    return fallback || !current ? current : Reading(MissingFor(result));
  }
  // Percent, as an unsigned int in every driver so far.
  for (std::size_t i = 0; i < std::min<std::size_t>(count, buffer_.size()); ++i) {
    buffer_[i].sampleValue.ullVal = PercentOf(type, buffer_[i].sampleValue);
  }
  return MeanOf(std::min<std::size_t>(count, buffer_.size()), current);
}

Reading UtilizationSamples::MeanOf(std::size_t count, const Reading& current) {
  unsigned long long oldest = 0;
  unsigned long long newest = last_seen_us_;
  std::size_t taken = 0;
  std::size_t used = 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const nvmlSample_t& sample = buffer_[i];
    // Drivers have been seen to hand out the last-seen sample once more, and unused entries.
    if (sample.timeStamp <= last_seen_us_) continue;
    oldest = taken == 0 ? sample.timeStamp : std::min(oldest, sample.timeStamp);
    newest = std::max(newest, sample.timeStamp);
    ++taken;
    if (sample.sampleValue.ullVal > 100) continue;
    sum += sample.sampleValue.ullVal;
    ++used;
  }
  last_seen_us_ = newest;
  if (taken >= 2) {
    const Duration period(static_cast<Duration::rep>((newest - oldest) / (taken - 1)));
    if (period >= kPeriodMin && period <= kPeriodMax) period_ = period;
  }
  // The whole buffer comes first: it says nothing about the time since a previous reading.
  if (std::exchange(first_, false) || taken == 0) return current;
  if (used == 0) return Missing::kImplausible;
  return static_cast<double>(sum) / (100.0 * static_cast<double>(used));
}

}  // namespace gpuassay
