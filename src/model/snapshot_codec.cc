#include "model/snapshot_codec.h"

#include <fmt/format.h>

#include <initializer_list>
#include <memory>

#include "model/catalogue.h"
#include "model/codec_bytes.h"

namespace gpuassay {
namespace {

using codec::BitmapBytes;
using codec::Reader;
using codec::Writer;

constexpr std::size_t kScopes = 5;  // all but kOwner, which is derived
constexpr std::uint8_t kLastProcessType = static_cast<std::uint8_t>(ProcessType::kMps);
constexpr std::uint8_t kLastEventKind = static_cast<std::uint8_t>(EventKind::kRecoveryAction);
constexpr auto kLastSchedulerKind = static_cast<std::uint8_t>(SchedulerKind::kContainerRuntime);
constexpr auto kLastHolderKind = static_cast<std::uint8_t>(HolderKind::kOther);
constexpr auto kLastCleanUp = static_cast<std::uint8_t>(CleanUp::kReboot);

// Fewest bytes that one element of a list takes: a count that promises more than is there is
// refused before memory is taken for it.
constexpr std::size_t kTextBytesMin = 2;
constexpr std::size_t kSourceBytesMin = 2 + 1 + 2 + 1;
constexpr std::size_t kGpuBytesMin = 4 + 6 * 2 + 1 + 5 * 4;
constexpr std::size_t kLinkBytesMin = 4;
constexpr std::size_t kMigBytesMin = 3 * 4 + 2 * 2;
constexpr std::size_t kProcessBytesMin = 4 + 1 + 1 + 1 + 2 + 1;
constexpr std::size_t kXidBytesMin = 4 + 8;
constexpr std::size_t kEventBytesMin = 8 + 1 + 2 + 8 + 1;
constexpr std::size_t kHolderBytesMin = 4 + 4 + 2 + 1 + 4 + 1 + 1 + 1;
constexpr std::size_t kUnitBytesMin = 2 + 2 + 1 + 2 + 2;
constexpr std::size_t kAllocationBytesMin = 1 + kUnitBytesMin + 2 + 1;
constexpr std::size_t kPodBytesMin = 3 * 2 + 2 + 1 + 3 * 2 + 1 + 4 + 4 + 1 + 4;
constexpr std::size_t kPodContainerBytesMin = 2 * 2;
constexpr std::size_t kRequestBytesMin = 2 * 2 + 8;
constexpr std::size_t kLabelBytesMin = 2 * 2;

// Parts of a process that the driver does not tell, one bit each: where nobody adds them, they cost
// one byte.
constexpr std::uint8_t kHasStart = 1 << 0;
constexpr std::uint8_t kHasContainer = 1 << 1;
constexpr std::uint8_t kHasPod = 1 << 2;
constexpr std::uint8_t kHasJob = 1 << 3;
constexpr std::uint8_t kHasUser = 1 << 4;
constexpr std::uint8_t kHasSystemdUnit = 1 << 5;
constexpr std::uint8_t kHasAll = (1 << 6) - 1;

void PutGpuIdentity(const GpuIdentity& identity, Writer& writer) {
  writer.Put(identity.index);
  writer.PutText(identity.uuid);
  writer.PutText(identity.pci_bus_id);
  writer.PutText(identity.name);
  writer.PutText(identity.serial);
  writer.PutText(identity.vbios_version);
  writer.PutText(identity.architecture);
  writer.PutOptional(identity.minor_number);
}

void PutMig(const MigInstance& mig, Writer& writer) {
  writer.Put(mig.identity.index);
  writer.Put(mig.identity.gpu_instance_id);
  writer.Put(mig.identity.compute_instance_id);
  writer.PutText(mig.identity.uuid);
  writer.PutText(mig.identity.profile);
  writer.PutReadings(mig.readings);
}

void PutOwnerTexts(std::initializer_list<std::string_view> texts, Writer& writer) {
  for (const std::string_view text : texts) writer.PutText(text, kOwnerTextBytesMax);
}

// First what is there, then each of it in this order.
void PutStartAndOwner(std::optional<Duration> start, const ProcessOwner& owner, Writer& writer) {
  unsigned present = 0;
  if (start) present |= kHasStart;
  if (owner.container) present |= kHasContainer;
  if (owner.pod) present |= kHasPod;
  if (owner.job) present |= kHasJob;
  if (!owner.user.empty()) present |= kHasUser;
  if (!owner.systemd_unit.empty()) present |= kHasSystemdUnit;
  writer.Put(static_cast<std::uint8_t>(present));
  if (start) writer.PutTime(*start);
  if (const auto& container = owner.container) {
    PutOwnerTexts({container->id, container->name, container->runtime}, writer);
  }
  if (const auto& pod = owner.pod) {
    PutOwnerTexts({pod->namespace_name, pod->name, pod->uid}, writer);
  }
  if (const auto& job = owner.job) PutOwnerTexts({job->kind, job->id, job->step}, writer);
  if (!owner.user.empty()) PutOwnerTexts({owner.user}, writer);
  if (!owner.systemd_unit.empty()) PutOwnerTexts({owner.systemd_unit}, writer);
}

void PutProcess(const GpuProcess& process, Writer& writer) {
  writer.Put(process.pid);
  writer.Put(static_cast<std::uint8_t>(process.type));
  writer.PutOptional(process.gpu_instance_id);
  writer.PutOptional(process.compute_instance_id);
  writer.PutText(process.name);
  PutStartAndOwner(process.start_after_boot, process.owner, writer);
  writer.PutReadings(process.readings);
}

void PutHolder(const DeviceHolder& holder, Writer& writer) {
  writer.Put(holder.pid);
  writer.Put(holder.parent_pid);
  writer.PutText(holder.name);
  writer.Put(static_cast<std::uint8_t>(holder.state));
  writer.Put(holder.threads_alive);
  writer.Put(static_cast<std::uint8_t>(holder.kind));
  writer.Put(static_cast<std::uint8_t>(holder.clean_up));
  PutStartAndOwner(holder.start_after_boot, holder.owner, writer);
}

void PutGpu(const Gpu& gpu, Writer& writer) {
  PutGpuIdentity(gpu.identity, writer);
  writer.PutReadings(gpu.readings);
  const std::size_t links = writer.PutCount(gpu.links.size(), kLinksMax);
  for (std::size_t i = 0; i < links; ++i) {
    writer.Put(gpu.links[i].link);
    writer.PutReadings(gpu.links[i].readings);
  }
  const std::size_t instances = writer.PutCount(gpu.mig.size(), kMigInstancesMax);
  for (std::size_t i = 0; i < instances; ++i) PutMig(gpu.mig[i], writer);
  const std::size_t processes = writer.PutCount(gpu.processes.size(), kProcessesPerGpuMax);
  for (std::size_t i = 0; i < processes; ++i) PutProcess(gpu.processes[i], writer);
  writer.Put(static_cast<std::uint32_t>(gpu.processes_dropped + gpu.processes.size() - processes));
  const std::size_t xids = writer.PutCount(gpu.xids.size(), kXidKindsMax);
  for (std::size_t i = 0; i < xids; ++i) {
    writer.Put(gpu.xids[i].xid);
    writer.Put(gpu.xids[i].count);
  }
  const std::size_t holders = writer.PutCount(gpu.holders.size(), kHoldersPerGpuMax);
  for (std::size_t i = 0; i < holders; ++i) PutHolder(gpu.holders[i], writer);
}

void PutUnit(const DeviceUnit& unit, Writer& writer) {
  writer.PutText(unit.resource);
  writer.PutText(unit.device_id);
  writer.PutOptional(unit.replica);
  writer.PutText(unit.gpu_uuid);
  writer.PutText(unit.mig_uuid);
}

void PutPod(const Pod& pod, Writer& writer) {
  PutOwnerTexts({pod.identity.namespace_name, pod.identity.name, pod.identity.uid}, writer);
  writer.PutText(pod.phase);
  writer.Put(static_cast<std::uint8_t>(pod.terminating));
  PutOwnerTexts({pod.controller.kind, pod.controller.id, pod.controller.step}, writer);
  writer.Put(static_cast<std::uint8_t>(pod.started.has_value()));
  if (pod.started) writer.PutTime(pod.started->time_since_epoch());
  const std::size_t containers = writer.PutCount(pod.containers.size(), kPodContainersMax);
  for (std::size_t i = 0; i < containers; ++i) {
    PutOwnerTexts({pod.containers[i].name, pod.containers[i].id}, writer);
  }
  const std::size_t requests = writer.PutCount(pod.requests.size(), kPodRequestsMax);
  for (std::size_t i = 0; i < requests; ++i) {
    PutOwnerTexts({pod.requests[i].container, pod.requests[i].resource}, writer);
    writer.PutDouble(pod.requests[i].amount);
  }
  writer.Put(static_cast<std::uint8_t>(pod.memory_request_bytes.has_value()));
  if (pod.memory_request_bytes) writer.PutDouble(*pod.memory_request_bytes);
  const std::size_t labels = writer.PutCount(pod.labels.size(), kPodLabelsMax);
  for (std::size_t i = 0; i < labels; ++i) {
    PutOwnerTexts({pod.labels[i].first, pod.labels[i].second}, writer);
  }
}

void PutScheduler(const Scheduler& scheduler, Writer& writer) {
  const std::size_t units = writer.PutCount(scheduler.allocatable.size(), kAllocatableMax);
  for (std::size_t i = 0; i < units; ++i) PutUnit(scheduler.allocatable[i], writer);
  const std::size_t allocations = writer.PutCount(scheduler.allocations.size(), kAllocationsMax);
  for (std::size_t i = 0; i < allocations; ++i) {
    const Allocation& allocation = scheduler.allocations[i];
    writer.Put(static_cast<std::uint8_t>(allocation.scheduler));
    PutUnit(allocation.unit, writer);
    PutOwnerTexts({allocation.claim}, writer);
    PutStartAndOwner(std::nullopt, allocation.owner, writer);
  }
  const std::size_t pods = writer.PutCount(scheduler.pods.size(), kPodsMax);
  for (std::size_t i = 0; i < pods; ++i) PutPod(scheduler.pods[i], writer);
  writer.Put(static_cast<std::uint32_t>(scheduler.dropped + scheduler.allocatable.size() - units +
                                        scheduler.allocations.size() - allocations +
                                        scheduler.pods.size() - pods));
}

void PutSource(const SourceStatus& source, Writer& writer) {
  writer.PutText(source.name);
  writer.Put(static_cast<std::uint8_t>(source.last_success.has_value()));
  if (source.last_success) writer.PutTime(source.last_success->time_since_epoch());
  writer.PutText(source.error);
  writer.Put(static_cast<std::uint8_t>(source.missing));
  writer.PutReadings(source.readings);
}

void PutEvent(const DriverEvent& event, Writer& writer) {
  writer.PutTime(event.time.time_since_epoch());
  writer.Put(static_cast<std::uint8_t>(event.kind));
  writer.PutText(event.gpu_uuid);
  writer.Put(event.data);
  writer.PutOptional(event.gpu_instance_id);
}

// Fields per scope that the writer of these bytes knew.
struct FieldCounts {
  std::size_t gpu = 0, link = 0, mig = 0, process = 0, source = 0;
};

std::size_t GetFieldCount(Reader& reader) {
  const std::size_t start = reader.position();
  const std::size_t fields = reader.Get<std::uint16_t>("number of fields");
  if (fields > kFieldsMax) {
    reader.FailAt(start, fmt::format("{} fields, at most {} are allowed", fields, kFieldsMax));
  }
  return fields;
}

GpuIdentity GetGpuIdentity(Reader& reader) {
  GpuIdentity identity;
  identity.index = reader.Get<std::uint32_t>("GPU index");
  identity.uuid = reader.GetText("GPU UUID");
  identity.pci_bus_id = reader.GetText("GPU PCI address");
  identity.name = reader.GetText("GPU name");
  identity.serial = reader.GetText("GPU serial");
  identity.vbios_version = reader.GetText("GPU VBIOS version");
  identity.architecture = reader.GetText("GPU architecture");
  identity.minor_number = reader.GetOptional("GPU minor number");
  return identity;
}

void GetMig(Reader& reader, const FieldCounts& fields, MigInstance& mig) {
  mig.identity.index = reader.Get<std::uint32_t>("MIG index");
  mig.identity.gpu_instance_id = reader.Get<std::uint32_t>("GPU instance id");
  mig.identity.compute_instance_id = reader.Get<std::uint32_t>("compute instance id");
  mig.identity.uuid = reader.GetText("MIG UUID");
  mig.identity.profile = reader.GetText("MIG profile");
  reader.GetReadings(fields.mig, "MIG readings", mig.readings);
}

// `present`: the bits that the writer put before them.
void GetOwner(Reader& reader, unsigned present, ProcessOwner& owner) {
  const auto text = [&reader](const char* what) {
    return reader.GetText(what, kOwnerTextBytesMax);
  };
  if ((present & kHasContainer) != 0) {
    ContainerIdentity& container = owner.container.emplace();
    container.id = text("container id");
    container.name = text("container name");
    container.runtime = text("container runtime");
  }
  if ((present & kHasPod) != 0) {
    PodIdentity& pod = owner.pod.emplace();
    pod.namespace_name = text("namespace");
    pod.name = text("pod name");
    pod.uid = text("pod UID");
  }
  if ((present & kHasJob) != 0) {
    JobIdentity& job = owner.job.emplace();
    job.kind = text("job kind");
    job.id = text("job id");
    job.step = text("job step");
  }
  if ((present & kHasUser) != 0) owner.user = text("user");
  if ((present & kHasSystemdUnit) != 0) owner.systemd_unit = text("systemd unit");
}

void GetStartAndOwner(Reader& reader, std::optional<Duration>& start, ProcessOwner& owner) {
  const unsigned present = reader.GetAtMost(kHasAll, "owner bits");
  if ((present & kHasStart) != 0) start = reader.GetTime("process start");
  GetOwner(reader, present, owner);
}

void GetProcess(Reader& reader, const FieldCounts& fields, GpuProcess& process) {
  process.pid = reader.Get<std::uint32_t>("PID");
  process.type = static_cast<ProcessType>(reader.GetAtMost(kLastProcessType, "process type"));
  process.gpu_instance_id = reader.GetOptional("GPU instance id of a process");
  process.compute_instance_id = reader.GetOptional("compute instance id of a process");
  process.name = reader.GetText("process name");
  GetStartAndOwner(reader, process.start_after_boot, process.owner);
  reader.GetReadings(fields.process, "process readings", process.readings);
}

void GetHolder(Reader& reader, DeviceHolder& holder) {
  holder.pid = reader.Get<std::uint32_t>("PID of a holder");
  holder.parent_pid = reader.Get<std::uint32_t>("parent of a holder");
  holder.name = reader.GetText("holder name");
  holder.state = static_cast<char>(reader.GetAtMost(0x7f, "state of a holder"));
  holder.threads_alive = reader.Get<std::uint32_t>("threads of a holder");
  holder.kind = static_cast<HolderKind>(reader.GetAtMost(kLastHolderKind, "kind of a holder"));
  holder.clean_up = static_cast<CleanUp>(reader.GetAtMost(kLastCleanUp, "clean-up of a holder"));
  GetStartAndOwner(reader, holder.start_after_boot, holder.owner);
}

void GetUnit(Reader& reader, DeviceUnit& unit) {
  unit.resource = reader.GetText("resource");
  unit.device_id = reader.GetText("device id");
  unit.replica = reader.GetOptional("replica");
  unit.gpu_uuid = reader.GetText("UUID of a unit");
  unit.mig_uuid = reader.GetText("MIG UUID of a unit");
}

void GetPod(Reader& reader, Pod& pod) {
  const auto text = [&reader](const char* what) {
    return reader.GetText(what, kOwnerTextBytesMax);
  };
  pod.identity.namespace_name = text("namespace");
  pod.identity.name = text("pod name");
  pod.identity.uid = text("pod UID");
  pod.phase = reader.GetText("phase");
  pod.terminating = reader.GetFlag("terminating");
  pod.controller.kind = text("controller kind");
  pod.controller.id = text("controller name");
  pod.controller.step = text("controller step");
  if (reader.GetFlag("start of a pod")) pod.started = WallTime(reader.GetTime("start of a pod"));
  pod.containers.resize(
      reader.GetCount(kPodContainersMax, kPodContainerBytesMin, "number of containers"));
  for (PodContainer& container : pod.containers) {
    container.name = text("container name");
    container.id = text("container id");
  }
  pod.requests.resize(reader.GetCount(kPodRequestsMax, kRequestBytesMin, "number of requests"));
  for (ResourceRequest& request : pod.requests) {
    request.container = text("container of a request");
    request.resource = text("requested resource");
    request.amount = reader.GetDouble("requested amount");
  }
  if (reader.GetFlag("memory request")) {
    pod.memory_request_bytes = reader.GetDouble("memory request");
  }
  pod.labels.resize(reader.GetCount(kPodLabelsMax, kLabelBytesMin, "number of labels"));
  for (auto& [key, value] : pod.labels) {
    key = text("label key");
    value = text("label value");
  }
}

void GetScheduler(Reader& reader, Scheduler& scheduler) {
  scheduler.allocatable.resize(
      reader.GetCount(kAllocatableMax, kUnitBytesMin, "number of allocatable units"));
  for (DeviceUnit& unit : scheduler.allocatable) GetUnit(reader, unit);
  scheduler.allocations.resize(
      reader.GetCount(kAllocationsMax, kAllocationBytesMin, "number of allocations"));
  for (Allocation& allocation : scheduler.allocations) {
    allocation.scheduler =
        static_cast<SchedulerKind>(reader.GetAtMost(kLastSchedulerKind, "scheduler"));
    GetUnit(reader, allocation.unit);
    allocation.claim = reader.GetText("claim", kOwnerTextBytesMax);
    std::optional<Duration> start;
    GetStartAndOwner(reader, start, allocation.owner);
  }
  scheduler.pods.resize(reader.GetCount(kPodsMax, kPodBytesMin, "number of pods"));
  for (Pod& pod : scheduler.pods) GetPod(reader, pod);
  scheduler.dropped = reader.Get<std::uint32_t>("number of dropped entries");
}

void GetGpu(Reader& reader, const FieldCounts& fields, Gpu& gpu) {
  gpu.identity = GetGpuIdentity(reader);
  reader.GetReadings(fields.gpu, "GPU readings", gpu.readings);
  gpu.links.resize(
      reader.GetCount(kLinksMax, kLinkBytesMin + BitmapBytes(fields.link), "number of links"));
  for (NvLink& link : gpu.links) {
    link.link = reader.Get<std::uint32_t>("link number");
    reader.GetReadings(fields.link, "link readings", link.readings);
  }
  gpu.mig.resize(reader.GetCount(kMigInstancesMax, kMigBytesMin + BitmapBytes(fields.mig),
                                 "number of MIG instances"));
  for (MigInstance& mig : gpu.mig) GetMig(reader, fields, mig);
  gpu.processes.resize(reader.GetCount(
      kProcessesPerGpuMax, kProcessBytesMin + BitmapBytes(fields.process), "number of processes"));
  for (GpuProcess& process : gpu.processes) GetProcess(reader, fields, process);
  gpu.processes_dropped = reader.Get<std::uint32_t>("number of dropped processes");
  gpu.xids.resize(reader.GetCount(kXidKindsMax, kXidBytesMin, "number of Xid codes"));
  for (XidCount& xid : gpu.xids) {
    xid.xid = reader.Get<std::uint32_t>("Xid code");
    xid.count = reader.Get<std::uint64_t>("Xid count");
  }
  gpu.holders.resize(reader.GetCount(kHoldersPerGpuMax, kHolderBytesMin, "number of holders"));
  for (DeviceHolder& holder : gpu.holders) GetHolder(reader, holder);
}

void GetSource(Reader& reader, const FieldCounts& fields, SourceStatus& source) {
  source.name = reader.GetText("source name");
  if (reader.GetFlag("source success")) source.last_success = WallTime(reader.GetTime("time"));
  source.error = reader.GetText("source error");
  source.missing = reader.GetMissing("source reason");
  reader.GetReadings(fields.source, "source readings", source.readings);
}

void GetEvent(Reader& reader, DriverEvent& event) {
  event.time = WallTime(reader.GetTime("event time"));
  event.kind = static_cast<EventKind>(reader.GetAtMost(kLastEventKind, "event kind"));
  event.gpu_uuid = reader.GetText("event UUID");
  event.data = reader.Get<std::uint64_t>("event data");
  event.gpu_instance_id = reader.GetOptional("event GPU instance");
}

FieldCounts GetHeader(Reader& reader) {
  const auto version = reader.Get<std::uint8_t>("snapshot version");
  if (!reader.failed() && version != kSnapshotVersion) {
    reader.FailAt(0, fmt::format("snapshot version {}, this program reads version {}", version,
                                 kSnapshotVersion));
  }
  FieldCounts fields;
  fields.gpu = GetFieldCount(reader);
  fields.link = GetFieldCount(reader);
  fields.mig = GetFieldCount(reader);
  fields.process = GetFieldCount(reader);
  fields.source = GetFieldCount(reader);
  return fields;
}

void GetBody(Reader& reader, const FieldCounts& fields, Snapshot& snapshot) {
  snapshot.time = WallTime(reader.GetTime("time"));
  snapshot.steady = SteadyTime(reader.GetTime("steady time"));
  snapshot.node.hostname = reader.GetText("host name");
  snapshot.node.driver_version = reader.GetText("driver version");
  snapshot.node.nvml_version = reader.GetText("NVML version");
  snapshot.node.cuda_version = reader.GetText("CUDA version");
  snapshot.sources.resize(reader.GetCount(kSourcesMax, kSourceBytesMin + BitmapBytes(fields.source),
                                          "number of sources"));
  for (SourceStatus& source : snapshot.sources) GetSource(reader, fields, source);
  snapshot.gpus.resize(
      reader.GetCount(kGpusMax, kGpuBytesMin + BitmapBytes(fields.gpu), "number of GPUs"));
  for (Gpu& gpu : snapshot.gpus) GetGpu(reader, fields, gpu);
  snapshot.events.resize(reader.GetCount(kEventsMax, kEventBytesMin, "number of events"));
  for (DriverEvent& event : snapshot.events) GetEvent(reader, event);
  snapshot.capabilities_missing.resize(
      reader.GetCount(kCapabilitiesMissingMax, kTextBytesMin, "number of missing functions"));
  for (std::string& name : snapshot.capabilities_missing) name = reader.GetText("function name");
  if (!reader.GetFlag("scheduler")) return;
  const auto scheduler = std::make_shared<Scheduler>();
  GetScheduler(reader, *scheduler);
  snapshot.scheduler = scheduler;
}

}  // namespace

void EncodeSnapshot(const Snapshot& snapshot, std::string& out) {
  Writer writer(out);
  writer.Put(kSnapshotVersion);
  for (std::size_t scope = 0; scope < kScopes; ++scope) {
    writer.Put(static_cast<std::uint16_t>(MetricsOf(static_cast<MetricScope>(scope)).size()));
  }
  writer.PutTime(snapshot.time.time_since_epoch());
  writer.PutTime(snapshot.steady.time_since_epoch());
  writer.PutText(snapshot.node.hostname);
  writer.PutText(snapshot.node.driver_version);
  writer.PutText(snapshot.node.nvml_version);
  writer.PutText(snapshot.node.cuda_version);
  const std::size_t sources = writer.PutCount(snapshot.sources.size(), kSourcesMax);
  for (std::size_t i = 0; i < sources; ++i) PutSource(snapshot.sources[i], writer);
  const std::size_t gpus = writer.PutCount(snapshot.gpus.size(), kGpusMax);
  for (std::size_t i = 0; i < gpus; ++i) PutGpu(snapshot.gpus[i], writer);
  const std::size_t events = writer.PutCount(snapshot.events.size(), kEventsMax);
  for (std::size_t i = 0; i < events; ++i) PutEvent(snapshot.events[i], writer);
  const std::size_t functions =
      writer.PutCount(snapshot.capabilities_missing.size(), kCapabilitiesMissingMax);
  for (std::size_t i = 0; i < functions; ++i) writer.PutText(snapshot.capabilities_missing[i]);
  writer.Put(static_cast<std::uint8_t>(snapshot.scheduler != nullptr));
  if (snapshot.scheduler) PutScheduler(*snapshot.scheduler, writer);
}

Result<Snapshot> DecodeSnapshot(std::string_view bytes) {
  Reader reader(bytes);
  Snapshot snapshot;
  const FieldCounts fields = GetHeader(reader);
  if (!reader.failed()) GetBody(reader, fields, snapshot);
  if (!reader.failed() && reader.left() != 0) {
    reader.FailAt(reader.position(),
                  fmt::format("{} bytes too many after the snapshot", reader.left()));
  }
  if (reader.failed()) return Fail(ErrorCode::kMalformed, "snapshot: " + reader.error());
  return snapshot;
}

}  // namespace gpuassay
