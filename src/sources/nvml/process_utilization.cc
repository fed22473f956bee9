#include "sources/nvml/process_utilization.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace gpuassay {
namespace {

using Sample = nvmlProcessUtilizationSample_t;

constexpr std::array<Reading ProcessReadings::*, 4> kReadings = {
    &ProcessReadings::sm_utilization_ratio, &ProcessReadings::memory_utilization_ratio,
    &ProcessReadings::encoder_utilization_ratio, &ProcessReadings::decoder_utilization_ratio};
constexpr std::array<unsigned int Sample::*, 4> kValues = {&Sample::smUtil, &Sample::memUtil,
                                                           &Sample::encUtil, &Sample::decUtil};

constexpr std::size_t kSamplesDefault = 256;
constexpr std::size_t kSamplesMax = 65536;
constexpr int kTriesMax = 4;
// nvml.h: samplers run every 1/6 s to 1 s.
constexpr Duration kPeriodMin = std::chrono::milliseconds(100);
constexpr Duration kPeriodMax = std::chrono::seconds(1);
constexpr unsigned long long kFirstWindowUs = 1'000'000;
constexpr unsigned long long kClockSlackUs = 2'000'000;

// The samples of one process: [first, end) of the sorted samples.
Reading MeanOf(const Sample* first, const Sample* end, unsigned int Sample::*value,
               double periods) {
  double sum = 0;
  double rejected = 0;
  for (const Sample* sample = first; sample != end; ++sample) {
    if (sample->*value > 100) {
      rejected += 1;
    } else {
      sum += sample->*value;
    }
  }
  if (first != end && rejected == static_cast<double>(end - first)) return Missing::kImplausible;
  return std::min(sum / std::max(periods - rejected, 1.0) / 100.0, 1.0);
}

void SetAll(Gpu& gpu, const Reading& reading) {
  for (GpuProcess& process : gpu.processes) {
    for (const auto member : kReadings) process.readings.*member = reading;
  }
}

}  // namespace

nvmlReturn_t ProcessUtilization::Ask(DeviceCalls& calls, std::size_t& count) {
  if (buffer_.empty()) buffer_.resize(kSamplesDefault);
  nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
  for (int tries = 0; tries < kTriesMax && result == NVML_ERROR_INSUFFICIENT_SIZE; ++tries) {
    auto size = static_cast<unsigned int>(buffer_.size());
    result = calls.Ask<NvmlFunction::nvmlDeviceGetProcessUtilization>(
        0, calls.handle(), buffer_.data(), &size, last_seen_us_);
    if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
      const std::size_t wanted = std::max<std::size_t>(size + size / 8, buffer_.size() * 2);
      buffer_.resize(std::min(wanted, kSamplesMax));
    }
    count = std::min<std::size_t>(size, buffer_.size());
  }
  return result;
}

void ProcessUtilization::Read(DeviceCalls& calls, const Cycle& cycle,
                              std::optional<Duration> sampler_period, Gpu& gpu) {
  const std::uint64_t now_us = DriverStamp(cycle.wall);
  if (last_seen_us_ > now_us + kClockSlackUs) last_seen_us_ = now_us;
  std::size_t count = 0;
  const nvmlReturn_t result = Ask(calls, count);
  if (result != NVML_SUCCESS && result != NVML_ERROR_NOT_FOUND) {
    SetAll(gpu, MissingFor(result));
    former_.clear();
    worked_ = false;
    return;
  }
  samples_.clear();
  for (std::size_t i = 0; result == NVML_SUCCESS && i < count; ++i) {
    // Unused entries have no PID; some drivers repeat the last-seen sample.
    if (buffer_[i].pid != 0 && buffer_[i].timeStamp > last_seen_us_) samples_.push_back(buffer_[i]);
  }
  if (!samples_.empty()) {
    Aggregate(cycle, gpu);
  } else if (!worked_) {
    SetAll(gpu, Missing::kNeverSampled);
  } else if (cycle.steady - read_at_ >= period_.value_or(sampler_period.value_or(kPeriodMax))) {
    SetAll(gpu, 0.0);
  } else {
    KeepFormer(gpu);
    return Remember(gpu);
  }
  worked_ = true;
  read_at_ = cycle.steady;
  Remember(gpu);
}

void ProcessUtilization::LearnPeriod() {
  for (std::size_t i = 1; i < samples_.size(); ++i) {
    if (samples_[i].pid != samples_[i - 1].pid) continue;
    const Duration apart(
        static_cast<Duration::rep>(samples_[i].timeStamp - samples_[i - 1].timeStamp));
    if (apart < kPeriodMin || apart > kPeriodMax) continue;
    period_ = std::min(period_.value_or(apart), apart);
  }
}

std::size_t ProcessUtilization::MostSamples() const {
  std::size_t most = 0;
  std::size_t run = 0;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (i > 0 && samples_[i].pid != samples_[i - 1].pid) run = 0;
    most = std::max(most, ++run);
  }
  return most;
}

double ProcessUtilization::Periods(const Cycle& cycle, std::size_t most) const {
  const auto at_least = static_cast<double>(std::max<std::size_t>(most, 1));
  if (!period_) return at_least;
  const double elapsed =
      worked_ ? Seconds(cycle.steady - read_at_) : static_cast<double>(kFirstWindowUs) / 1e6;
  return std::max(elapsed / Seconds(*period_), at_least);
}

void ProcessUtilization::Aggregate(const Cycle& cycle, Gpu& gpu) {
  std::sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.pid, a.timeStamp) < std::tie(b.pid, b.timeStamp);
  });
  LearnPeriod();
  unsigned long long newest = 0;
  for (const Sample& sample : samples_) newest = std::max(newest, sample.timeStamp);
  const unsigned long long after =
      worked_ || newest < kFirstWindowUs ? last_seen_us_ : newest - kFirstWindowUs;
  last_seen_us_ = newest;
  std::erase_if(samples_, [after](const Sample& sample) { return sample.timeStamp <= after; });
  const double periods = Periods(cycle, MostSamples());

  const Sample* const end = samples_.data() + samples_.size();
  const Sample* at = samples_.data();
  for (GpuProcess& process : gpu.processes) {
    for (; at != end && at->pid < process.pid; ++at) ++ignored_samples_;
    const Sample* last = at;
    while (last != end && last->pid == process.pid) ++last;
    for (std::size_t i = 0; i < kEngines; ++i) {
      process.readings.*kReadings[i] = MeanOf(at, last, kValues[i], periods);
    }
    // A process can be listed twice, on two MIG instances: `at` stays until the PID changes.
    const GpuProcess* const next = &process + 1;
    const bool again =
        next != gpu.processes.data() + gpu.processes.size() && next->pid == process.pid;
    if (!again) at = last;
  }
  ignored_samples_ += static_cast<std::uint64_t>(end - at);
}

void ProcessUtilization::KeepFormer(Gpu& gpu) const {
  for (GpuProcess& process : gpu.processes) {
    const auto known = std::ranges::lower_bound(former_, process.pid, {}, &Shares::pid);
    const bool found = known != former_.end() && known->pid == process.pid;
    for (std::size_t i = 0; i < kEngines; ++i) {
      process.readings.*kReadings[i] = found ? known->engines[i] : Reading(Missing::kNeverSampled);
    }
  }
}

void ProcessUtilization::Remember(const Gpu& gpu) {
  former_.clear();
  for (const GpuProcess& process : gpu.processes) {
    Shares shares;
    shares.pid = process.pid;
    for (std::size_t i = 0; i < kEngines; ++i) shares.engines[i] = process.readings.*kReadings[i];
    former_.push_back(shares);
  }
}

}  // namespace gpuassay
