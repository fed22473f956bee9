// A snapshot as Prometheus text or OpenMetrics: gpuassay_* metrics from metrics.def and, on
// request, the names of dcgm-exporter (dcgm_names.def). docs/exposition.md describes labels and
// bounds, docs/dcgm-compatibility.md the second family. All functions are pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/root_fs.h"
#include "model/snapshot.h"

namespace gpuassay {

enum class DcgmNames { kOff, k48, k49 };  // exporter version whose names and units are used
enum class TextFormat { kPrometheus, kOpenMetrics };  // text 0.0.4, OpenMetrics 1.0.0

// What stands in `Content-Type`.
std::string_view ContentType(TextFormat format);

struct ExpositionOptions {
  DcgmNames dcgm = DcgmNames::k48;
  TextFormat format = TextFormat::kPrometheus;
  // Processes per GPU with series of their own, the largest by memory. The gauges of the rest are
  // summed as pid="other"; their counters are left out, because the sum of a changing set of
  // counters would fall.
  std::size_t processes_per_gpu_max = 20;
};

// Longest process name in a label.
inline constexpr std::size_t kProcessNameBytesMax = 64;

// "4.8", "4.9", "off"; nullopt for anything else.
std::optional<DcgmNames> ParseDcgmNames(std::string_view text);

// Body that depends only on the snapshot, so that it can be kept per snapshot. Without OpenMetrics'
// # EOF. All series of a name stand together, in the order of the catalogue, then of the GPUs; a
// missing reading has no series; no series appears twice.
std::string RenderMetrics(const Snapshot& snapshot, const ExpositionOptions& options);

// What the serving process itself uses.
struct ProcessUsage {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double start_time_seconds = 0;  // since 1970
};
// From /proc/self/stat and /proc/stat under `root`.
Result<ProcessUsage> ReadProcessUsage(const RootFs& root);
// `self_stat`, `stat`: the content of those files.
Result<ProcessUsage> ParseProcessUsage(std::string_view self_stat, std::string_view stat,
                                       double ticks_per_second, double page_bytes);

struct RequestCount {
  std::string_view path;
  int code = 0;
  std::uint64_t count = 0;
};

// What only the server knows.
struct LiveDetails {
  std::optional<bool> ready;
  std::optional<ProcessUsage> usage;
  std::span<const RequestCount> requests;
};

// What changes between two snapshots too: source age, readiness, own resource use. Ends with # EOF
// in OpenMetrics.
std::string RenderLiveMetrics(const Snapshot& snapshot, WallTime now, TextFormat format,
                              const LiveDetails& details = {});

}  // namespace gpuassay
