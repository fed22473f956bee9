// A measured number, or the reason why there is none. Unknown is never zero.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace gpuassay {

// Why a value is missing. The numbers are part of the record format: append, never renumber.
enum class Missing : std::uint8_t {
  kNeverSampled = 0,       // nobody has read it yet, or it needs two samples and has one
  kNotSupported = 1,       // this model or this mode (for example MIG) does not have it
  kDriverTooOld = 2,       // the driver library lacks the function or the field
  kNoPermission = 3,       // the driver refused it to this user
  kGpuLost = 4,            // the GPU has fallen off the bus
  kTimedOut = 5,           // the driver has not answered for too long
  kPausedForProfiler = 6,  // released so that a profiler can use the counters
  kResetRequired = 7,      // the driver wants a GPU reset first
  kDriverError = 8,        // any other error of the driver; the log has the code
  kImplausible = 9,        // the driver answered with a value that cannot be true
  kReleased = 10,          // devices were let go on request (SIGUSR1)
  kVersionMismatch = 11,   // library and kernel module are of different versions
  kNotSeparable = 12,      // several share the device and nothing tells their parts apart
  kNotReported = 13,       // only the job itself could tell, and it does not
};
inline constexpr int kMissingCount = 14;

// Stable snake_case name: in JSON, in metrics and in `explain missing`.
std::string_view MissingName(Missing reason);
// One sentence for a person, with what to do about it.
std::string_view MissingText(Missing reason);

// Trivially copyable, 16 bytes. Default: kNeverSampled.
class Reading {
 public:
  constexpr Reading() = default;
  constexpr Reading(double value) : value_(value), known_(true) {}  // NOLINT: implicit by design
  constexpr Reading(Missing reason) : missing_(reason) {}           // NOLINT: implicit by design

  constexpr bool has_value() const { return known_; }
  constexpr explicit operator bool() const { return known_; }
  // The value. Calling it on a missing reading is a bug.
  constexpr double operator*() const {
    Check(known_, "value of a missing reading");
    return value_;
  }
  constexpr std::optional<double> get() const {
    return known_ ? std::optional<double>(value_) : std::nullopt;
  }
  // The reason. Calling it on a known reading is a bug.
  constexpr Missing missing() const {
    Check(!known_, "reason of a known reading");
    return missing_;
  }

  friend constexpr bool operator==(const Reading& a, const Reading& b) {
    if (a.known_ != b.known_) return false;
    return a.known_ ? a.value_ == b.value_ : a.missing_ == b.missing_;
  }

 private:
  double value_ = 0;
  bool known_ = false;
  Missing missing_ = Missing::kNeverSampled;
};

}  // namespace gpuassay
