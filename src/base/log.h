// Log lines to standard error: `2026-01-01T00:00:00Z gpuassay[pid] warning: text`. Thread-safe: one
// line is one write(2). Log on a change of state, never once per cycle.
#pragma once

#include <string_view>

namespace gpuassay {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// Lines above this level are dropped. Default kInfo.
void SetLogLevel(LogLevel level);

void Log(LogLevel level, std::string_view text);
inline void LogError(std::string_view text) { Log(LogLevel::kError, text); }
inline void LogWarning(std::string_view text) { Log(LogLevel::kWarning, text); }
inline void LogInfo(std::string_view text) { Log(LogLevel::kInfo, text); }
inline void LogDebug(std::string_view text) { Log(LogLevel::kDebug, text); }

}  // namespace gpuassay
