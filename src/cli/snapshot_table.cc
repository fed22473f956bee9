#include "cli/snapshot_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/footnotes.h"
#include "cli/table.h"
#include "model/snapshot_json.h"
#include "views/owner_text.h"

namespace gpuassay {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kGiga = 1e9;
constexpr double kMega = 1e6;
// Within so many degrees of the slowdown temperature a GPU is shown in yellow.
constexpr double kCloseToSlowdown = 5;
// "Utilised" while next to nothing works: half of the time against a tenth of the SMs.
constexpr double kUtilizedFrom = 0.5;
constexpr double kSmActiveBelow = 0.1;

constexpr auto kRight = Table::Align::kRight;
constexpr auto kLeft = Table::Align::kLeft;

struct ClockReason {
  Reading GpuReadings::*member;
  std::string_view name;
};
constexpr std::array<ClockReason, 9> kClockReasons = {{
    {&GpuReadings::clock_event_idle, "idle"},
    {&GpuReadings::clock_event_application_clocks, "application clocks"},
    {&GpuReadings::clock_event_software_power_cap, "power cap"},
    {&GpuReadings::clock_event_hardware_slowdown, "hardware slowdown"},
    {&GpuReadings::clock_event_sync_boost, "sync boost"},
    {&GpuReadings::clock_event_software_thermal, "software thermal"},
    {&GpuReadings::clock_event_hardware_thermal, "hardware thermal"},
    {&GpuReadings::clock_event_power_brake, "power brake"},
    {&GpuReadings::clock_event_display, "display"},
}};

// What the driver asks for (metrics.def, recovery_action).
constexpr std::array<std::string_view, 6> kRecoveryActions = {
    "ok", "reset the GPU", "reboot", "drain P2P", "drain and reset", "restart IMEX"};

std::string Bytes(double bytes) { return fmt::format("{:.1f}", bytes / kGib); }
std::string Rate(double bytes_per_second) {
  return fmt::format("{:.1f}", bytes_per_second / kGiga);
}
std::string Whole(double value) { return fmt::format("{:.0f}", value); }
std::string Megahertz(double hertz) { return fmt::format("{:.0f}", hertz / kMega); }

// Makes the cells of one GPU and notes why some are missing.
class Cells {
 public:
  Cells(Footnotes& notes, std::uint32_t gpu) : notes_(notes), gpu_(gpu) {}

  template <class Format>
  std::string Text(const Reading& reading, std::string_view what, Format&& format) {
    if (reading) return format(*reading);
    notes_.Add(reading.missing(), what, gpu_);
    return "-";
  }
  template <class Format>
  Cell One(const Reading& reading, std::string_view what, Format&& format,
           Colour colour = Colour::kNone) {
    return {Text(reading, what, format), colour};
  }
  // "320 / 700"; one "-" when both are missing.
  template <class Format>
  std::string Two(const Reading& first, const Reading& second, std::string_view what,
                  Format&& format) {
    const std::string a = Text(first, what, format);
    const std::string b = Text(second, what, format);
    return a == "-" && b == "-" ? "-" : fmt::format("{}/{}", a, b);
  }

 private:
  Footnotes& notes_;
  std::uint32_t gpu_;
};

Colour TemperatureColour(const GpuReadings& r) {
  if (!r.temperature_celsius || !r.temperature_slowdown_celsius) return Colour::kNone;
  const double left = *r.temperature_slowdown_celsius - *r.temperature_celsius;
  if (left <= 0) return Colour::kRed;
  return left <= kCloseToSlowdown ? Colour::kYellow : Colour::kNone;
}

std::string Titles(const Snapshot& snapshot) {
  const NodeIdentity& node = snapshot.node;
  std::vector<std::string> parts;
  if (!node.hostname.empty()) parts.push_back(node.hostname);
  parts.push_back(TimeText(snapshot.time));
  if (!node.driver_version.empty()) parts.push_back("driver " + node.driver_version);
  if (!node.cuda_version.empty()) parts.push_back("CUDA " + node.cuda_version);
  parts.push_back(
      fmt::format("{} GPU{}", snapshot.gpus.size(), snapshot.gpus.size() == 1 ? "" : "s"));
  return fmt::format("{}\n", fmt::join(parts, "  "));
}

std::string ShortName(std::string_view name) {
  constexpr std::string_view kMaker = "NVIDIA ";
  if (name.starts_with(kMaker)) name.remove_prefix(kMaker.size());
  return std::string(name);
}

std::string DeviceTable(const Snapshot& snapshot, Footnotes& notes, bool colour) {
  Table table({{"GPU", kRight},
               {"Name", kLeft, 22},
               {"Bus id"},
               {"Temp/slow C", kRight},
               {"Power/limit W", kRight},
               {"SM clock/max MHz", kRight},
               {"P", kRight},
               {"Fan", kRight}});
  for (const Gpu& gpu : snapshot.gpus) {
    const GpuReadings& r = gpu.readings;
    Cells cells(notes, gpu.identity.index);
    std::string temperature = cells.Text(r.temperature_celsius, "temperature", Whole);
    // Newer models report the degrees that are left instead of a threshold.
    if (r.temperature_slowdown_celsius || !r.temperature_margin_celsius) {
      temperature = cells.Two(r.temperature_celsius, r.temperature_slowdown_celsius,
                              "slowdown temperature", Whole);
    } else {
      temperature += fmt::format(" ({:.0f} left)", *r.temperature_margin_celsius);
    }
    table.Add({{fmt::format("{}", gpu.identity.index)},
               {ShortName(gpu.identity.name)},
               {gpu.identity.pci_bus_id},
               {temperature, TemperatureColour(r)},
               {cells.Two(r.power_watts, r.power_limit_watts, "power", Whole)},
               {cells.Two(r.sm_clock_hertz, r.sm_clock_max_hertz, "SM clock", Megahertz)},
               cells.One(r.performance_state, "P", Whole),
               cells.One(r.fan_speed_ratio, "fan", PercentText)});
  }
  return table.Render(colour);
}

std::string WorkTable(const Snapshot& snapshot, Footnotes& notes, bool colour) {
  Table table({{"GPU", kRight},
               {"Util", kRight},
               {"SM active", kRight},
               {"Occupancy", kRight},
               {"Tensor", kRight},
               {"DRAM", kRight},
               {"Used GiB", kRight},
               {"Reserved", kRight},
               {"Total", kRight},
               {"Processes", kRight}});
  for (const Gpu& gpu : snapshot.gpus) {
    const GpuReadings& r = gpu.readings;
    Cells cells(notes, gpu.identity.index);
    table.Add({{fmt::format("{}", gpu.identity.index)},
               cells.One(r.utilization_ratio, "util", PercentText),
               cells.One(r.sm_active_ratio, "SM active", PercentText),
               cells.One(r.sm_occupancy_ratio, "occupancy", PercentText),
               cells.One(r.tensor_active_ratio, "tensor", PercentText),
               cells.One(r.dram_active_ratio, "DRAM", PercentText),
               cells.One(r.memory_used_bytes, "memory used", Bytes),
               cells.One(r.memory_reserved_bytes, "memory reserved", Bytes),
               cells.One(r.memory_total_bytes, "memory total", Bytes),
               cells.One(r.process_count, "processes", Whole)});
  }
  return table.Render(colour);
}

std::string PcieText(Cells& cells, const Reading& generation, const Reading& width) {
  const std::string gen = cells.Text(generation, "PCIe", Whole);
  const std::string lanes = cells.Text(width, "PCIe", Whole);
  return gen == "-" && lanes == "-" ? "-" : fmt::format("Gen{} x{}", gen, lanes);
}

// A narrower link is a fault; a slower one is normal at idle.
Colour PcieColour(const GpuReadings& r) {
  const bool known = r.pcie_link_width && r.pcie_link_width_max;
  return known && *r.pcie_link_width < *r.pcie_link_width_max ? Colour::kYellow : Colour::kNone;
}

Cell NvlinkCell(Cells& cells, const GpuReadings& r) {
  if (r.nvlink_links && *r.nvlink_links == 0) return {"none"};
  const std::string text = cells.Two(r.nvlink_links_active, r.nvlink_links, "NVLink", Whole);
  const bool down =
      r.nvlink_links_active && r.nvlink_links && *r.nvlink_links_active < *r.nvlink_links;
  return {text, down ? Colour::kYellow : Colour::kNone};
}

std::string LinkTable(const Snapshot& snapshot, Footnotes& notes, bool colour) {
  Table table({{"GPU", kRight},
               {"PCIe now"},
               {"PCIe max"},
               {"PCIe out/in GB/s", kRight},
               {"Replays", kRight},
               {"NVLinks up", kRight},
               {"NVLink out/in GB/s", kRight}});
  for (const Gpu& gpu : snapshot.gpus) {
    const GpuReadings& r = gpu.readings;
    Cells cells(notes, gpu.identity.index);
    const bool no_nvlink = r.nvlink_links && *r.nvlink_links == 0;
    table.Add({{fmt::format("{}", gpu.identity.index)},
               {PcieText(cells, r.pcie_link_generation, r.pcie_link_width), PcieColour(r)},
               {PcieText(cells, r.pcie_link_generation_max, r.pcie_link_width_max)},
               {cells.Two(r.pcie_transmit_bytes_per_second, r.pcie_receive_bytes_per_second,
                          "PCIe rate", Rate)},
               cells.One(r.pcie_replays_total, "PCIe replays", Whole),
               NvlinkCell(cells, r),
               {no_nvlink ? "none"
                          : cells.Two(r.nvlink_transmit_bytes_per_second,
                                      r.nvlink_receive_bytes_per_second, "NVLink rate", Rate)}});
  }
  return table.Render(colour);
}

Cell StateCell(const GpuReadings& r) {
  std::string text = StateText(r);
  const bool well = text == "ok" || text.empty();
  return {text.empty() ? "-" : std::move(text), well ? Colour::kNone : Colour::kRed};
}

Cell ClockCell(Cells& cells, const GpuReadings& r) {
  const std::string text = ClockReasonsText(r);
  if (text.empty()) {
    return cells.One(r.clock_event_software_power_cap, "clocks held by", Whole);
  }
  return {text, text == "none" || text == "idle" ? Colour::kNone : Colour::kYellow};
}

Cell RemappedCell(Cells& cells, const GpuReadings& r) {
  std::string text =
      cells.Two(r.remapped_rows_correctable, r.remapped_rows_uncorrectable, "remapped rows", Whole);
  Colour colour = Colour::kNone;
  if (r.row_remap_pending && *r.row_remap_pending > 0) {
    text += " pending";
    colour = Colour::kYellow;
  }
  if (r.row_remap_failed && *r.row_remap_failed > 0) {
    text += " FAILED";
    colour = Colour::kRed;
  }
  return {text, colour};
}

Cell XidCell(const Gpu& gpu) {
  std::vector<std::string> parts;
  for (const XidCount& xid : gpu.xids) {
    parts.push_back(xid.count == 1 ? fmt::format("{}", xid.xid)
                                   : fmt::format("{} ({}x)", xid.xid, xid.count));
  }
  if (parts.empty()) return {"none"};
  return {fmt::format("{}", fmt::join(parts, ", ")), Colour::kRed};
}

std::string HealthTable(const Snapshot& snapshot, Footnotes& notes, bool colour) {
  Table table({{"GPU", kRight},
               {"State", kLeft, 18},
               {"Clocks held by", kLeft, 24},
               {"ECC corr/uncorr", kRight},
               {"Remapped corr/uncorr"},
               {"Xid", kLeft, 16},
               {"MIG"}});
  for (const Gpu& gpu : snapshot.gpus) {
    const GpuReadings& r = gpu.readings;
    Cells cells(notes, gpu.identity.index);
    const bool uncorrected = r.ecc_uncorrected_errors_total && *r.ecc_uncorrected_errors_total > 0;
    const std::string mig = cells.Text(r.mig_enabled, "MIG", [&gpu](double enabled) {
      return enabled > 0 ? fmt::format("on, {}", gpu.mig.size()) : std::string("off");
    });
    table.Add(
        {{fmt::format("{}", gpu.identity.index)},
         StateCell(r),
         ClockCell(cells, r),
         {cells.Two(r.ecc_corrected_errors_total, r.ecc_uncorrected_errors_total, "ECC", Whole),
          uncorrected ? Colour::kRed : Colour::kNone},
         RemappedCell(cells, r),
         XidCell(gpu),
         {mig}});
  }
  return table.Render(colour);
}

std::string MigTable(const Snapshot& snapshot, Footnotes& notes, bool colour) {
  Table table({{"GPU", kRight},
               {"MIG", kRight},
               {"GI/CI", kRight},
               {"Profile"},
               {"SMs", kRight},
               {"SM active", kRight},
               {"Tensor", kRight},
               {"DRAM", kRight},
               {"Used/total GiB", kRight},
               {"Processes", kRight}});
  for (const Gpu& gpu : snapshot.gpus) {
    for (const MigInstance& mig : gpu.mig) {
      const MigReadings& r = mig.readings;
      Cells cells(notes, gpu.identity.index);
      table.Add(
          {{fmt::format("{}", gpu.identity.index)},
           {fmt::format("{}", mig.identity.index)},
           {fmt::format("{}/{}", mig.identity.gpu_instance_id, mig.identity.compute_instance_id)},
           {mig.identity.profile},
           cells.One(r.multiprocessors, "MIG SMs", Whole),
           cells.One(r.sm_active_ratio, "MIG SM active", PercentText),
           cells.One(r.tensor_active_ratio, "MIG tensor", PercentText),
           cells.One(r.dram_active_ratio, "MIG DRAM", PercentText),
           {cells.Two(r.memory_used_bytes, r.memory_total_bytes, "MIG memory", Bytes)},
           cells.One(r.process_count, "MIG processes", Whole)});
    }
  }
  return table.empty() ? "" : '\n' + table.Render(colour);
}

void AddProcesses(const Gpu& gpu, Footnotes& notes, Table& table) {
  std::vector<const GpuProcess*> processes;
  for (const GpuProcess& process : gpu.processes) processes.push_back(&process);
  std::ranges::stable_sort(processes, [](const GpuProcess* a, const GpuProcess* b) {
    return a->readings.memory_used_bytes.get() > b->readings.memory_used_bytes.get();
  });
  const std::string index = fmt::format("{}", gpu.identity.index);
  const std::size_t shown = std::min(processes.size(), kProcessesShownMax);
  for (std::size_t i = 0; i < shown; ++i) {
    const GpuProcess& process = *processes[i];
    Cells cells(notes, gpu.identity.index);
    table.Add({{index},
               {process.gpu_instance_id ? fmt::format("{}", *process.gpu_instance_id) : ""},
               {fmt::format("{}", process.pid)},
               {std::string(ProcessTypeName(process.type))},
               cells.One(process.readings.memory_used_bytes, "process memory", Bytes),
               cells.One(process.readings.sm_utilization_ratio, "process SM", PercentText),
               {process.name.empty() ? "?" : process.name},
               {process.owner == ProcessOwner{} ? "" : OwnerText(process.owner)}});
  }
  const std::size_t rest = processes.size() - shown + gpu.processes_dropped;
  if (rest == 0) return;
  // Of processes that are only counted the memory is unknown.
  std::optional<double> memory = gpu.processes_dropped > 0 ? std::nullopt : std::optional(0.0);
  for (std::size_t i = shown; i < processes.size() && memory; ++i) {
    const Reading& used = processes[i]->readings.memory_used_bytes;
    memory = used ? std::optional(*memory + *used) : std::nullopt;
  }
  table.Add({{index},
             {""},
             {""},
             {""},
             {memory ? Bytes(*memory) : "-"},
             {""},
             {fmt::format("{} more", rest)},
             {""}});
}

std::string ProcessTable(const Snapshot& snapshot, Footnotes& notes, bool colour) {
  Table table({{"GPU", kRight},
               {"GI", kRight},
               {"PID", kRight},
               {"Type"},
               {"GiB", kRight},
               {"SM", kRight},
               {"Process", kLeft, 24},
               {"Owner", kLeft, 32}});
  for (const Gpu& gpu : snapshot.gpus) AddProcesses(gpu, notes, table);
  return table.empty() ? "\nNo processes.\n" : '\n' + table.Render(colour);
}

// What the numbers above hide from a quick look.
std::string Remarks(const Snapshot& snapshot) {
  std::string out;
  for (const Gpu& gpu : snapshot.gpus) {
    const GpuReadings& r = gpu.readings;
    const Reading& busy = r.utilization_mean_ratio ? r.utilization_mean_ratio : r.utilization_ratio;
    if (!busy || !r.sm_active_ratio) continue;
    if (*busy < kUtilizedFrom || *r.sm_active_ratio >= kSmActiveBelow) continue;
    out += fmt::format(
        "!   GPU {}: {} utilised, but only {} of its SM time worked; see gpuassay explain util.\n",
        gpu.identity.index, PercentText(*busy), PercentText(*r.sm_active_ratio));
  }
  for (const SourceStatus& source : snapshot.sources) {
    if (source.error.empty()) continue;
    out += Wrapped(fmt::format("!   source {}: {}", source.name, source.error), 100, 4) + '\n';
  }
  return out;
}

}  // namespace

std::string PercentText(double ratio) {
  const double percent = 100 * ratio;
  if (percent == 0 || percent >= 9.95) return fmt::format("{:.0f}%", percent);
  return percent >= 0.995 ? fmt::format("{:.1f}%", percent) : fmt::format("{:.2f}%", percent);
}

std::string StateText(const GpuReadings& readings) {
  if (readings.up && *readings.up == 0) {
    // Its own numbers are missing for the reason it is down.
    const Reading& any = readings.temperature_celsius;
    if (any || any.missing() == Missing::kDriverError) return "down";
    std::string text(MissingName(any.missing()));
    std::ranges::replace(text, '_', ' ');
    return text;
  }
  if (readings.recovery_action && *readings.recovery_action > 0) {
    const auto action = static_cast<std::size_t>(*readings.recovery_action);
    return action < kRecoveryActions.size() ? std::string(kRecoveryActions[action])
                                            : fmt::format("recovery action {}", action);
  }
  return readings.up ? "ok" : "";
}

std::string ClockReasonsText(const GpuReadings& readings) {
  std::vector<std::string_view> names;
  bool known = false;
  for (const ClockReason& reason : kClockReasons) {
    const Reading& active = readings.*reason.member;
    known = known || active.has_value();
    if (active && *active > 0) names.push_back(reason.name);
  }
  if (!known) return "";
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string SnapshotTable(const Snapshot& snapshot, bool colour) {
  Footnotes notes;
  std::string out = Titles(snapshot);
  if (!snapshot.gpus.empty()) {
    out += '\n' + DeviceTable(snapshot, notes, colour);
    out += '\n' + WorkTable(snapshot, notes, colour);
    out += '\n' + LinkTable(snapshot, notes, colour);
    out += '\n' + HealthTable(snapshot, notes, colour);
    out += MigTable(snapshot, notes, colour);
    out += ProcessTable(snapshot, notes, colour);
  }
  const std::string remarks = Remarks(snapshot);
  const std::string footnotes = notes.Render();
  if (!remarks.empty() || !footnotes.empty()) out += '\n' + remarks + footnotes;
  return out;
}

}  // namespace gpuassay
