#include "attribution/join/scheduler_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "attribution/kubernetes/device_id.h"
#include "attribution/split/owner_key.h"

namespace gpuassay {
namespace {

constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kSlurmResource = "gres/gpu";
constexpr std::size_t kDeviceIdBytesMax = 256;

std::vector<std::string_view> Parts(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
  }
  return parts;
}

std::optional<std::uint32_t> Number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void ResolveUnit(DeviceUnit& unit, const std::vector<Gpu>& gpus) {
  if (!unit.gpu_uuid.empty()) return;
  const std::optional<DeviceId> id = ParseDeviceId(unit.device_id);
  if (!id) return;
  if (!unit.replica) unit.replica = id->replica;
  const std::optional<ResolvedDevice> device = ResolveDevice(*id, gpus);
  if (!device) return;
  unit.gpu_uuid = device->gpu_uuid;
  unit.mig_uuid = device->mig_uuid;
}

void Add(Scheduler& view, Allocation allocation) {
  if (view.allocations.size() >= kAllocationsMax) {
    ++view.dropped;
  } else if (std::ranges::find(view.allocations, allocation) == view.allocations.end()) {
    view.allocations.push_back(std::move(allocation));
  }
}

// Of Slurm the numbers are those of the device files.
void AddSlurm(const EnvironmentClaim& claim, const std::vector<Gpu>& gpus, Scheduler& view) {
  for (const std::uint32_t minor : ParseSlurmGpus(claim.slurm_gpus)) {
    Allocation allocation{.scheduler = SchedulerKind::kSlurm,
                          .unit = {.resource = std::string(kSlurmResource),
                                   .device_id = std::to_string(minor),
                                   .replica = {},
                                   .gpu_uuid = "",
                                   .mig_uuid = ""},
                          .claim = "",
                          .owner = {}};
    allocation.owner.job = claim.owner.job;
    allocation.owner.user = claim.owner.user;
    const auto gpu = std::ranges::find_if(
        gpus, [minor](const Gpu& candidate) { return candidate.identity.minor_number == minor; });
    if (gpu != gpus.end()) allocation.unit.gpu_uuid = gpu->identity.uuid;
    Add(view, std::move(allocation));
  }
}

void AddVisible(const EnvironmentClaim& claim, const std::vector<Gpu>& gpus, Scheduler& view) {
  for (const std::string& id : ParseVisibleDevices(claim.visible_devices)) {
    Allocation allocation{.scheduler = SchedulerKind::kContainerRuntime,
                          .unit = {.resource = std::string(kVisibleDevices),
                                   .device_id = id,
                                   .replica = {},
                                   .gpu_uuid = "",
                                   .mig_uuid = ""},
                          .claim = "",
                          .owner = OwnerAsOne(claim.owner)};
    ResolveUnit(allocation.unit, gpus);
    Add(view, std::move(allocation));
  }
}

// Device memory of what a container of a pod was given, once per unit; of no container in
// particular: of the pod. Nullopt when it is not known.
std::optional<double> MemoryOfUnits(const Scheduler& view, const Pod& pod,
                                    const std::string& container, const std::vector<Gpu>& gpus) {
  std::optional<double> bytes;
  for (const Allocation& allocation : view.allocations) {
    const ProcessOwner& owner = allocation.owner;
    if (!owner.pod || owner.pod->name != pod.identity.name ||
        owner.pod->namespace_name != pod.identity.namespace_name) {
      continue;
    }
    if (!container.empty() && owner.container && owner.container->name != container) continue;
    const auto gpu = std::ranges::find_if(gpus, [&allocation](const Gpu& candidate) {
      return candidate.identity.uuid == allocation.unit.gpu_uuid;
    });
    if (gpu == gpus.end() || !gpu->readings.memory_total_bytes) return std::nullopt;
    bytes = (bytes ? *bytes : 0) + *gpu->readings.memory_total_bytes;
  }
  return bytes;
}

// When all GPUs have the same memory it does not matter which one it is.
std::optional<double> MemoryOfAnyGpu(const std::vector<Gpu>& gpus) {
  if (gpus.empty() || !gpus.front().readings.memory_total_bytes) return std::nullopt;
  const Reading& first = gpus.front().readings.memory_total_bytes;
  const bool alike = std::ranges::all_of(gpus, [&first](const Gpu& gpu) {
    return gpu.readings.memory_total_bytes && *gpu.readings.memory_total_bytes == *first;
  });
  return alike ? std::optional(*first) : std::nullopt;
}

double AmountOr(const Pod& pod, std::string_view resource, double otherwise) {
  const auto found = std::ranges::find(pod.requests, resource, &ResourceRequest::resource);
  return found == pod.requests.end() ? otherwise : found->amount;
}

// HAMi: per cent of each device that the container was given. KAI: a part of each of the devices.
void AddMemoryRequest(const Scheduler& view, const std::vector<Gpu>& gpus, Pod& pod) {
  if (pod.memory_request_bytes) return;
  double bytes = 0;
  bool known = false;
  for (const ResourceRequest& request : pod.requests) {
    std::optional<double> of;
    if (request.resource.ends_with("/gpumem-percentage")) {
      of = MemoryOfUnits(view, pod, request.container, gpus);
      if (of) *of *= request.amount / 100;
    } else if (request.resource == "gpu-fraction") {
      of = MemoryOfAnyGpu(gpus);
      if (of) *of *= request.amount * AmountOr(pod, "gpu-fraction-num-devices", 1);
    } else {
      continue;
    }
    if (!of) return;
    known = true;
    bytes += *of;
  }
  if (known) pod.memory_request_bytes = bytes;
}

}  // namespace

std::vector<std::uint32_t> ParseSlurmGpus(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  for (const std::string_view part : Parts(text)) {
    const std::size_t dash = part.find('-');
    const std::optional<std::uint32_t> first = Number(part.substr(0, dash));
    const std::optional<std::uint32_t> last =
        dash == part.npos ? first : Number(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kGpusMax) return {};
    for (std::uint32_t number = *first; number <= *last; ++number) numbers.push_back(number);
    if (numbers.size() > kGpusMax) return {};
  }
  std::ranges::sort(numbers);
  const auto rest = std::ranges::unique(numbers);
  numbers.erase(rest.begin(), rest.end());
  return numbers;
}

std::vector<std::string> ParseVisibleDevices(std::string_view text) {
  std::vector<std::string> ids;
  for (const std::string_view part : Parts(text)) {
    if (part.empty() || part == "all" || part == "none" || part == "void") continue;
    if (ids.size() < kGpusMax * kMigInstancesMax && part.size() <= kDeviceIdBytesMax) {
      ids.emplace_back(part);
    }
  }
  return ids;
}

SchedulerView::Device::Device(const Gpu& gpu)
    : index(gpu.identity.index),
      uuid(gpu.identity.uuid),
      minor_number(gpu.identity.minor_number),
      memory_total_bytes(gpu.readings.memory_total_bytes) {
  for (const MigInstance& one : gpu.mig) mig.push_back(one.identity);
}

bool SchedulerView::Device::IsOf(const Gpu& gpu) const {
  const auto is_same = [](const MigIdentity& known, const MigInstance& now) {
    return known == now.identity;
  };
  return index == gpu.identity.index && uuid == gpu.identity.uuid &&
         minor_number == gpu.identity.minor_number &&
         memory_total_bytes == gpu.readings.memory_total_bytes &&
         std::ranges::equal(mig, gpu.mig, is_same);
}

SchedulerPtr SchedulerView::Resolve(const SchedulerPtr& told, std::vector<EnvironmentClaim> claims,
                                    const std::vector<Gpu>& gpus) {
  const bool same_devices = std::ranges::equal(
      devices_, gpus, [](const Device& known, const Gpu& gpu) { return known.IsOf(gpu); });
  if (made_ && told == told_ && claims == claims_ && same_devices) return resolved_;
  made_ = true;
  told_ = told;
  claims_ = std::move(claims);
  devices_.clear();
  for (const Gpu& gpu : gpus) devices_.emplace_back(gpu);
  auto view = told ? std::make_shared<Scheduler>(*told) : std::make_shared<Scheduler>();
  for (DeviceUnit& unit : view->allocatable) ResolveUnit(unit, gpus);
  for (Allocation& allocation : view->allocations) ResolveUnit(allocation.unit, gpus);
  for (Pod& pod : view->pods) AddMemoryRequest(*view, gpus, pod);
  for (const EnvironmentClaim& claim : claims_) {
    if (!claim.slurm_gpus.empty() && claim.owner.job) AddSlurm(claim, gpus, *view);
    const bool told_better = claim.owner.pod && told;
    if (claim.owner.container && !told_better) AddVisible(claim, gpus, *view);
  }
  const bool nobody = !told && view->allocations.empty();
  resolved_ = nobody ? nullptr : std::move(view);
  return resolved_;
}

}  // namespace gpuassay
