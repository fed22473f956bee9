#include "exposition/dcgm.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exposition/owners.h"

namespace gpuassay {
namespace {

constexpr double kPerMebibyte = 1.0 / (1024 * 1024);

enum class ValueFormat { kInteger, kIntegerDown, kDouble, kXid };

// One version's name of a field and how it prints the value.
struct Spelling {
  std::string_view name;
  MetricType type;
  ValueFormat format;
  double scale;
  std::string_view unit;
};

struct Field {
  Spelling v48;
  Spelling v49;
  Reading (*card)(const Gpu&);
  Reading MigReadings::*instance;  // nullptr: only the card has it
  std::string_view help;
};

// --- readings that are no single field of ours ---------------------------------------------------

// The bits of NVML's clock event reasons; known only when all of them are.
Reading ClockEventReasons(const Gpu& gpu) {
  const GpuReadings& readings = gpu.readings;
  const std::array<std::pair<Reading, int>, 9> bits = {{
      {readings.clock_event_idle, 0x1},
      {readings.clock_event_application_clocks, 0x2},
      {readings.clock_event_software_power_cap, 0x4},
      {readings.clock_event_hardware_slowdown, 0x8},
      {readings.clock_event_sync_boost, 0x10},
      {readings.clock_event_software_thermal, 0x20},
      {readings.clock_event_hardware_thermal, 0x40},
      {readings.clock_event_power_brake, 0x80},
      {readings.clock_event_display, 0x100},
  }};
  int mask = 0;
  for (const auto& [reading, bit] : bits) {
    if (!reading) return reading;
    if (*reading > 0) mask |= bit;
  }
  return mask;
}

// DCGM: used / (total - reserved).
Reading MemoryUsedShare(const Gpu& gpu) {
  const GpuReadings& readings = gpu.readings;
  for (const Reading& reading :
       {readings.memory_used_bytes, readings.memory_total_bytes, readings.memory_reserved_bytes}) {
    if (!reading) return reading;
  }
  const double usable = *readings.memory_total_bytes - *readings.memory_reserved_bytes;
  if (usable <= 0) return Missing::kImplausible;
  return *readings.memory_used_bytes / usable;
}

Reading NvLinkBytesPerSecond(const Gpu& gpu) {
  const Reading& transmit = gpu.readings.nvlink_transmit_bytes_per_second;
  const Reading& receive = gpu.readings.nvlink_receive_bytes_per_second;
  if (!transmit) return transmit;
  if (!receive) return receive;
  return *transmit + *receive;
}

// Over all links; one unknown link makes the sum unknown.
template <Reading LinkReadings::*kMember>
Reading NvLinkSum(const Gpu& gpu) {
  if (gpu.links.empty()) return Missing::kNotSupported;
  double sum = 0;
  for (const NvLink& link : gpu.links) {
    const Reading& reading = link.readings.*kMember;
    if (!reading) return reading;
    sum += *reading;
  }
  return sum;
}

// The exporter prints 0 while there was none, and alerts are written for that. We know that there
// was none once the GPU has been watched.
Reading LastXid(const Gpu& gpu) {
  const GpuReadings& readings = gpu.readings;
  if (readings.last_xid) return readings.last_xid;
  if (readings.observed_seconds_total) return 0.0;
  return readings.last_xid;
}

template <Reading GpuReadings::*kMember>
Reading Card(const Gpu& gpu) {
  return gpu.readings.*kMember;
}

// --- the table -----------------------------------------------------------------------------------

#define CARD(field) Card<&GpuReadings::field>
#define INSTANCE(field) &MigReadings::field
#define WHOLE nullptr

constexpr Field kFields[] = {
#define DCGM_METRIC(name48, type48, format48, scale48, unit48, name49, type49, format49, scale49, \
                    unit49, evidence, card, instance, help)                                       \
  {{name48, MetricType::type48, ValueFormat::format48, scale48, unit48},                          \
   {name49, MetricType::type49, ValueFormat::format49, scale49, unit49},                          \
   card,                                                                                          \
   instance,                                                                                      \
   help},
#include "exposition/dcgm_names.def"
};

constexpr DcgmNamePair kNamePairs[] = {
#define DCGM_METRIC(name48, type48, format48, scale48, unit48, name49, type49, format49, scale49, \
                    unit49, evidence, card, instance, help)                                       \
  {name48, name49, DcgmEvidence::evidence},
#include "exposition/dcgm_names.def"
};

// --- labels --------------------------------------------------------------------------------------

struct Labels {
  std::string before;  // up to the model name
  std::string after;   // from the host name
};

// "3g.40gb" of "1c.3g.40gb": the exporter knows GPU instances, not compute instances.
std::string_view InstanceProfile(std::string_view profile) {
  const std::size_t dot = profile.find('.');
  if (dot == std::string_view::npos || dot == 0 || profile[dot - 1] != 'c') return profile;
  return profile.substr(dot + 1);
}

Labels LabelsOf(const Gpu& gpu, const NodeIdentity& node, DcgmNames names) {
  Labels labels;
  AppendLabel(labels.before, "gpu", std::uint64_t{gpu.identity.index});
  AppendLabel(labels.before, "UUID", gpu.identity.uuid);
  AppendLabel(labels.before, "pci_bus_id", gpu.identity.pci_bus_id);
  AppendLabel(labels.before, "device", "nvidia" + std::to_string(gpu.identity.index));
  AppendLabel(labels.before, "modelName", gpu.identity.name);
  if (!node.hostname.empty()) AppendLabel(labels.after, "hostname", node.hostname);
  if (!node.driver_version.empty()) {
    AppendLabel(
        labels.after,
        names == DcgmNames::k49 ? "DCGM_FI_SYSTEM_DRIVER_VERSION" : "DCGM_FI_DRIVER_VERSION",
        node.driver_version);
  }
  return labels;
}

// A device that is one pod's alone carries it, as with the exporter. A shared one carries nobody:
// the same value on each of its pods would count it several times.
void AppendPod(std::string& labels, const Snapshot& snapshot, std::string_view gpu_uuid,
               std::string_view mig_uuid) {
  const ProcessOwner* const owner = ExclusiveOwner(snapshot.scheduler.get(), gpu_uuid, mig_uuid);
  if (owner == nullptr) return;
  if (owner->container) AppendLabel(labels, "container", owner->container->name);
  AppendLabel(labels, "namespace", owner->pod->namespace_name);
  AppendLabel(labels, "pod", owner->pod->name);
}

struct InstanceView {
  const MigReadings* readings;
  std::string labels;  // all of them
};

struct GpuView {
  const Gpu* gpu;
  Labels labels;
  std::vector<InstanceView> instances;
};

// Compute instances of one GPU instance report the same numbers: the first stands for all.
std::vector<InstanceView> InstancesOf(const Snapshot& snapshot, const Gpu& gpu,
                                      const Labels& labels) {
  std::vector<InstanceView> views;
  std::vector<std::uint32_t> seen;
  for (const MigInstance& instance : gpu.mig) {
    const std::uint32_t id = instance.identity.gpu_instance_id;
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    seen.push_back(id);
    std::string all = labels.before;
    AppendLabel(all, "GPU_I_PROFILE", InstanceProfile(instance.identity.profile));
    AppendLabel(all, "GPU_I_ID", std::uint64_t{id});
    if (!labels.after.empty()) all += ',' + labels.after;
    AppendPod(all, snapshot, gpu.identity.uuid, instance.identity.uuid);
    views.push_back({&instance.readings, std::move(all)});
  }
  return views;
}

std::vector<GpuView> ViewsOf(const Snapshot& snapshot, DcgmNames names) {
  std::vector<GpuView> views;
  views.reserve(snapshot.gpus.size());
  for (const Gpu& gpu : snapshot.gpus) {
    Labels labels = LabelsOf(gpu, snapshot.node, names);
    const bool repeated = std::any_of(views.begin(), views.end(), [&](const GpuView& other) {
      return other.labels.before == labels.before;
    });
    if (repeated) continue;
    std::vector<InstanceView> instances = InstancesOf(snapshot, gpu, labels);
    AppendPod(labels.after, snapshot, gpu.identity.uuid, "");
    views.push_back({&gpu, std::move(labels), std::move(instances)});
  }
  return views;
}

// --- values --------------------------------------------------------------------------------------

void WriteValue(TextWriter& writer, const Spelling& spelling, std::string_view labels,
                std::string_view more, const Reading& reading) {
  if (!reading || !std::isfinite(*reading)) return;
  const double value = *reading * spelling.scale;
  constexpr double kWholeMax = 9e18;  // fits an int64
  if (std::abs(value) > kWholeMax) return;
  std::array<char, 48> digits;
  char* const end = digits.data() + digits.size();
  std::to_chars_result result{};
  if (spelling.format == ValueFormat::kDouble) {
    constexpr int kDecimals = 6;
    result = std::to_chars(digits.data(), end, value, std::chars_format::fixed, kDecimals);
  } else {
    // A whole number of bytes times a power of two is exact, so cutting is exact as well.
    const double whole =
        spelling.format == ValueFormat::kIntegerDown ? std::floor(value) : std::round(value);
    result = std::to_chars(digits.data(), end, static_cast<std::int64_t>(whole));
  }
  writer.SampleText(labels, more, std::string_view(digits.data(), result.ptr));
}

std::string XidLabels(const Labels& labels, const Reading& xid) {
  const auto code = static_cast<std::uint64_t>(*xid);
  std::string more = labels.after;
  AppendLabel(more, "err_code", code);
  AppendLabel(more, "err_msg", DcgmXidMessage(code));
  return more;
}

void WriteField(TextWriter& writer, const Field& field, const Spelling& spelling,
                const std::vector<GpuView>& views) {
  std::string help(field.help);
  help += " (";
  help += spelling.unit;
  help += ").";
  writer.Family(spelling.name, spelling.type, "", help);
  for (const GpuView& view : views) {
    if (field.instance != nullptr && !view.instances.empty()) {
      for (const InstanceView& instance : view.instances) {
        WriteValue(writer, spelling, instance.labels, "", instance.readings->*field.instance);
      }
      continue;
    }
    const Reading reading = field.card(*view.gpu);
    if (spelling.format == ValueFormat::kXid && reading) {
      const std::string more = XidLabels(view.labels, reading);
      WriteValue(writer, spelling, view.labels.before, more, reading);
    } else {
      WriteValue(writer, spelling, view.labels.before, view.labels.after, reading);
    }
  }
}

}  // namespace

void WriteDcgmMetrics(TextWriter& writer, const Snapshot& snapshot, DcgmNames names) {
  if (names == DcgmNames::kOff) return;
  const std::vector<GpuView> views = ViewsOf(snapshot, names);
  for (const Field& field : kFields) {
    const Spelling& spelling = names == DcgmNames::k49 ? field.v49 : field.v48;
    if (!spelling.name.empty()) WriteField(writer, field, spelling, views);
  }
}

std::span<const DcgmNamePair> DcgmNamePairs() { return kNamePairs; }

std::string_view DcgmXidMessage(std::uint64_t xid) {
  struct Entry {
    std::uint64_t xid;
    std::string_view text;
  };
  static constexpr Entry kEntries[] = {
#define DCGM_XID(code, text) {code, text},
#include "exposition/dcgm_xids.def"
  };
  for (const Entry& entry : kEntries) {
    if (entry.xid == xid) return entry.text;
  }
  return "Unknown Error";
}

}  // namespace gpuassay
