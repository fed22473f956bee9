#include "exposition/exposition.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "exposition/dcgm.h"
#include "exposition/owners.h"
#include "exposition/text_writer.h"
#include "exposition/units.h"
#include "model/catalogue.h"

namespace gpuassay {
namespace {

// A thing with readings, and the labels of its series.
template <class Readings>
struct Labelled {
  const Readings* readings;
  std::string labels;
};

// Everything of one snapshot that has series, its labels written once.
struct View {
  std::vector<Labelled<GpuReadings>> gpus;
  std::vector<Labelled<LinkReadings>> links;
  std::vector<Labelled<MigReadings>> mig;
  std::vector<Labelled<ProcessReadings>> processes;
  std::vector<ProcessReadings> others;  // sums; `processes` points here too
  std::vector<Labelled<OwnerReadings>> owners;
};

// All metrics of one name: fields of one scope that differ by fixed labels.
struct Family {
  const MetricInfo* info;                                         // its first line
  std::vector<std::pair<std::size_t, std::string_view>> members;  // index, fixed labels
};

std::vector<Family> FamiliesOf(MetricScope scope) {
  std::vector<Family> families;
  const auto metrics = MetricsOf(scope);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    auto found = std::find_if(families.begin(), families.end(), [&](const Family& family) {
      return family.info->name == metrics[i].name;
    });
    if (found == families.end()) found = families.insert(found, Family{&metrics[i], {}});
    found->members.emplace_back(i, metrics[i].labels);
  }
  return families;
}

template <class Readings>
void WriteFamilies(TextWriter& writer, MetricScope scope,
                   const std::vector<Labelled<Readings>>& things) {
  const auto members = Members(static_cast<const Readings*>(nullptr));
  for (const Family& family : FamiliesOf(scope)) {
    const bool counter = family.info->kind == MetricKind::kCounter;
    writer.Family(family.info->name, counter ? MetricType::kCounter : MetricType::kGauge,
                  UnitSuffix(family.info->unit), family.info->help);
    for (const Labelled<Readings>& thing : things) {
      for (const auto& [index, fixed_labels] : family.members) {
        const Reading& reading = thing.readings->*members[index];
        if (reading) writer.Sample(thing.labels, fixed_labels, *reading);
      }
    }
  }
}

void AppendIfKnown(std::string& labels, std::string_view key, std::string_view value) {
  if (!value.empty()) AppendLabel(labels, key, value);
}

std::string GpuLabels(const Gpu& gpu, const NodeIdentity& node) {
  std::string labels;
  AppendLabel(labels, "gpu", std::uint64_t{gpu.identity.index});
  AppendIfKnown(labels, "uuid", gpu.identity.uuid);
  AppendIfKnown(labels, "pci_bus_id", gpu.identity.pci_bus_id);
  AppendIfKnown(labels, "model_name", gpu.identity.name);
  AppendIfKnown(labels, "hostname", node.hostname);
  return labels;
}

std::string MigLabels(std::string labels, const MigIdentity& identity) {
  AppendLabel(labels, "mig", std::uint64_t{identity.index});
  AppendIfKnown(labels, "mig_uuid", identity.uuid);
  AppendLabel(labels, "gpu_instance_id", std::uint64_t{identity.gpu_instance_id});
  AppendIfKnown(labels, "profile", identity.profile);
  return labels;
}

std::string ProcessLabels(std::string labels, const GpuProcess& process) {
  AppendLabel(labels, "pid", std::uint64_t{process.pid});
  if (!process.name.empty()) AppendLabel(labels, "process", process.name, kProcessNameBytesMax);
  AppendLabel(labels, "type", ProcessTypeName(process.type));
  if (process.gpu_instance_id) {
    AppendLabel(labels, "gpu_instance_id", std::uint64_t{*process.gpu_instance_id});
  }
  if (process.compute_instance_id) {
    AppendLabel(labels, "compute_instance_id", std::uint64_t{*process.compute_instance_id});
  }
  AppendOwnerLabels(labels, process.owner);
  return labels;
}

// The largest holders of memory first; one whose memory is unknown comes after all others.
bool HoldsMore(const GpuProcess* a, const GpuProcess* b) {
  const std::optional<double> memory_a = a->readings.memory_used_bytes.get();
  const std::optional<double> memory_b = b->readings.memory_used_bytes.get();
  if (memory_a != memory_b) return memory_a > memory_b;
  return a->pid < b->pid;
}

// Sums the gauges that are known.
void AddGauges(ProcessReadings& sum, const ProcessReadings& readings) {
  const auto metrics = MetricsOf(MetricScope::kProcess);
  const auto members = Members(&readings);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Reading& reading = readings.*members[i];
    if (metrics[i].kind != MetricKind::kGauge || !reading) continue;
    Reading& total = sum.*members[i];
    total = total ? *total + *reading : *reading;
  }
}

void AddProcesses(View& view, const Gpu& gpu, const std::string& gpu_labels, std::size_t max) {
  std::vector<const GpuProcess*> chosen;
  chosen.reserve(gpu.processes.size());
  for (const GpuProcess& process : gpu.processes) chosen.push_back(&process);
  if (chosen.size() > max) {
    const auto cut = chosen.begin() + static_cast<std::ptrdiff_t>(max);
    std::nth_element(chosen.begin(), cut, chosen.end(), HoldsMore);
    ProcessReadings other;
    for (auto it = cut; it != chosen.end(); ++it) AddGauges(other, (*it)->readings);
    chosen.erase(cut, chosen.end());
    view.others.push_back(other);
  }
  std::sort(chosen.begin(), chosen.end(), [](const GpuProcess* a, const GpuProcess* b) {
    return std::pair(a->pid, a) < std::pair(b->pid, b);
  });
  for (const GpuProcess* process : chosen) {
    view.processes.push_back({&process->readings, ProcessLabels(gpu_labels, *process)});
  }
  if (gpu.processes.size() > max) {
    std::string labels = gpu_labels;
    AppendLabel(labels, "pid", "other");
    view.processes.push_back({&view.others.back(), std::move(labels)});
  }
}

// Drops what would be the same series again: a driver that lists a thing twice.
template <class Readings>
void DropRepeated(std::vector<Labelled<Readings>>& things) {
  std::vector<std::string_view> seen;
  seen.reserve(things.size());
  for (const auto& thing : things) seen.push_back(thing.labels);
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) == seen.end()) return;
  std::vector<Labelled<Readings>> kept;
  for (auto& thing : things) {
    const bool repeated = std::any_of(
        kept.begin(), kept.end(), [&](const auto& other) { return other.labels == thing.labels; });
    if (!repeated) kept.push_back(std::move(thing));
  }
  things = std::move(kept);
}

View MakeView(const Snapshot& snapshot, std::size_t processes_max) {
  View view;
  view.gpus.reserve(snapshot.gpus.size());
  view.others.reserve(snapshot.gpus.size());  // pointed to: must not move
  for (const Gpu& gpu : snapshot.gpus) {
    std::string labels = GpuLabels(gpu, snapshot.node);
    for (const NvLink& link : gpu.links) {
      std::string link_labels = labels;
      AppendLabel(link_labels, "link", std::uint64_t{link.link});
      view.links.push_back({&link.readings, std::move(link_labels)});
    }
    for (const MigInstance& instance : gpu.mig) {
      view.mig.push_back({&instance.readings, MigLabels(labels, instance.identity)});
    }
    AddProcesses(view, gpu, labels, processes_max);
    for (const OwnerUsage& usage : gpu.owners) {
      std::string owner_labels = labels;
      AppendUsageLabels(owner_labels, gpu, usage);
      view.owners.push_back({&usage.readings, std::move(owner_labels)});
    }
    view.gpus.push_back({&gpu.readings, std::move(labels)});
  }
  DropRepeated(view.gpus);
  DropRepeated(view.links);
  DropRepeated(view.mig);
  DropRepeated(view.processes);
  DropRepeated(view.owners);
  return view;
}

void WriteIdentities(TextWriter& writer, const Snapshot& snapshot) {
  writer.Family("gpuassay_build_info", MetricType::kInfo, "", "The program that answers.");
  std::string labels;
  AppendLabel(labels, "version", GPUASSAY_VERSION);
  writer.Sample(labels, "", 1);

  writer.Family("gpuassay_node_info", MetricType::kInfo, "", "The node and its driver.");
  labels.clear();
  AppendIfKnown(labels, "hostname", snapshot.node.hostname);
  AppendIfKnown(labels, "driver_version", snapshot.node.driver_version);
  AppendIfKnown(labels, "nvml_version", snapshot.node.nvml_version);
  AppendIfKnown(labels, "cuda_version", snapshot.node.cuda_version);
  if (!labels.empty()) writer.Sample(labels, "", 1);
}

// Metrics of a GPU that are no single field of the catalogue.
class GpuLists {
 public:
  GpuLists(TextWriter& writer, const Snapshot& snapshot, const View& view) : writer_(writer) {
    // The view has the GPUs in the order of the snapshot, repeated ones left out.
    auto next = view.gpus.begin();
    for (const Gpu& gpu : snapshot.gpus) {
      if (next == view.gpus.end() || next->readings != &gpu.readings) continue;
      gpus_.emplace_back(&gpu, next->labels);
      ++next;
    }
  }

  void WriteInfo() {
    writer_.Family("gpuassay_gpu_info", MetricType::kInfo, "", "How the GPU is called.");
    for (const auto& [gpu, labels] : gpus_) {
      std::string more;
      AppendIfKnown(more, "architecture", gpu->identity.architecture);
      AppendIfKnown(more, "serial", gpu->identity.serial);
      AppendIfKnown(more, "vbios_version", gpu->identity.vbios_version);
      if (gpu->identity.minor_number) {
        AppendLabel(more, "minor_number", std::uint64_t{*gpu->identity.minor_number});
      }
      writer_.Sample(labels, more, 1);
    }
  }

  void WriteXids() {
    writer_.Family("gpuassay_gpu_xid_errors_total", MetricType::kCounter, "",
                   "Xid errors since the agent started, by code; code 0 stands for all further "
                   "codes when there were too many kinds.");
    for (const auto& [gpu, labels] : gpus_) {
      for (const XidCount& xid : gpu->xids) {
        std::string more;
        AppendLabel(more, "xid", std::uint64_t{xid.xid});
        writer_.Sample(labels, more, static_cast<double>(xid.count));
      }
    }
  }

  void WriteProcessesDropped() {
    writer_.Family("gpuassay_gpu_processes_dropped", MetricType::kGauge, "",
                   "Processes on the GPU that did not fit into the snapshot.");
    for (const auto& [gpu, labels] : gpus_) {
      writer_.Sample(labels, "", static_cast<double>(gpu->processes_dropped));
    }
  }

  // Readings of the driver only: what is derived is missing because of one of them.
  void WriteMissing() {
    writer_.Family("gpuassay_gpu_missing_readings", MetricType::kGauge, "",
                   "Readings of the GPU that have no value now, by reason. "
                   "gpuassay explain missing names them.");
    const auto metrics = MetricsOf(MetricScope::kGpu);
    const auto members = Members(static_cast<const GpuReadings*>(nullptr));
    for (const auto& [gpu, labels] : gpus_) {
      std::array<int, kMissingCount> counts{};
      for (std::size_t i = 0; i < members.size(); ++i) {
        const Reading& reading = gpu->readings.*members[i];
        if (reading || metrics[i].pace == MetricPace::kDerived) continue;
        ++counts[static_cast<std::size_t>(reading.missing())];
      }
      for (std::size_t reason = 0; reason < counts.size(); ++reason) {
        if (counts[reason] == 0) continue;
        std::string more;
        AppendLabel(more, "reason", MissingName(static_cast<Missing>(reason)));
        writer_.Sample(labels, more, counts[reason]);
      }
    }
  }

 private:
  TextWriter& writer_;
  std::vector<std::pair<const Gpu*, std::string_view>> gpus_;
};

// About right, so that the text is not copied while it grows.
std::size_t ExpectedBytes(const View& view) {
  constexpr std::size_t kSeriesBytes = 256;
  const std::size_t series = view.gpus.size() * (MetricsOf(MetricScope::kGpu).size() + 64) +
                             view.links.size() * MetricsOf(MetricScope::kLink).size() +
                             view.mig.size() * (MetricsOf(MetricScope::kMig).size() + 16) +
                             view.processes.size() * MetricsOf(MetricScope::kProcess).size() +
                             view.owners.size() * MetricsOf(MetricScope::kOwner).size();
  constexpr std::size_t kHeadersBytes = 64 * 1024;
  return kHeadersBytes + series * kSeriesBytes;
}

}  // namespace

std::string_view ContentType(TextFormat format) {
  return format == TextFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::optional<DcgmNames> ParseDcgmNames(std::string_view text) {
  if (text == "off") return DcgmNames::kOff;
  if (text == "4.8") return DcgmNames::k48;
  if (text == "4.9") return DcgmNames::k49;
  return std::nullopt;
}

std::string RenderMetrics(const Snapshot& snapshot, const ExpositionOptions& options) {
  const View view = MakeView(snapshot, options.processes_per_gpu_max);
  std::string out;
  out.reserve(ExpectedBytes(view));
  TextWriter writer(options.format, out);
  GpuLists lists(writer, snapshot, view);
  WriteIdentities(writer, snapshot);
  lists.WriteInfo();
  WriteFamilies(writer, MetricScope::kGpu, view.gpus);
  lists.WriteXids();
  lists.WriteProcessesDropped();
  lists.WriteMissing();
  WriteFamilies(writer, MetricScope::kLink, view.links);
  WriteFamilies(writer, MetricScope::kMig, view.mig);
  WriteFamilies(writer, MetricScope::kProcess, view.processes);
  WriteFamilies(writer, MetricScope::kOwner, view.owners);
  WriteScheduler(writer, snapshot);
  WriteDcgmMetrics(writer, snapshot, options.dcgm);
  return out;
}

}  // namespace gpuassay
