#include "views/views_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/plain_text.h"
#include "views/owner_text.h"
#include "views/text_parts.h"

namespace gpuassay {
namespace {

// More of one device are summed up in a line: the JSON has them all.
constexpr std::size_t kShownMax = 16;
constexpr std::string_view kIndent = "    ";

using Lines = std::vector<std::vector<std::string>>;

std::string Coloured(std::string text, bool colour) {
  return colour ? fmt::format("\x1b[33m{}\x1b[0m", text) : text;
}

std::string DisagreementLines(const std::vector<Disagreement>& disagreements, bool colour) {
  std::string text;
  for (const Disagreement& one : disagreements) {
    text += fmt::format("  {} {}\n", Coloured("!", colour), Printable(one.text));
  }
  return text;
}

std::string UnitText(const DeviceUnit& unit) {
  const std::string replica = unit.replica ? fmt::format(" replica {}", *unit.replica) : "";
  return fmt::format("{}{}", unit.resource, replica);
}

std::string HardwareLines(const DeviceView& view) {
  Lines lines;
  lines.push_back({"busy " + PercentText(view.busy_ratio),
                   "SM active " + PercentText(view.sm_active_ratio),
                   "power " + WattsText(view.power_watts) + (view.mig ? " of the whole GPU" : "")});
  lines.push_back({"used " + MebibytesText(view.memory_used_bytes),
                   "of " + MebibytesText(view.memory_total_bytes),
                   "in processes " + MebibytesText(view.memory_processes_bytes),
                   "nobody's " + MebibytesText(view.memory_unattributed_bytes),
                   "driver's own " + MebibytesText(view.memory_reserved_bytes)});
  return "  hardware\n" + ColumnsText(lines, kIndent);
}

std::string SchedulerLines(const Views& views, const DeviceView& view) {
  if (!views.allocations_known) {
    return fmt::format("  scheduler\n{}not known what is handed out\n", kIndent);
  }
  if (view.units.empty() && view.allocations.empty()) {
    return fmt::format("  scheduler\n{}hands out nothing of it\n", kIndent);
  }
  Lines lines;
  std::set<std::string> handed_out;
  for (const Allocation& one : view.allocations) {
    handed_out.insert(one.unit.device_id);
    if (lines.size() >= kShownMax) continue;
    lines.push_back({UnitText(one.unit), "to " + OwnerText(one.owner),
                     std::string(SchedulerKindName(one.scheduler)) +
                         (one.claim.empty() ? "" : ", claim " + one.claim)});
  }
  const std::size_t more = view.allocations.size() - lines.size();
  if (more > 0) lines.push_back({fmt::format("{} more", more)});
  const auto free = std::ranges::count_if(
      view.units, [&](const DeviceUnit& unit) { return !handed_out.contains(unit.device_id); });
  if (free > 0)
    lines.push_back(
        {fmt::format("{} not handed out", CountText(static_cast<std::size_t>(free), "unit"))});
  return "  scheduler\n" + ColumnsText(lines, kIndent);
}

std::string PoolText(const ViewProcess& process) {
  if (!process.pool_reserved_bytes) return "";
  return fmt::format("pool {} reserved, {} allocated", MebibytesText(process.pool_reserved_bytes),
                     MebibytesText(process.pool_allocated_bytes));
}

std::string ProcessLines(const DeviceView& view) {
  Lines lines;
  for (const ViewProcess& process : view.processes) {
    if (lines.size() >= kShownMax) break;
    lines.push_back({fmt::format("PID {}", process.pid), process.name.empty() ? "?" : process.name,
                     OwnerText(process.owner), MebibytesText(process.memory_used_bytes),
                     "SM " + PercentText(process.sm_share_ratio), PoolText(process)});
  }
  const std::size_t more = view.processes.size() - lines.size();
  if (more > 0) lines.push_back({fmt::format("{} more", more)});
  if (lines.empty()) lines.push_back({"none"});
  return "  processes\n" + ColumnsText(lines, kIndent);
}

std::string HolderLines(const DeviceView& view) {
  if (view.holders.empty()) return "";
  std::string text = "  not listed, with the device file open\n";
  std::size_t shown = 0;
  for (const DeviceHolder& holder : view.holders) {
    if (shown++ == kShownMax) break;
    text +=
        fmt::format("{}PID {} {}, {}, {}: {}; {}\n", kIndent, holder.pid, Printable(holder.name),
                    Printable(OwnerText(holder.owner)), HolderKindName(holder.kind),
                    CleanUpName(holder.clean_up), CleanUpInterrupts(holder.clean_up));
  }
  if (view.holders.size() > kShownMax) {
    text += fmt::format("{}{} more\n", kIndent, view.holders.size() - kShownMax);
  }
  return text;
}

std::string DeviceLines(const Views& views, const DeviceView& view, bool colour) {
  const MigIdentity* const mig = view.mig ? &*view.mig : nullptr;
  return fmt::format("{}  {}  {}\n", DeviceText(view.gpu, mig), Printable(view.gpu.name),
                     Printable(mig != nullptr ? mig->uuid : view.gpu.uuid)) +
         HardwareLines(view) + SchedulerLines(views, view) + ProcessLines(view) +
         HolderLines(view) + DisagreementLines(view.disagreements, colour) + "\n";
}

// Which devices the units of a pod are, by name and UUID; the other direction stands above.
std::string DevicesOf(const Views& views, const PodView& pod) {
  std::vector<std::string> names;
  for (const DeviceUnit& unit : pod.units) {
    const auto device = std::ranges::find_if(views.devices, [&unit](const DeviceView& view) {
      return view.gpu.uuid == unit.gpu_uuid && (view.mig ? view.mig->uuid : "") == unit.mig_uuid;
    });
    if (device == views.devices.end()) {
      names.push_back(fmt::format("{} (no device of this node)", unit.device_id));
      continue;
    }
    const std::string replica = unit.replica ? fmt::format(" replica {}", *unit.replica) : "";
    names.push_back(fmt::format("{} {}{}",
                                DeviceText(device->gpu, device->mig ? &*device->mig : nullptr),
                                unit.mig_uuid.empty() ? unit.gpu_uuid : unit.mig_uuid, replica));
  }
  return names.empty() ? "no device" : fmt::format("{}", fmt::join(names, ", "));
}

std::string ProcessesText(std::size_t count) {
  return count == 1 ? "1 process" : fmt::format("{} processes", count);
}

// Of a pod without a process there is nothing to measure.
std::string PodLines(const Views& views, const PodView& pod, bool colour) {
  std::string text = fmt::format("pod {}  {}\n", Printable(PodText(pod.pod.identity)),
                                 Printable(DevicesOf(views, pod)));
  const std::string asked = pod.pod.memory_request_bytes
                                ? MebibytesText(Reading(*pod.pod.memory_request_bytes))
                                : "not said";
  Lines lines = {{ProcessesText(pod.processes), "memory asked for " + asked}};
  if (pod.processes > 0) {
    lines = {{ProcessesText(pod.processes), "SM " + PercentText(pod.sm_share_ratio),
              "power " + WattsText(pod.power_watts), "memory asked for " + asked,
              "used " + MebibytesText(pod.memory_used_bytes),
              "reserved " + MebibytesText(pod.pool_reserved_bytes),
              "allocated " + MebibytesText(pod.pool_allocated_bytes)}};
  }
  return text + ColumnsText(lines, kIndent) + DisagreementLines(pod.disagreements, colour);
}

std::string ResourceLines(const Views& views) {
  Lines lines;
  for (const ResourceView& resource : views.resources) {
    lines.push_back({resource.resource, CountText(resource.units, "unit"),
                     fmt::format("{} handed out", resource.allocated),
                     fmt::format("of {}", CountText(resource.devices, "device"))});
  }
  return lines.empty() ? "" : "\n" + ColumnsText(lines, "");
}

}  // namespace

std::string ViewsText(const Views& views, bool colour) {
  std::string text;
  for (const DeviceView& view : views.devices) text += DeviceLines(views, view, colour);
  if (views.devices.empty()) text += "No GPU.\n";
  for (const PodView& pod : views.pods) text += PodLines(views, pod, colour);
  text += ResourceLines(views);
  if (!views.disagreements.empty()) text += "\n" + DisagreementLines(views.disagreements, colour);
  return text;
}

}  // namespace gpuassay
