#include "exposition/owners.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

namespace gpuassay {
namespace {

void AppendIfKnown(std::string& labels, std::string_view key, std::string_view value) {
  if (!value.empty()) AppendLabel(labels, key, value);
}

const MigInstance* InstanceOf(const Gpu& gpu, const OwnerUsage& usage) {
  for (const MigInstance& mig : gpu.mig) {
    if (mig.identity.gpu_instance_id == usage.gpu_instance_id &&
        (!usage.compute_instance_id ||
         mig.identity.compute_instance_id == usage.compute_instance_id)) {
      return &mig;
    }
  }
  return nullptr;
}

std::string AllocationLabels(const Snapshot& snapshot, const Allocation& allocation) {
  std::string labels;
  const auto gpu = std::ranges::find_if(snapshot.gpus, [&allocation](const Gpu& candidate) {
    return !candidate.identity.uuid.empty() && candidate.identity.uuid == allocation.unit.gpu_uuid;
  });
  if (gpu != snapshot.gpus.end()) AppendLabel(labels, "gpu", std::uint64_t{gpu->identity.index});
  AppendIfKnown(labels, "uuid", allocation.unit.gpu_uuid);
  AppendIfKnown(labels, "mig_uuid", allocation.unit.mig_uuid);
  AppendIfKnown(labels, "hostname", snapshot.node.hostname);
  AppendLabel(labels, "scheduler", SchedulerKindName(allocation.scheduler));
  AppendIfKnown(labels, "resource", allocation.unit.resource);
  AppendIfKnown(labels, "device_id", allocation.unit.device_id);
  AppendIfKnown(labels, "claim", allocation.claim);
  AppendOwnerLabels(labels, allocation.owner);
  return labels;
}

// Each text once: a scheduler may tell a thing twice.
void WriteOnce(TextWriter& writer, std::set<std::string>& seen, std::string labels, double value) {
  const auto [found, is_new] = seen.insert(std::move(labels));
  if (is_new) writer.Sample(*found, "", value);
}

void WriteAllocations(TextWriter& writer, const Snapshot& snapshot) {
  writer.Family("gpuassay_allocation_info", MetricType::kInfo, "",
                "A unit of a resource in one container's or job's hands, and the device that it "
                "is.");
  std::set<std::string> seen;
  for (const Allocation& allocation : snapshot.scheduler->allocations) {
    WriteOnce(writer, seen, AllocationLabels(snapshot, allocation), 1);
  }
}

void WriteUnits(TextWriter& writer, const Snapshot& snapshot) {
  std::map<std::string, std::pair<double, double>> units;  // allocatable, allocated
  for (const DeviceUnit& unit : snapshot.scheduler->allocatable) ++units[unit.resource].first;
  for (const Allocation& allocation : snapshot.scheduler->allocations) {
    ++units[allocation.unit.resource].second;
  }
  const auto write = [&](std::string_view name, std::string_view help, bool allocated) {
    writer.Family(name, MetricType::kGauge, "", help);
    for (const auto& [resource, count] : units) {
      std::string labels;
      AppendIfKnown(labels, "hostname", snapshot.node.hostname);
      AppendIfKnown(labels, "resource", resource);
      writer.Sample(labels, "", allocated ? count.second : count.first);
    }
  };
  write("gpuassay_allocatable_units",
        "Units of the resource that can be handed out, handed out or not: replicas, not devices.",
        false);
  write("gpuassay_allocated_units", "Units of the resource in somebody's hands.", true);
}

std::string PodLabels(const Snapshot& snapshot, const Pod& pod) {
  std::string labels;
  AppendIfKnown(labels, "hostname", snapshot.node.hostname);
  AppendIfKnown(labels, "pod", pod.identity.name);
  AppendIfKnown(labels, "namespace", pod.identity.namespace_name);
  return labels;
}

// As kube-state-metrics spells them: "label_" and every other character "_".
std::string LabelName(std::string_view key) {
  std::string name = "label_";
  for (const char c : key) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

void WritePods(TextWriter& writer, const Snapshot& snapshot) {
  writer.Family("gpuassay_pod_labels", MetricType::kInfo, "",
                "Labels of a pod, those that --pod-labels names.");
  std::set<std::string> seen;
  for (const Pod& pod : snapshot.scheduler->pods) {
    if (pod.labels.empty()) continue;
    std::string labels = PodLabels(snapshot, pod);
    std::set<std::string> names;  // two keys may be spelt alike: the first one counts
    for (const auto& [key, value] : pod.labels) {
      const std::string name = LabelName(key);
      if (names.insert(name).second) AppendLabel(labels, name, value);
    }
    WriteOnce(writer, seen, std::move(labels), 1);
  }
  writer.Family("gpuassay_pod_memory_request_bytes", MetricType::kGauge, "bytes",
                "Device memory that the pod asked for, all containers and devices together.");
  seen.clear();
  for (const Pod& pod : snapshot.scheduler->pods) {
    if (!pod.memory_request_bytes) continue;
    WriteOnce(writer, seen, PodLabels(snapshot, pod), *pod.memory_request_bytes);
  }
}

}  // namespace

void AppendOwnerLabels(std::string& labels, const ProcessOwner& owner) {
  if (const auto& container = owner.container) {
    AppendIfKnown(labels, "container", container->name.empty() ? container->id : container->name);
  }
  if (owner.pod) {
    AppendIfKnown(labels, "pod", owner.pod->name);
    AppendIfKnown(labels, "namespace", owner.pod->namespace_name);
  }
  if (owner.job) AppendIfKnown(labels, "job_id", owner.job->id);
  AppendIfKnown(labels, "user", owner.user);
}

void AppendUsageLabels(std::string& labels, const Gpu& gpu, const OwnerUsage& usage) {
  if (usage.gpu_instance_id) {
    if (const MigInstance* const mig = InstanceOf(gpu, usage)) {
      AppendLabel(labels, "mig", std::uint64_t{mig->identity.index});
      AppendIfKnown(labels, "mig_uuid", mig->identity.uuid);
    }
    AppendLabel(labels, "gpu_instance_id", std::uint64_t{*usage.gpu_instance_id});
  }
  if (usage.compute_instance_id) {
    AppendLabel(labels, "compute_instance_id", std::uint64_t{*usage.compute_instance_id});
  }
  AppendLabel(labels, "owner_kind", OwnerKindName(usage.kind));
  AppendOwnerLabels(labels, usage.owner);
  if (usage.owner.job) AppendIfKnown(labels, "step", usage.owner.job->step);
  if (usage.kind == OwnerKind::kUnit) {
    AppendIfKnown(labels, "systemd_unit", usage.owner.systemd_unit);
  }
  if (usage.owner.pod && usage.owner.pod->name.empty()) {
    AppendIfKnown(labels, "pod_uid", usage.owner.pod->uid);
  }
}

const ProcessOwner* ExclusiveOwner(const Scheduler* scheduler, std::string_view gpu_uuid,
                                   std::string_view mig_uuid) {
  if (scheduler == nullptr || gpu_uuid.empty()) return nullptr;
  const Allocation* only = nullptr;
  for (const Allocation& allocation : scheduler->allocations) {
    if (allocation.unit.gpu_uuid != gpu_uuid) continue;
    // Of a MIG device what is handed out of its neighbours does not matter; of a whole GPU any part
    // of it does.
    if (!mig_uuid.empty() && allocation.unit.mig_uuid != mig_uuid) continue;
    if (only != nullptr) return nullptr;
    only = &allocation;
  }
  if (only == nullptr || only->scheduler != SchedulerKind::kKubernetes) return nullptr;
  if (only->unit.replica || only->unit.mig_uuid != mig_uuid || !only->owner.pod) return nullptr;
  return &only->owner;
}

void WriteScheduler(TextWriter& writer, const Snapshot& snapshot) {
  if (!snapshot.scheduler) return;
  WriteAllocations(writer, snapshot);
  WriteUnits(writer, snapshot);
  WritePods(writer, snapshot);
}

}  // namespace gpuassay
