#include "sources/replay/neutral.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace gpuassay {
namespace {

constexpr std::uint32_t kFirstPid = 1001;
// An error text can hold paths, host names and UUIDs in any form; its reason stays.
constexpr std::string_view kErrorStandIn = "error text left out of a neutral recording";

// Words that everybody uses and that help to read a recording. Any other is a site's own: a patched
// runtime or a custom resource can be called like the company.
constexpr auto kPublicRuntimes = std::to_array<std::string_view>(
    {"containerd", "cri-o", "docker", "podman", "apptainer", "enroot", "lxc"});
constexpr auto kPublicJobKinds = std::to_array<std::string_view>(
    {"slurm", "Job", "CronJob", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "JobSet",
     "PyTorchJob", "MPIJob", "TFJob", "TrainJob", "RayCluster", "RayJob", "LeaderWorkerSet"});
constexpr auto kPublicSteps = std::to_array<std::string_view>({"batch", "extern", "interactive"});
constexpr auto kUnitSuffixes = std::to_array<std::string_view>({".service", ".scope", ".slice"});

bool IsOneOf(std::span<const std::string_view> words, std::string_view text) {
  return std::ranges::find(words, text) != words.end();
}

// Steps of Slurm are counted from 0.
bool IsStepNumber(std::string_view text) {
  constexpr std::size_t kDigitsMax = 5;  // longer numbers can be anything
  return text.size() <= kDigitsMax &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view UnitSuffix(std::string_view unit) {
  for (const std::string_view suffix : kUnitSuffixes) {
    if (unit.ends_with(suffix)) return suffix;
  }
  return {};
}

}  // namespace

std::size_t Neutralizer::Number(Kind kind, const std::string& original) {
  Numbers& numbers = numbers_[static_cast<std::size_t>(kind)];
  return numbers.try_emplace(original, numbers.size() + 1).first->second;
}

void Neutralizer::Rename(Kind kind, std::string_view word, std::string& text) {
  if (!text.empty()) text = fmt::format("{}-{}", word, Number(kind, text));
}

std::string Neutralizer::Uuid(const std::string& original) {
  if (original.empty()) return {};
  const bool instance = original.starts_with("MIG-");
  return fmt::format("{}-00000000-0000-0000-0000-{:012}", instance ? "MIG" : "GPU",
                     Number(instance ? Kind::kMigInstance : Kind::kGpu, original));
}

std::uint32_t Neutralizer::Pid(std::uint32_t original) {
  const auto next = static_cast<std::uint32_t>(kFirstPid + pids_.size());
  return pids_.try_emplace(original, next).first->second;
}

void Neutralizer::ApplyToContainerId(std::string& id) {
  if (!id.empty()) id = fmt::format("{:064}", Number(Kind::kContainerId, id));
}

void Neutralizer::ApplyToPodIdentity(PodIdentity& pod) {
  Rename(Kind::kNamespace, "namespace", pod.namespace_name);
  Rename(Kind::kPod, "pod", pod.name);
  if (!pod.uid.empty()) {
    pod.uid = fmt::format("00000000-0000-0000-0000-{:012}", Number(Kind::kPodUid, pod.uid));
  }
}

void Neutralizer::ApplyToJob(JobIdentity& job) {
  if (!IsOneOf(kPublicJobKinds, job.kind)) Rename(Kind::kJobKind, "kind", job.kind);
  Rename(Kind::kJob, "job", job.id);
  if (!IsOneOf(kPublicSteps, job.step) && !IsStepNumber(job.step)) {
    Rename(Kind::kStep, "step", job.step);
  }
}

void Neutralizer::ApplyToOwner(ProcessOwner& owner) {
  if (owner.container) {
    ApplyToContainerId(owner.container->id);
    Rename(Kind::kContainerName, "container", owner.container->name);
    if (!IsOneOf(kPublicRuntimes, owner.container->runtime)) {
      Rename(Kind::kRuntime, "runtime", owner.container->runtime);
    }
  }
  if (owner.pod) ApplyToPodIdentity(*owner.pod);
  if (owner.job) ApplyToJob(*owner.job);
  Rename(Kind::kUser, "user", owner.user);
  std::string& unit = owner.systemd_unit;
  const std::string suffix(UnitSuffix(unit));
  Rename(Kind::kSystemdUnit, "unit", unit);
  unit += suffix;
}

// Resources of NVIDIA and of Slurm are the same everywhere; any other can be named like a site.
void Neutralizer::ApplyToResource(std::string& resource) {
  if (resource.starts_with("nvidia.com/") || resource.starts_with("gres/")) return;
  Rename(Kind::kResource, "resource", resource);
}

void Neutralizer::ApplyToUnit(DeviceUnit& unit) {
  ApplyToResource(unit.resource);
  unit.gpu_uuid = Uuid(unit.gpu_uuid);
  unit.mig_uuid = Uuid(unit.mig_uuid);
  // Other forms of ids (nvidia0/gi1, gpu-0) tell nothing of a site.
  const std::size_t replica = unit.device_id.find("::");
  const std::string suffix =
      replica == std::string::npos ? std::string() : unit.device_id.substr(replica);
  const std::string uuid = unit.device_id.substr(0, replica);
  if (uuid.starts_with("GPU-") || uuid.starts_with("MIG-")) unit.device_id = Uuid(uuid) + suffix;
}

void Neutralizer::ApplyToPod(Pod& pod) {
  ApplyToPodIdentity(pod.identity);
  ApplyToJob(pod.controller);
  for (PodContainer& container : pod.containers) {
    Rename(Kind::kContainerName, "container", container.name);
    ApplyToContainerId(container.id);
  }
  for (ResourceRequest& request : pod.requests) {
    Rename(Kind::kContainerName, "container", request.container);
    ApplyToResource(request.resource);
  }
  pod.labels.clear();  // anything can be in them
}

void Neutralizer::ApplyToScheduler(Scheduler& scheduler) {
  for (DeviceUnit& unit : scheduler.allocatable) ApplyToUnit(unit);
  for (Allocation& allocation : scheduler.allocations) {
    ApplyToUnit(allocation.unit);
    Rename(Kind::kClaim, "claim", allocation.claim);
    ApplyToOwner(allocation.owner);
  }
  for (Pod& pod : scheduler.pods) ApplyToPod(pod);
}

void Neutralizer::ApplyToGpu(Gpu& gpu) {
  GpuIdentity& identity = gpu.identity;
  identity.uuid = Uuid(identity.uuid);
  if (!identity.serial.empty()) {
    identity.serial = fmt::format("{:013}", Number(Kind::kSerial, identity.serial));
  }
  if (!identity.pci_bus_id.empty()) {
    const std::size_t number = Number(Kind::kPciAddress, identity.pci_bus_id);
    identity.pci_bus_id = fmt::format("{:08X}:{:02X}:00.0", number / 256, number % 256);
  }
  for (MigInstance& mig : gpu.mig) mig.identity.uuid = Uuid(mig.identity.uuid);
  for (GpuProcess& process : gpu.processes) {
    process.pid = Pid(process.pid);
    Rename(Kind::kProcessName, "process", process.name);
    ApplyToOwner(process.owner);
  }
  std::ranges::sort(gpu.processes, {}, &GpuProcess::pid);  // the snapshot's order
  for (DeviceHolder& holder : gpu.holders) {
    holder.pid = Pid(holder.pid);
    if (holder.parent_pid > 1) holder.parent_pid = Pid(holder.parent_pid);
    Rename(Kind::kProcessName, "process", holder.name);
    ApplyToOwner(holder.owner);
  }
  std::ranges::sort(gpu.holders, {}, &DeviceHolder::pid);
  gpu.owners.clear();  // derived from the rest, with names in them
}

Result<void> Neutralizer::Apply(Snapshot& snapshot) {
  Rename(Kind::kHost, "host", snapshot.node.hostname);
  for (SourceStatus& source : snapshot.sources) {
    if (!source.error.empty()) source.error = kErrorStandIn;
  }
  for (Gpu& gpu : snapshot.gpus) ApplyToGpu(gpu);
  for (DriverEvent& event : snapshot.events) event.gpu_uuid = Uuid(event.gpu_uuid);
  if (snapshot.scheduler) {
    auto scheduler = std::make_shared<Scheduler>(*snapshot.scheduler);
    ApplyToScheduler(*scheduler);
    snapshot.scheduler = std::move(scheduler);
  }
  std::size_t most = pids_.size();
  for (const Numbers& numbers : numbers_) most = std::max(most, numbers.size());
  if (most <= kStandInsMax) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("more than {} different PIDs, names or devices in one neutral recording",
                          kStandInsMax));
}

}  // namespace gpuassay
