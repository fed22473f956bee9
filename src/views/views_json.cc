#include "views/views_json.h"

#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/snapshot_json.h"
#include "views/owner_text.h"

namespace gpuassay {
namespace {

using Json = nlohmann::ordered_json;

Json Text(std::string_view text) { return text.empty() ? Json(nullptr) : Json(std::string(text)); }

// Whole numbers without ".0", as in the snapshot's JSON.
Json Number(double value) {
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  if (std::abs(value) <= kExactMax && std::trunc(value) == value) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

void AddReadings(std::initializer_list<std::pair<const char*, const Reading*>> readings,
                 Json& object) {
  Json missing = Json::object();
  for (const auto& [field, reading] : readings) {
    object[field] = *reading ? Number(**reading) : Json(nullptr);
    if (!*reading) missing[field] = std::string(MissingName(reading->missing()));
  }
  if (!missing.empty()) object["missing"] = std::move(missing);
}

template <class List, class Function>
Json Array(const List& list, Function object_of) {
  Json array = Json::array();
  for (const auto& one : list) array.push_back(object_of(one));
  return array;
}

Json DisagreementObject(const Disagreement& one) {
  Json object;
  object["kind"] = std::string(DisagreementName(one.kind));
  object["text"] = one.text;
  object["gpu_uuid"] = Text(one.gpu_uuid);
  object["mig_uuid"] = Text(one.mig_uuid);
  object["pod"] = Text(one.pod);
  return object;
}

Json UnitObject(const DeviceUnit& unit) {
  Json object;
  object["resource"] = Text(unit.resource);
  object["device_id"] = Text(unit.device_id);
  object["replica"] = unit.replica ? Json(*unit.replica) : Json(nullptr);
  object["gpu_uuid"] = Text(unit.gpu_uuid);
  object["mig_uuid"] = Text(unit.mig_uuid);
  return object;
}

void AddOwner(const ProcessOwner& owner, Json& object) {
  object["owner"] = OwnerText(owner);
  object["pod"] = owner.pod ? Json(PodText(*owner.pod)) : Json(nullptr);
  object["container"] = owner.container ? Text(owner.container->name) : Json(nullptr);
}

Json AllocationObject(const Allocation& one) {
  Json object = UnitObject(one.unit);
  object["scheduler"] = std::string(SchedulerKindName(one.scheduler));
  object["claim"] = Text(one.claim);
  AddOwner(one.owner, object);
  return object;
}

Json ProcessObject(const ViewProcess& process) {
  Json object;
  object["pid"] = process.pid;
  object["name"] = Text(process.name);
  AddOwner(process.owner, object);
  AddReadings({{"memory_used_bytes", &process.memory_used_bytes},
               {"sm_share_ratio", &process.sm_share_ratio},
               {"memory_pool_reserved_bytes", &process.pool_reserved_bytes},
               {"memory_pool_allocated_bytes", &process.pool_allocated_bytes}},
              object);
  return object;
}

Json OwnerObject(const OwnerUsage& row) {
  Json object;
  object["kind"] = std::string(OwnerKindName(row.kind));
  AddOwner(row.owner, object);
  AddReadings({{"memory_used_bytes", &row.readings.memory_used_bytes},
               {"sm_share_ratio", &row.readings.sm_share_ratio},
               {"power_watts", &row.readings.power_watts}},
              object);
  return object;
}

Json HolderObject(const DeviceHolder& holder) {
  Json object;
  object["pid"] = holder.pid;
  object["name"] = Text(holder.name);
  object["kind"] = std::string(HolderKindName(holder.kind));
  object["threads_alive"] = holder.threads_alive;
  AddOwner(holder.owner, object);
  object["clean_up"] = std::string(CleanUpName(holder.clean_up));
  object["clean_up_interrupts"] = std::string(CleanUpInterrupts(holder.clean_up));
  return object;
}

Json HardwareObject(const DeviceView& view) {
  Json object;
  AddReadings({{"busy_ratio", &view.busy_ratio},
               {"sm_active_ratio", &view.sm_active_ratio},
               {"memory_used_bytes", &view.memory_used_bytes},
               {"memory_reserved_bytes", &view.memory_reserved_bytes},
               {"memory_free_bytes", &view.memory_free_bytes},
               {"memory_total_bytes", &view.memory_total_bytes},
               {"memory_processes_bytes", &view.memory_processes_bytes},
               {"memory_unattributed_bytes", &view.memory_unattributed_bytes},
               {"gpu_power_watts", &view.power_watts}},
              object);
  return object;
}

Json DeviceObject(const DeviceView& view) {
  Json object;
  object["index"] = view.gpu.index;
  object["gpu_uuid"] = Text(view.gpu.uuid);
  object["name"] = Text(view.gpu.name);
  object["mig_index"] = view.mig ? Json(view.mig->index) : Json(nullptr);
  object["mig_uuid"] = view.mig ? Text(view.mig->uuid) : Json(nullptr);
  object["mig_profile"] = view.mig ? Text(view.mig->profile) : Json(nullptr);
  object["hardware"] = HardwareObject(view);
  object["scheduler"]["units"] = Array(view.units, UnitObject);
  object["scheduler"]["allocations"] = Array(view.allocations, AllocationObject);
  object["process"]["processes"] = Array(view.processes, ProcessObject);
  object["process"]["owners"] = Array(view.owners, OwnerObject);
  object["process"]["holders"] = Array(view.holders, HolderObject);
  object["disagreements"] = Array(view.disagreements, DisagreementObject);
  return object;
}

Json PodObject(const PodView& view) {
  const Pod& pod = view.pod;
  Json object;
  object["namespace"] = Text(pod.identity.namespace_name);
  object["name"] = Text(pod.identity.name);
  object["uid"] = Text(pod.identity.uid);
  object["phase"] = Text(pod.phase);
  object["memory_request_bytes"] =
      pod.memory_request_bytes ? Number(*pod.memory_request_bytes) : Json(nullptr);
  object["units"] = Array(view.units, UnitObject);
  object["processes"] = view.processes;
  AddReadings({{"memory_used_bytes", &view.memory_used_bytes},
               {"memory_pool_reserved_bytes", &view.pool_reserved_bytes},
               {"memory_pool_allocated_bytes", &view.pool_allocated_bytes},
               {"sm_share_ratio", &view.sm_share_ratio},
               {"power_watts", &view.power_watts}},
              object);
  object["disagreements"] = Array(view.disagreements, DisagreementObject);
  return object;
}

Json ResourceObject(const ResourceView& view) {
  Json object;
  object["resource"] = view.resource;
  object["units"] = view.units;
  object["allocated"] = view.allocated;
  object["devices"] = view.devices;
  return object;
}

}  // namespace

std::string ViewsJson(const Views& views, int indent) {
  Json object;
  object["time"] = TimeText(views.time);
  object["hostname"] = Text(views.node.hostname);
  object["allocations_known"] = views.allocations_known;
  object["resources"] = Array(views.resources, ResourceObject);
  object["devices"] = Array(views.devices, DeviceObject);
  object["pods"] = Array(views.pods, PodObject);
  object["disagreements"] = Array(views.disagreements, DisagreementObject);
  return object.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string ViewsJson(const Snapshot& snapshot, int indent) {
  return ViewsJson(MakeViews(snapshot), indent);
}

}  // namespace gpuassay
