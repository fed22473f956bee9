#include "views/views.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "views/disagreements.h"

namespace gpuassay {
namespace {

bool IsOn(const GpuProcess& process, const MigIdentity* mig) {
  if (mig == nullptr) return true;
  return process.gpu_instance_id == mig->gpu_instance_id &&
         (!process.compute_instance_id || *process.compute_instance_id == mig->compute_instance_id);
}

bool IsOf(const OwnerUsage& row, const MigIdentity* mig) {
  if (mig == nullptr) return true;
  return row.gpu_instance_id == mig->gpu_instance_id &&
         row.compute_instance_id == mig->compute_instance_id;
}

void TakeHardware(const Gpu& gpu, const MigInstance* mig, DeviceView& view) {
  const GpuReadings& whole = gpu.readings;
  view.power_watts = whole.power_watts;
  if (mig == nullptr) {
    view.busy_ratio = whole.utilization_mean_ratio;
    view.sm_active_ratio = whole.sm_active_ratio;
    view.memory_used_bytes = whole.memory_used_bytes;
    view.memory_reserved_bytes = whole.memory_reserved_bytes;
    view.memory_free_bytes = whole.memory_free_bytes;
    view.memory_total_bytes = whole.memory_total_bytes;
    view.memory_processes_bytes = whole.memory_processes_bytes;
    view.memory_unattributed_bytes = whole.memory_unattributed_bytes;
    return;
  }
  const MigReadings& part = mig->readings;
  view.busy_ratio =
      part.graphics_engine_active_ratio ? part.graphics_engine_active_ratio : part.sm_active_ratio;
  view.sm_active_ratio = part.sm_active_ratio;
  view.memory_used_bytes = part.memory_used_bytes;
  view.memory_reserved_bytes = part.memory_reserved_bytes;
  view.memory_free_bytes = part.memory_free_bytes;
  view.memory_total_bytes = part.memory_total_bytes;
  view.memory_processes_bytes = part.memory_used_bytes;
  for (const OwnerUsage& row : view.owners) {
    if (row.kind != OwnerKind::kUnattributed) continue;
    view.memory_unattributed_bytes = row.readings.memory_used_bytes;
    if (view.memory_processes_bytes && view.memory_unattributed_bytes) {
      view.memory_processes_bytes = *view.memory_processes_bytes - *view.memory_unattributed_bytes;
    }
  }
}

DeviceView DeviceOf(const Gpu& gpu, const MigInstance* mig, const Snapshot& snapshot) {
  DeviceView view;
  view.gpu = gpu.identity;
  const MigIdentity* const identity = mig == nullptr ? nullptr : &mig->identity;
  if (identity != nullptr) view.mig = *identity;
  for (const OwnerUsage& row : gpu.owners) {
    if (IsOf(row, identity)) view.owners.push_back(row);
  }
  for (const GpuProcess& process : gpu.processes) {
    if (!IsOn(process, identity)) continue;
    const ProcessReadings& readings = process.readings;
    view.processes.push_back({process.pid, process.name, process.owner, readings.memory_used_bytes,
                              readings.sm_share_ratio, readings.memory_pool_reserved_bytes,
                              readings.memory_pool_allocated_bytes});
  }
  TakeHardware(gpu, mig, view);
  if (mig == nullptr || identity->index == 0) view.holders = gpu.holders;
  if (!snapshot.scheduler) return view;
  const std::string_view mig_uuid = identity == nullptr ? "" : std::string_view(identity->uuid);
  const auto is_here = [&](const DeviceUnit& unit) {
    return unit.gpu_uuid == gpu.identity.uuid && unit.mig_uuid == mig_uuid;
  };
  std::ranges::copy_if(snapshot.scheduler->allocatable, std::back_inserter(view.units), is_here);
  std::ranges::copy_if(snapshot.scheduler->allocations, std::back_inserter(view.allocations),
                       [&](const Allocation& one) { return is_here(one.unit); });
  return view;
}

std::vector<ResourceView> ResourcesOf(const Scheduler& scheduler) {
  std::map<std::string, ResourceView> resources;
  std::map<std::string, std::set<std::pair<std::string, std::string>>> devices;
  const auto count = [&](const DeviceUnit& unit) -> ResourceView& {
    ResourceView& view = resources[unit.resource];
    view.resource = unit.resource;
    if (!unit.gpu_uuid.empty()) devices[unit.resource].emplace(unit.gpu_uuid, unit.mig_uuid);
    return view;
  };
  for (const DeviceUnit& unit : scheduler.allocatable) ++count(unit).units;
  for (const Allocation& one : scheduler.allocations) ++count(one.unit).allocated;
  std::vector<ResourceView> list;
  for (auto& [name, view] : resources) {
    view.devices = static_cast<std::uint32_t>(devices[name].size());
    list.push_back(std::move(view));
  }
  return list;
}

// The sum is missing as soon as one part is.
void Add(bool is_first, Reading& sum, const Reading& part) {
  if (is_first) {
    sum = part;
  } else if (sum) {
    sum = part ? Reading(*sum + *part) : part;
  }
}

// Told by the kubelet (as of now or before), or by jobs and runtimes.
bool AllocationsKnown(const Snapshot& snapshot) {
  if (!snapshot.scheduler) return false;
  for (const SourceStatus& source : snapshot.sources) {
    if (source.name == "pod_resources") return source.error.empty() || source.last_success;
  }
  return !snapshot.scheduler->allocations.empty() || !snapshot.scheduler->allocatable.empty();
}

using PodKey = std::pair<std::string, std::string>;
// By name; by UID while the name is unknown.
PodKey KeyOf(const PodIdentity& pod) {
  return pod.name.empty() ? PodKey{"", pod.uid} : PodKey{pod.namespace_name, pod.name};
}

void AddUse(const Snapshot& snapshot, std::map<PodKey, PodView>& pods) {
  const auto find = [&pods](const ProcessOwner& owner) -> PodView* {
    if (!owner.pod) return nullptr;
    PodView& view = pods[KeyOf(*owner.pod)];
    if (view.pod.identity.name.empty()) view.pod.identity = *owner.pod;
    return &view;
  };
  std::set<const PodView*> with_rows;
  for (const Gpu& gpu : snapshot.gpus) {
    for (const GpuProcess& process : gpu.processes) {
      PodView* const view = find(process.owner);
      if (view == nullptr) continue;
      ++view->processes;
      const bool first = view->processes == 1;
      const ProcessReadings& readings = process.readings;
      Add(first, view->memory_used_bytes, readings.memory_used_bytes);
      Add(first, view->pool_reserved_bytes, readings.memory_pool_reserved_bytes);
      Add(first, view->pool_allocated_bytes, readings.memory_pool_allocated_bytes);
    }
    for (const OwnerUsage& row : gpu.owners) {
      const Reading& processes = row.readings.process_count;
      if (!processes || *processes == 0) continue;  // it has left: only its counters are listed
      PodView* const view = find(row.owner);
      if (view == nullptr) continue;
      const bool first = with_rows.insert(view).second;
      Add(first, view->sm_share_ratio, row.readings.sm_share_ratio);
      Add(first, view->power_watts, row.readings.power_watts);
    }
  }
}

// Pods that have a GPU, asked for one, or use one.
std::vector<PodView> PodsOf(const Snapshot& snapshot) {
  std::map<PodKey, PodView> pods;
  if (snapshot.scheduler) {
    for (const Pod& pod : snapshot.scheduler->pods) {
      if (!pod.requests.empty() || pod.memory_request_bytes) pods[KeyOf(pod.identity)].pod = pod;
    }
    for (const Allocation& one : snapshot.scheduler->allocations) {
      if (!one.owner.pod) continue;
      PodView& view = pods[KeyOf(*one.owner.pod)];
      if (view.pod.identity.name.empty()) view.pod.identity = *one.owner.pod;
      view.units.push_back(one.unit);
    }
  }
  AddUse(snapshot, pods);
  if (snapshot.scheduler) {
    for (const Pod& pod : snapshot.scheduler->pods) {
      const auto found = pods.find(KeyOf(pod.identity));
      if (found != pods.end()) found->second.pod = pod;
    }
  }
  std::vector<PodView> list;
  for (auto& [key, view] : pods) list.push_back(std::move(view));
  return list;
}

}  // namespace

std::string_view DisagreementName(DisagreementKind kind) {
  constexpr std::array<std::string_view, 15> kNames = {
      "held_without_process", "used_without_allocation", "used_other_device",
      "outside_scheduler",    "units_are_one_device",    "unknown_device",
      "not_handed_out",       "memory_over_request",     "memory_under_request",
      "memory_nobody_owns",   "pool_larger_than_data",   "busy_without_process",
      "many_sharers",         "container_gone",          "scheduler_unreachable"};
  return kNames[static_cast<std::size_t>(kind)];
}

Views MakeViews(const Snapshot& snapshot) {
  Views views;
  views.node = snapshot.node;
  views.time = snapshot.time;
  views.allocations_known = AllocationsKnown(snapshot);
  for (const Gpu& gpu : snapshot.gpus) {
    if (gpu.mig.empty()) views.devices.push_back(DeviceOf(gpu, nullptr, snapshot));
    for (const MigInstance& mig : gpu.mig) views.devices.push_back(DeviceOf(gpu, &mig, snapshot));
  }
  if (snapshot.scheduler) views.resources = ResourcesOf(*snapshot.scheduler);
  views.pods = PodsOf(snapshot);
  FindDisagreements(snapshot, views);
  return views;
}

}  // namespace gpuassay
