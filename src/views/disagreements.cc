#include "views/disagreements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "views/owner_text.h"

namespace gpuassay {
namespace {

using Kind = DisagreementKind;

constexpr std::string_view kMpsServer = "nvidia-cuda-mps";  // comm is cut after 15 bytes

bool SamePod(const PodIdentity& a, const PodIdentity& b) {
  if (!a.name.empty() && !b.name.empty()) {
    return a.name == b.name && a.namespace_name == b.namespace_name;
  }
  return !a.uid.empty() && a.uid == b.uid;
}

const MigIdentity* MigOf(const DeviceView& device) { return device.mig ? &*device.mig : nullptr; }
std::string TextOf(const DeviceView& device) { return DeviceText(device.gpu, MigOf(device)); }

void AddTo(DeviceView& device, Kind kind, std::string text, std::string pod = "") {
  device.disagreements.push_back(
      {kind, std::move(text), device.gpu.uuid, device.mig ? device.mig->uuid : "", std::move(pod)});
}

std::string ProcessText(const ViewProcess& process) {
  return process.name.empty() ? fmt::format("PID {}", process.pid)
                              : fmt::format("PID {} ({})", process.pid, process.name);
}

std::string HoldsText(const Reading& memory) {
  return memory ? fmt::format("holds {}", MebibytesText(*memory)) : "has a context";
}

// Works for its clients, which are listed themselves; nobody gives it a device.
bool IsMpsServer(const ViewProcess& process) { return process.name.starts_with(kMpsServer); }

// --- of a pod on a device ------------------------------------------------------------------------

bool HasProcess(const DeviceView& device, const PodIdentity& pod) {
  return std::ranges::any_of(device.processes, [&](const ViewProcess& process) {
    return process.owner.pod && SamePod(*process.owner.pod, pod);
  });
}

// Each pod that was given the device and has no process on it, once.
void FindHeldWithoutProcess(DeviceView& device) {
  std::set<std::string> said;
  for (const Allocation& one : device.allocations) {
    if (!one.owner.pod || HasProcess(device, *one.owner.pod)) continue;
    const std::string pod = PodText(*one.owner.pod);
    if (!said.insert(pod).second) continue;
    AddTo(device, Kind::kHeldWithoutProcess,
          fmt::format("{} was given {} and has no process on it", pod, TextOf(device)), pod);
  }
}

// "GPU 1", or nothing when the pod was given none.
std::string GivenTo(const PodIdentity& pod, const Views& views) {
  std::string given;
  for (const DeviceView& device : views.devices) {
    const bool here = std::ranges::any_of(device.allocations, [&](const Allocation& one) {
      return one.owner.pod && SamePod(*one.owner.pod, pod);
    });
    if (!here) continue;
    if (!given.empty()) given += " and ";
    given += TextOf(device);
  }
  return given;
}

void FindUseByPods(const Views& views, DeviceView& device) {
  std::set<std::string> said;
  for (const ViewProcess& process : device.processes) {
    if (!views.allocations_known || !process.owner.pod || IsMpsServer(process)) continue;
    const PodIdentity& pod = *process.owner.pod;
    const bool allocated = std::ranges::any_of(device.allocations, [&](const Allocation& one) {
      return one.owner.pod && SamePod(*one.owner.pod, pod);
    });
    const std::string text = PodText(pod);
    if (allocated || !said.insert(text).second) continue;
    const std::string given = GivenTo(pod, views);
    if (given.empty()) {
      AddTo(device, Kind::kUsedWithoutAllocation,
            fmt::format("{} was given no GPU and {} of {}: {}", text,
                        HoldsText(process.memory_used_bytes), TextOf(device), ProcessText(process)),
            text);
    } else {
      AddTo(device, Kind::kUsedOtherDevice,
            fmt::format("{} was given {} and {} of {}: {}", text, given,
                        HoldsText(process.memory_used_bytes), TextOf(device), ProcessText(process)),
            text);
    }
  }
}

// Processes outside Kubernetes on a device that Kubernetes hands out.
void FindOutsiders(DeviceView& device) {
  if (device.units.empty()) return;
  for (const ViewProcess& process : device.processes) {
    if (process.owner.pod || IsMpsServer(process)) continue;
    AddTo(device, Kind::kOutsideScheduler,
          fmt::format("{} of {} {} of {}, which Kubernetes hands out as {}", ProcessText(process),
                      OwnerText(process.owner), HoldsText(process.memory_used_bytes),
                      TextOf(device), device.units.front().resource));
  }
}

// A pod that the API server no longer has, while it tells of others.
void FindGonePods(const Snapshot& snapshot, DeviceView& device) {
  if (!snapshot.scheduler) return;
  const std::vector<Pod>& pods = snapshot.scheduler->pods;
  const bool uids_known =
      std::ranges::any_of(pods, [](const Pod& pod) { return !pod.identity.uid.empty(); });
  if (!uids_known) return;
  for (const ViewProcess& process : device.processes) {
    if (!process.owner.pod || process.owner.pod->uid.empty()) continue;
    const bool exists = std::ranges::any_of(
        pods, [&](const Pod& pod) { return pod.identity.uid == process.owner.pod->uid; });
    if (exists) continue;
    const std::string pod = PodText(*process.owner.pod);
    AddTo(device, Kind::kContainerGone,
          fmt::format("{} runs on {} for {}, which Kubernetes no longer has", ProcessText(process),
                      TextOf(device), pod),
          pod);
  }
}

// --- of a device ---------------------------------------------------------------------------------

void FindReplicas(DeviceView& device) {
  std::map<std::string, std::size_t> units;
  for (const DeviceUnit& unit : device.units) ++units[unit.resource];
  for (const auto& [resource, count] : units) {
    if (count < 2) continue;
    AddTo(
        device, Kind::kUnitsAreOneDevice,
        fmt::format("{} units of {} are one device, {} ({}): its memory is not divided, and a pod "
                    "with two of them gets no more of it",
                    count, resource, TextOf(device), device.gpu.name));
  }
}

std::string HolderText(const DeviceHolder& holder) {
  std::string state;
  if (holder.kind == HolderKind::kDefunctLeader) {
    state = fmt::format(", <defunct>, {} thread{} alive", holder.threads_alive,
                        holder.threads_alive == 1 ? "" : "s");
  } else if (holder.kind == HolderKind::kUninterruptible) {
    state = ", hangs in the kernel";
  } else if (holder.kind == HolderKind::kContainerGone) {
    state = ", its container is gone";
  } else if (holder.kind == HolderKind::kOrphan) {
    state = ", its parent is gone";
  } else if (holder.kind == HolderKind::kOtherPidNamespace) {
    state = ", in another PID namespace";
  } else if (holder.kind == HolderKind::kMpsServer) {
    state = ", an MPS server";
  }
  return fmt::format("PID {} ({}{}) of {}", holder.pid, holder.name, state,
                     OwnerText(holder.owner));
}

void FindUnownedMemory(DeviceView& device) {
  const Reading& unowned = device.memory_unattributed_bytes;
  if (!unowned || *unowned < kUnownedBytesMin) return;
  std::string text = fmt::format("{} of {} are used and no listed process accounts for them",
                                 MebibytesText(*unowned), TextOf(device));
  // Who merely watches (a daemon, a tool) has the file open on a healthy node, too.
  const auto telling = [](const DeviceHolder& holder) { return holder.kind != HolderKind::kOther; };
  const auto found = std::ranges::find_if(device.holders, telling);
  if (found != device.holders.end()) {
    text += fmt::format("; {} has the device open. Clean-up: {}. {}", HolderText(*found),
                        CleanUpName(found->clean_up), CleanUpInterrupts(found->clean_up));
  } else if (!device.holders.empty()) {
    text += fmt::format("; {} has the device open", HolderText(device.holders.front()));
  } else {
    text += fmt::format("; nobody has the device open. Clean-up: {}. {}",
                        CleanUpName(CleanUp::kGpuReset), CleanUpInterrupts(CleanUp::kGpuReset));
  }
  AddTo(device, Kind::kMemoryNobodyOwns, std::move(text));
}

void FindPools(DeviceView& device) {
  for (const ViewProcess& process : device.processes) {
    const Reading& reserved = process.pool_reserved_bytes;
    const Reading& allocated = process.pool_allocated_bytes;
    if (!reserved || !allocated || *reserved < *allocated * kPoolOverDataFactor) continue;
    AddTo(
        device, Kind::kPoolLargerThanData,
        fmt::format("the pool of {} has taken {} of {} and holds {} of data", ProcessText(process),
                    MebibytesText(*reserved), TextOf(device), MebibytesText(*allocated)),
        process.owner.pod ? PodText(*process.owner.pod) : "");
  }
}

void FindWorkWithoutProcess(DeviceView& device) {
  if (!device.processes.empty() || !device.busy_ratio || *device.busy_ratio <= 0) return;
  AddTo(device, Kind::kBusyWithoutProcess,
        fmt::format("{} is {:.0f} % busy and the driver lists no process: their PIDs are not "
                    "visible from here",
                    TextOf(device), *device.busy_ratio * 100));
}

void FindSharers(DeviceView& device) {
  if (device.processes.size() < kSharersMax) return;
  std::size_t active = 0;
  bool known = true;
  const ViewProcess* largest = nullptr;
  for (const ViewProcess& process : device.processes) {
    known = known && process.sm_share_ratio;
    if (!process.sm_share_ratio || *process.sm_share_ratio <= 0) continue;
    ++active;
    if (largest == nullptr || *process.sm_share_ratio > *largest->sm_share_ratio) {
      largest = &process;
    }
  }
  std::string text =
      fmt::format("{} processes share {}, ", device.processes.size(), TextOf(device));
  text += known ? fmt::format("{} ran a kernel since the last reading", active)
                : std::string("how many of them work is not known");
  if (largest != nullptr) {
    text += fmt::format("; the largest is {} of {} with {:.0f} %", ProcessText(*largest),
                        OwnerText(largest->owner), *largest->sm_share_ratio * 100);
  }
  AddTo(device, Kind::kManySharers, std::move(text));
}

// --- of a pod ------------------------------------------------------------------------------------

void FindRequests(PodView& pod) {
  const std::optional<double>& asked = pod.pod.memory_request_bytes;
  if (!asked || !pod.memory_used_bytes || *pod.memory_used_bytes <= 0) return;
  const double used = *pod.memory_used_bytes;
  const std::string name = PodText(pod.pod.identity);
  if (used > *asked) {
    pod.disagreements.push_back({Kind::kMemoryOverRequest,
                                 fmt::format("{} asked for {} of device memory and uses {}", name,
                                             MebibytesText(*asked), MebibytesText(used)),
                                 "", "", name});
  } else if (*asked >= used * kUnderRequestFactor) {
    pod.disagreements.push_back(
        {Kind::kMemoryUnderRequest,
         fmt::format(
             "{} asked for {} of device memory and uses {}: {:.1f} times as much as it uses", name,
             MebibytesText(*asked), MebibytesText(used), *asked / used),
         "", "", name});
  }
}

// --- of the node ---------------------------------------------------------------------------------

void FindUnknownDevices(const Snapshot& snapshot, Views& views) {
  for (const Allocation& one : snapshot.scheduler->allocations) {
    if (!one.unit.gpu_uuid.empty() || !one.owner.pod) continue;
    const std::string pod = PodText(*one.owner.pod);
    views.disagreements.push_back(
        {Kind::kUnknownDevice,
         fmt::format(
             "{} was given {} of {}, and no device here is called so: a GPU or a MIG layout "
             "has changed since",
             pod, one.unit.device_id, one.unit.resource),
         "", "", pod});
  }
}

// GPUs that are in no resource, when others are: unhealthy for the plugin, or left out.
void FindNotHandedOut(Views& views) {
  const bool any = std::ranges::any_of(
      views.devices, [](const DeviceView& device) { return !device.units.empty(); });
  for (DeviceView& device : views.devices) {
    if (!any || !device.units.empty()) continue;
    AddTo(
        device, Kind::kNotHandedOut,
        fmt::format("{} is in no resource of this node while others are: the device plugin leaves "
                    "it out or holds it for unhealthy",
                    TextOf(device)));
  }
}

void FindUnreachable(const Snapshot& snapshot, Views& views) {
  // The first source is the driver's; the others tell who owns what.
  for (std::size_t i = 1; i < snapshot.sources.size(); ++i) {
    const SourceStatus& source = snapshot.sources[i];
    if (source.error.empty()) continue;
    views.disagreements.push_back({Kind::kSchedulerUnreachable,
                                   fmt::format("{}: {}", source.name, source.error), "", "", ""});
  }
}

}  // namespace

void FindDisagreements(const Snapshot& snapshot, Views& views) {
  for (DeviceView& device : views.devices) {
    FindHeldWithoutProcess(device);
    FindUseByPods(views, device);
    FindOutsiders(device);
    FindGonePods(snapshot, device);
    FindReplicas(device);
    FindUnownedMemory(device);
    FindPools(device);
    FindWorkWithoutProcess(device);
    FindSharers(device);
  }
  for (PodView& pod : views.pods) {
    FindRequests(pod);
    for (const DeviceView& device : views.devices) {
      std::ranges::copy_if(
          device.disagreements, std::back_inserter(pod.disagreements),
          [&](const Disagreement& one) { return one.pod == PodText(pod.pod.identity); });
    }
  }
  if (snapshot.scheduler) FindUnknownDevices(snapshot, views);
  FindNotHandedOut(views);
  FindUnreachable(snapshot, views);
}

}  // namespace gpuassay
