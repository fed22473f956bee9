// The driver's sampled utilisation per process, as a mean over the time since the previous reading.
//
// What the driver hands out: samples newer than a stamp, only of processes that did something in
// the sample period, and NOT_FOUND when there is none. Some drivers fold all periods of a process
// into one sample, others give one per period. So:
//   * The mean of a process is the sum of its samples over the number of periods since the previous
//     reading. That number is the time since then divided by the sampler's period, once two samples
//     of one process at once have shown the period; before that, and at least, the most samples
//     that any process has in the answer. Periods in which a process did nothing count as 0.
//   * A listed process without a sample is at 0 when others have samples: the driver did sample.
//   * NOT_FOUND after a call that worked means that nobody did anything: 0, once a sampler's period
//     (1 s where unknown) has passed since the last answer. Before that the former values stay.
//   * The first answer is the whole buffer: of it only the newest second counts.
//   * Samples over 100 % cannot be true: left out; kImplausible when a process has no others.
//   * Samples of PIDs that no list contains are ignored and counted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/snapshot.h"
#include "sources/nvml/cycle.h"
#include "sources/nvml/device_calls.h"

namespace gpuassay {

class ProcessUtilization {
 public:
  // Fills the four utilisation readings of gpu.processes, which are sorted by PID.
  // `sampler_period`: that of the GPU's own utilisation samples, where it is known.
  void Read(DeviceCalls& calls, const Cycle& cycle, std::optional<Duration> sampler_period,
            Gpu& gpu);

  // Samples so far whose PID no process list contained.
  std::uint64_t ignored_samples() const { return ignored_samples_; }

 private:
  static constexpr std::size_t kEngines = 4;  // SM, memory, encoder, decoder
  struct Shares {
    std::uint32_t pid = 0;
    Reading engines[kEngines];
  };
  nvmlReturn_t Ask(DeviceCalls& calls, std::size_t& count);
  void Aggregate(const Cycle& cycle, Gpu& gpu);
  void LearnPeriod();
  double Periods(const Cycle& cycle, std::size_t most) const;
  std::size_t MostSamples() const;
  void KeepFormer(Gpu& gpu) const;
  void Remember(const Gpu& gpu);

  std::vector<nvmlProcessUtilizationSample_t> buffer_;
  std::vector<nvmlProcessUtilizationSample_t> samples_;  // of one answer, by PID and time
  std::vector<Shares> former_;                           // by PID
  unsigned long long last_seen_us_ = 0;
  bool worked_ = false;  // the previous call did
  SteadyTime read_at_;   // the previous call that worked
  std::optional<Duration> period_;
  std::uint64_t ignored_samples_ = 0;
};

}  // namespace gpuassay
