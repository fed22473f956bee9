// Waiting times after failures: doubled each time, up to a maximum.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace gpuassay {

class Backoff {
 public:
  Backoff(Duration min, Duration max) : min_(min), max_(std::max(min, max)), next_(min) {}

  Duration Next() {
    const Duration now = next_;
    next_ = std::min(next_ * 2, max_);
    return now;
  }
  void Reset() { next_ = min_; }

 private:
  Duration min_, max_, next_;
};

}  // namespace gpuassay
