#include "sources/nvml/counter_rate.h"

#include <utility>

namespace gpuassay {

Reading CounterRate::Update(const FieldBatch& batch, std::size_t field, double unit,
                            SteadyTime now) {
  const std::optional<std::uint64_t> count = batch.Count(field);
  if (!count) {
    count_.reset();
    const Reading why = batch.Get(field);
    return rate_ = why ? Reading(Missing::kImplausible) : why;
  }
  if (count_ && now <= at_) return rate_;
  const std::optional<std::uint64_t> before = std::exchange(count_, count);
  const double seconds = Seconds(now - std::exchange(at_, now));
  if (!before) return rate_ = Missing::kNeverSampled;
  if (*count >= *before) return rate_ = static_cast<double>(*count - *before) * unit / seconds;
  // A 32-bit counter wraps every few seconds on a busy link; a wide one only falls when it was
  // reset.
  if (!batch.IsNarrow(field)) return rate_ = Missing::kNeverSampled;
  return rate_ = static_cast<double>(static_cast<std::uint32_t>(*count - *before)) * unit / seconds;
}

}  // namespace gpuassay
