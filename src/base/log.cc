#include "base/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

namespace gpuassay {
namespace {

std::atomic<LogLevel> max_level = LogLevel::kInfo;

std::string_view Name(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "?";
}

}  // namespace

void SetLogLevel(LogLevel level) { max_level = level; }

void Log(LogLevel level, std::string_view text) {
  if (level > max_level.load(std::memory_order_relaxed)) return;
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string line = fmt::format("{:%Y-%m-%dT%H:%M:%SZ} gpuassay[{}] {}: {}\n",
                                       fmt::gmtime(now), getpid(), Name(level), text);
  // A log line that cannot be written has nowhere else to go.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace gpuassay
