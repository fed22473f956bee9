// A snapshot as Prometheus text or OpenMetrics: gpuassay_* metrics from metrics.def and, on
// request, the names of dcgm-exporter (dcgm_names.def).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace gpuassay {

enum class DcgmNames { kOff, k48, k49 };  // exporter version whose names and units are used
enum class TextFormat { kPrometheus, kOpenMetrics };  // text 0.0.4, OpenMetrics 1.0.0

struct ExpositionOptions {
  DcgmNames dcgm = DcgmNames::k48;
  TextFormat format = TextFormat::kPrometheus;
  // Processes per GPU with series of their own, the largest by memory; the rest is summed as
  // pid="other".
  std::size_t processes_per_gpu_max = 20;
};

// "4.8", "4.9", "off"; nullopt for anything else.
std::optional<DcgmNames> ParseDcgmNames(std::string_view text);

// Body that depends only on the snapshot, so that it can be kept per snapshot. Without OpenMetrics'
// # EOF.
std::string RenderMetrics(const Snapshot& snapshot, const ExpositionOptions& options);

// What changes between two snapshots too: source age, readiness, own resource use. Ends with # EOF
// in OpenMetrics.
std::string RenderLiveMetrics(const Snapshot& snapshot, WallTime now, TextFormat format);

}  // namespace gpuassay
