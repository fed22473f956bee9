// How the questions to one server went: the source's status, kept by the thread that asks.
#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "model/snapshot.h"

namespace gpuassay {

inline Missing MissingOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kPermission:
      return Missing::kNoPermission;
    case ErrorCode::kTimeout:
      return Missing::kTimedOut;
    case ErrorCode::kUnsupported:
      return Missing::kNotSupported;
    case ErrorCode::kNotFound:
    case ErrorCode::kMalformed:
    case ErrorCode::kIo:
      break;
  }
  return Missing::kNeverSampled;
}

// Not thread-safe.
class SourceBook {
 public:
  explicit SourceBook(std::string name) {
    status_.name = std::move(name);
    status_.readings.reads_total = 0;
    status_.readings.failures_total = 0;
  }

  bool tried() const { return status_.readings.up.has_value(); }
  bool answered() const { return status_.last_success.has_value(); }

  void Asked() { status_.readings.reads_total = *status_.readings.reads_total + 1; }
  void Succeeded(WallTime now, Duration took) {
    Heard(now);
    status_.readings.duration_seconds = Seconds(took);
  }
  // Something came, but not all is well.
  void HeardInPart(WallTime now) { status_.last_success = now; }
  // Something came without a question.
  void Heard(WallTime now) {
    HeardInPart(now);
    status_.error.clear();
    status_.readings.up = 1;
  }
  void Failed(const Error& error) {
    status_.error = error.what;
    status_.missing = MissingOf(error.code);
    status_.readings.up = 0;
    Missed();
  }
  // A question that may fail.
  void Missed() { status_.readings.failures_total = *status_.readings.failures_total + 1; }

  const SourceStatus& status() const { return status_; }

 private:
  SourceStatus status_;
};

}  // namespace gpuassay
