// The driver's buffered utilisation samples: the mean since the previous reading.
#pragma once

#include <optional>
#include <vector>

#include "sources/nvml/cycle.h"
#include "sources/nvml/device_calls.h"

namespace gpuassay {

class UtilizationSamples {
 public:
  // The mean of the samples that came since the previous reading. Without any (the first reading,
  // no new sample, no such function) it is `current`. Samples over 100 % are left out; kImplausible
  // when no other came.
  Reading Mean(DeviceCalls& calls, const Cycle& cycle, const Reading& current);

  // The sampler's period as its time stamps show it; nullopt until two samples came at once.
  std::optional<Duration> period() const { return period_; }

 private:
  Reading MeanOf(std::size_t count, const Reading& current);

  std::vector<nvmlSample_t> buffer_;
  unsigned long long last_seen_us_ = 0;
  bool first_ = true;
  std::optional<Duration> period_;
};

}  // namespace gpuassay
