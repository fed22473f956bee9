#include "model/snapshot_json.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/catalogue.h"

namespace gpuassay {
namespace {

using Json = nlohmann::ordered_json;

Json Text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

template <class T>
Json Optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Whole numbers without ".0": byte counts and codes are read by people.
Json Number(double value) {
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  if (std::abs(value) <= kExactMax && std::trunc(value) == value) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

// Adds one key per field, and "missing" with the reasons when there are any.
template <class Readings>
void AddReadings(MetricScope scope, const Readings& readings, Json& object) {
  const std::span<const MetricInfo> metrics = MetricsOf(scope);
  const auto members = Members(&readings);
  Json missing = Json::object();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Reading& reading = readings.*members[i];
    const std::string field(metrics[i].field);
    object.push_back({field, reading ? Number(*reading) : Json(nullptr)});
    if (!reading) missing.push_back({field, std::string(MissingName(reading.missing()))});
  }
  if (!missing.empty()) object["missing"] = std::move(missing);
}

Json SourceObject(const SourceStatus& source) {
  Json object;
  object["name"] = source.name;
  object["last_success"] =
      source.last_success ? Json(TimeText(*source.last_success)) : Json(nullptr);
  object["error"] = Text(source.error);
  object["reason"] =
      source.error.empty() ? Json(nullptr) : Json(std::string(MissingName(source.missing)));
  AddReadings(MetricScope::kSource, source.readings, object);
  return object;
}

Json LinkObject(const NvLink& link) {
  Json object;
  object["link"] = link.link;
  AddReadings(MetricScope::kLink, link.readings, object);
  return object;
}

Json MigObject(const MigInstance& mig) {
  Json object;
  object["index"] = mig.identity.index;
  object["gpu_instance_id"] = mig.identity.gpu_instance_id;
  object["compute_instance_id"] = mig.identity.compute_instance_id;
  object["uuid"] = Text(mig.identity.uuid);
  object["profile"] = Text(mig.identity.profile);
  AddReadings(MetricScope::kMig, mig.readings, object);
  return object;
}

// A key for each text that is not empty.
Json KnownTexts(std::initializer_list<std::pair<const char*, std::string_view>> texts) {
  Json object = Json::object();
  for (const auto& [key, text] : texts) {
    if (!text.empty()) object[key] = std::string(text);
  }
  return object;
}

// Only what is known: most of it is absent on most nodes.
Json OwnerObject(const ProcessOwner& owner) {
  Json object = Json::object();
  const auto add = [&object](const char* key, Json part) {
    if (!part.empty()) object[key] = std::move(part);
  };
  if (const auto& container = owner.container) {
    add("container",
        KnownTexts(
            {{"id", container->id}, {"name", container->name}, {"runtime", container->runtime}}));
  }
  if (const auto& pod = owner.pod) {
    add("pod",
        KnownTexts({{"namespace", pod->namespace_name}, {"name", pod->name}, {"uid", pod->uid}}));
  }
  if (const auto& job = owner.job) {
    add("job", KnownTexts({{"kind", job->kind}, {"id", job->id}, {"step", job->step}}));
  }
  object.update(KnownTexts({{"user", owner.user}, {"systemd_unit", owner.systemd_unit}}));
  return object;
}

Json ProcessObject(const GpuProcess& process) {
  Json object;
  object["pid"] = process.pid;
  object["type"] = std::string(ProcessTypeName(process.type));
  object["name"] = Text(process.name);
  object["gpu_instance_id"] = Optional(process.gpu_instance_id);
  object["compute_instance_id"] = Optional(process.compute_instance_id);
  object["start_after_boot_seconds"] =
      process.start_after_boot ? Number(Seconds(*process.start_after_boot)) : Json(nullptr);
  Json owner = OwnerObject(process.owner);
  if (!owner.empty()) object["owner"] = std::move(owner);
  AddReadings(MetricScope::kProcess, process.readings, object);
  return object;
}

Json HolderObject(const DeviceHolder& holder) {
  Json object;
  object["pid"] = holder.pid;
  object["parent_pid"] = holder.parent_pid;
  object["name"] = Text(holder.name);
  object["state"] = std::string(1, holder.state);
  object["threads_alive"] = holder.threads_alive;
  object["kind"] = std::string(HolderKindName(holder.kind));
  object["clean_up"] = std::string(CleanUpName(holder.clean_up));
  object["interrupts"] = std::string(CleanUpInterrupts(holder.clean_up));
  object["start_after_boot_seconds"] =
      holder.start_after_boot ? Number(Seconds(*holder.start_after_boot)) : Json(nullptr);
  Json owner = OwnerObject(holder.owner);
  if (!owner.empty()) object["owner"] = std::move(owner);
  return object;
}

Json OwnerUsageObject(const OwnerUsage& usage) {
  Json object;
  object["kind"] = std::string(OwnerKindName(usage.kind));
  object["gpu_instance_id"] = Optional(usage.gpu_instance_id);
  object["compute_instance_id"] = Optional(usage.compute_instance_id);
  Json owner = OwnerObject(usage.owner);
  if (!owner.empty()) object["owner"] = std::move(owner);
  AddReadings(MetricScope::kOwner, usage.readings, object);
  return object;
}

template <class T, class Fn>
Json List(const std::vector<T>& elements, Fn&& fn) {
  Json list = Json::array();
  for (const T& element : elements) list.push_back(fn(element));
  return list;
}

Json GpuObject(const Gpu& gpu) {
  Json object;
  object["index"] = gpu.identity.index;
  object["uuid"] = Text(gpu.identity.uuid);
  object["pci_bus_id"] = Text(gpu.identity.pci_bus_id);
  object["name"] = Text(gpu.identity.name);
  object["serial"] = Text(gpu.identity.serial);
  object["vbios_version"] = Text(gpu.identity.vbios_version);
  object["architecture"] = Text(gpu.identity.architecture);
  object["minor_number"] = Optional(gpu.identity.minor_number);
  AddReadings(MetricScope::kGpu, gpu.readings, object);
  object["links"] = List(gpu.links, LinkObject);
  object["mig"] = List(gpu.mig, MigObject);
  object["processes"] = List(gpu.processes, ProcessObject);
  object["processes_dropped"] = gpu.processes_dropped;
  object["xids"] = List(gpu.xids, [](const XidCount& xid) {
    return Json{{"xid", xid.xid}, {"count", xid.count}};
  });
  object["owners"] = List(gpu.owners, OwnerUsageObject);
  object["holders"] = List(gpu.holders, HolderObject);
  return object;
}

Json UnitObject(const DeviceUnit& unit) {
  Json object;
  object["resource"] = unit.resource;
  object["device_id"] = unit.device_id;
  object["replica"] = Optional(unit.replica);
  object["gpu_uuid"] = Text(unit.gpu_uuid);
  object["mig_uuid"] = Text(unit.mig_uuid);
  return object;
}

Json AllocationObject(const Allocation& allocation) {
  Json object = UnitObject(allocation.unit);
  object["scheduler"] = std::string(SchedulerKindName(allocation.scheduler));
  object["claim"] = Text(allocation.claim);
  object["owner"] = OwnerObject(allocation.owner);
  return object;
}

Json PodObject(const Pod& pod) {
  Json object = KnownTexts({{"namespace", pod.identity.namespace_name},
                            {"name", pod.identity.name},
                            {"uid", pod.identity.uid}});
  object["phase"] = Text(pod.phase);
  object["terminating"] = pod.terminating;
  object["controller"] = KnownTexts({{"kind", pod.controller.kind}, {"name", pod.controller.id}});
  object["started"] = pod.started ? Json(TimeText(*pod.started)) : Json(nullptr);
  object["containers"] = List(pod.containers, [](const PodContainer& container) {
    return Json{{"name", container.name}, {"id", Text(container.id)}};
  });
  object["requests"] = List(pod.requests, [](const ResourceRequest& request) {
    return Json{{"container", request.container},
                {"resource", request.resource},
                {"amount", Number(request.amount)}};
  });
  object["memory_request_bytes"] =
      pod.memory_request_bytes ? Number(*pod.memory_request_bytes) : Json(nullptr);
  object["labels"] = Json::object();
  for (const auto& [key, value] : pod.labels) object["labels"][key] = value;
  return object;
}

Json SchedulerObject(const Scheduler& scheduler) {
  Json object;
  object["allocatable"] = List(scheduler.allocatable, UnitObject);
  object["allocations"] = List(scheduler.allocations, AllocationObject);
  object["pods"] = List(scheduler.pods, PodObject);
  object["dropped"] = scheduler.dropped;
  return object;
}

Json EventObject(const DriverEvent& event) {
  Json object;
  object["time"] = TimeText(event.time);
  object["kind"] = std::string(EventKindName(event.kind));
  object["gpu_uuid"] = Text(event.gpu_uuid);
  object["data"] = event.data;
  object["gpu_instance_id"] = Optional(event.gpu_instance_id);
  return object;
}

}  // namespace

std::string TimeText(WallTime time) {
  using namespace std::chrono;
  // A damaged recording can hold any number; years of more than four digits are not RFC 3339.
  if (time < WallTime{} || time >= sys_days(year(10000) / January / 1)) {
    return fmt::format("{} us", time.time_since_epoch().count());
  }
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<milliseconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::string SnapshotJson(const Snapshot& snapshot, int indent) {
  Json object;
  object["time"] = TimeText(snapshot.time);
  object["node"] = {{"hostname", Text(snapshot.node.hostname)},
                    {"driver_version", Text(snapshot.node.driver_version)},
                    {"nvml_version", Text(snapshot.node.nvml_version)},
                    {"cuda_version", Text(snapshot.node.cuda_version)}};
  object["sources"] = List(snapshot.sources, SourceObject);
  object["gpus"] = List(snapshot.gpus, GpuObject);
  object["events"] = List(snapshot.events, EventObject);
  object["capabilities_missing"] = snapshot.capabilities_missing;
  object["scheduler"] = snapshot.scheduler ? SchedulerObject(*snapshot.scheduler) : Json(nullptr);
  return object.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpuassay
