#include "cli/simulate_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/duration.h"
#include "cli/footnotes.h"
#include "cli/snapshot_table.h"

namespace gpuassay {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kGiga = 1e9;

struct Summary {
  std::size_t known = 0;
  double sum = 0;
  double largest = 0;
};

std::optional<Summary> Over(const Snapshot& snapshot, Reading GpuReadings::*member) {
  Summary summary;
  for (const Gpu& gpu : snapshot.gpus) {
    const Reading& reading = gpu.readings.*member;
    if (!reading) continue;
    summary.largest = summary.known == 0 ? *reading : std::max(summary.largest, *reading);
    summary.sum += *reading;
    ++summary.known;
  }
  return summary.known == 0 ? std::nullopt : std::optional(summary);
}

std::string Mean(const Snapshot& snapshot, Reading GpuReadings::*member) {
  const auto summary = Over(snapshot, member);
  return summary ? PercentText(summary->sum / static_cast<double>(summary->known)) : "-";
}

std::string Sum(const Snapshot& snapshot, Reading GpuReadings::*member, double unit, int digits) {
  const auto summary = Over(snapshot, member);
  return summary ? fmt::format("{:.{}f}", summary->sum / unit, digits) : "-";
}

std::string Largest(const Snapshot& snapshot, Reading GpuReadings::*member) {
  const auto summary = Over(snapshot, member);
  return summary ? fmt::format("{:.0f}", summary->largest) : "-";
}

// "gpu lost (GPU 7)", "power cap (GPU 0-3)"; nothing of GPUs that are well or idle.
std::vector<std::string> Conditions(const Snapshot& snapshot) {
  std::map<std::string, std::set<std::uint32_t>> gpus;
  for (const Gpu& gpu : snapshot.gpus) {
    const std::string state = StateText(gpu.readings);
    if (!state.empty() && state != "ok") gpus[state].insert(gpu.identity.index);
    const std::string reasons = ClockReasonsText(gpu.readings);
    if (reasons.empty() || reasons == "none" || reasons == "idle") continue;
    gpus[reasons].insert(gpu.identity.index);
  }
  std::vector<std::string> parts;
  for (const auto& [condition, indices] : gpus) {
    parts.push_back(fmt::format("{} (GPU {})", condition, Ranges(indices)));
  }
  return parts;
}

std::string EventText(const DriverEvent& event, const Snapshot& snapshot) {
  std::string where = event.gpu_uuid;
  for (const Gpu& gpu : snapshot.gpus) {
    if (gpu.identity.uuid == event.gpu_uuid) where = fmt::format("GPU {}", gpu.identity.index);
  }
  if (event.kind == EventKind::kXid) return fmt::format("{}: Xid {}", where, event.data);
  return fmt::format("{}: {}", where, EventKindName(event.kind));
}

std::string Remarks(const Snapshot& snapshot) {
  std::vector<std::string> parts = Conditions(snapshot);
  for (const DriverEvent& event : snapshot.events) parts.push_back(EventText(event, snapshot));
  if (!snapshot.sources.empty() && !snapshot.sources[0].error.empty()) {
    parts.push_back(snapshot.sources[0].error);
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string Columns(std::string_view time, std::string_view up, std::string_view util,
                    std::string_view sm, std::string_view tensor, std::string_view dram,
                    std::string_view power, std::string_view temperature, std::string_view memory,
                    std::string_view nvlink, std::string_view remarks) {
  std::string line =
      fmt::format("{:>9} {:>5} {:>6} {:>6} {:>6} {:>6} {:>7} {:>5} {:>8} {:>8}  {}", time, up, util,
                  sm, tensor, dram, power, temperature, memory, nvlink, remarks);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string SimulateTitle() {
  return Columns("time", "GPUs", "util", "SM", "tensor", "DRAM", "power W", "max C", "used GiB",
                 "NVL GB/s", "state, clocks held, events");
}

std::string SimulateLine(const Snapshot& snapshot, Duration since_start) {
  const auto up = Over(snapshot, &GpuReadings::up);
  const std::string gpus =
      fmt::format("{}/{}", up ? fmt::format("{:.0f}", up->sum) : "-", snapshot.gpus.size());
  return Columns(FormatDuration(since_start), gpus, Mean(snapshot, &GpuReadings::utilization_ratio),
                 Mean(snapshot, &GpuReadings::sm_active_ratio),
                 Mean(snapshot, &GpuReadings::tensor_active_ratio),
                 Mean(snapshot, &GpuReadings::dram_active_ratio),
                 Sum(snapshot, &GpuReadings::power_watts, 1, 0),
                 Largest(snapshot, &GpuReadings::temperature_celsius),
                 Sum(snapshot, &GpuReadings::memory_used_bytes, kGib, 1),
                 Sum(snapshot, &GpuReadings::nvlink_transmit_bytes_per_second, kGiga, 0),
                 Remarks(snapshot));
}

}  // namespace gpuassay
