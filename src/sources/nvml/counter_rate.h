// A rate from a counter that is read now and then.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "sources/nvml/fields.h"

namespace gpuassay {

class CounterRate {
 public:
  // The rate per second since the previous reading, in counts times `unit`. The first reading and
  // one after a counter reset have none (kNeverSampled); two readings at the same instant: the
  // former rate.
  Reading Update(const FieldBatch& batch, std::size_t field, double unit, SteadyTime now);
  void Forget() { count_.reset(); }

 private:
  std::optional<std::uint64_t> count_;
  SteadyTime at_;
  Reading rate_;
};

}  // namespace gpuassay
