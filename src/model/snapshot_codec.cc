#include "model/snapshot_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <initializer_list>

#include "model/catalogue.h"

namespace gpuassay {
namespace {

constexpr std::size_t kScopes = 5;
constexpr std::uint8_t kLastProcessType = static_cast<std::uint8_t>(ProcessType::kMps);
constexpr std::uint8_t kLastEventKind = static_cast<std::uint8_t>(EventKind::kRecoveryAction);

// Fewest bytes that one element of a list takes: a count that promises more than is there is
// refused before memory is taken for it.
constexpr std::size_t kTextBytesMin = 2;
constexpr std::size_t kSourceBytesMin = 2 + 1 + 2 + 1;
constexpr std::size_t kGpuBytesMin = 4 + 6 * 2 + 1 + 4 * 4;
constexpr std::size_t kLinkBytesMin = 4;
constexpr std::size_t kMigBytesMin = 3 * 4 + 2 * 2;
constexpr std::size_t kProcessBytesMin = 4 + 1 + 1 + 1 + 2 + 1;
constexpr std::size_t kXidBytesMin = 4 + 8;
constexpr std::size_t kEventBytesMin = 8 + 1 + 2 + 8 + 1;

// Parts of a process that the driver does not tell, one bit each: where nobody adds them, they cost
// one byte.
constexpr std::uint8_t kHasStart = 1 << 0;
constexpr std::uint8_t kHasContainer = 1 << 1;
constexpr std::uint8_t kHasPod = 1 << 2;
constexpr std::uint8_t kHasJob = 1 << 3;
constexpr std::uint8_t kHasUser = 1 << 4;
constexpr std::uint8_t kHasSystemdUnit = 1 << 5;
constexpr std::uint8_t kHasAll = (1 << 6) - 1;

constexpr std::size_t BitmapBytes(std::size_t fields) { return (fields + 7) / 8; }

template <std::unsigned_integral T>
void Store(T value, char* at) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    at[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <std::unsigned_integral T>
  void Put(T value) {
    char bytes[sizeof(T)];
    Store(value, bytes);
    out_.append(bytes, sizeof(T));
  }
  void PutTime(Duration since_origin) {
    Put(std::bit_cast<std::uint64_t>(std::int64_t{since_origin.count()}));
  }
  void PutText(std::string_view text, std::size_t bytes_max = kTextBytesMax) {
    text = text.substr(0, bytes_max);
    Put(static_cast<std::uint16_t>(text.size()));
    out_.append(text);
  }
  void PutOptional(std::optional<std::uint32_t> value) {
    Put(static_cast<std::uint8_t>(value.has_value()));
    if (value) Put(*value);
  }
  // Returns how many elements follow.
  std::size_t PutCount(std::size_t size, std::size_t max) {
    const std::size_t count = std::min(size, max);
    Put(static_cast<std::uint32_t>(count));
    return count;
  }

  // One bit per field (known or not), then 8 bytes for a known field and its reason for another.
  template <class Readings>
  void PutReadings(const Readings& readings) {
    const auto members = Members(&readings);
    const std::size_t start = out_.size();
    out_.resize(start + BitmapBytes(members.size()) + members.size() * sizeof(std::uint64_t));
    char* const bitmap = out_.data() + start;
    char* at = bitmap + BitmapBytes(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Reading& reading = readings.*members[i];
      if (reading) {
        bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (1 << (i % 8)));
        Store(std::bit_cast<std::uint64_t>(*reading), at);
        at += sizeof(std::uint64_t);
      } else {
        *at++ = static_cast<char>(reading.missing());
      }
    }
    out_.resize(static_cast<std::size_t>(at - out_.data()));
  }

 private:
  std::string& out_;
};

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
void PutStartAndOwner(const GpuProcess& process, Writer& writer) {
  const ProcessOwner& owner = process.owner;
  unsigned present = 0;
  if (process.start_after_boot) present |= kHasStart;
  if (owner.container) present |= kHasContainer;
  if (owner.pod) present |= kHasPod;
  if (owner.job) present |= kHasJob;
  if (!owner.user.empty()) present |= kHasUser;
  if (!owner.systemd_unit.empty()) present |= kHasSystemdUnit;
  writer.Put(static_cast<std::uint8_t>(present));
  if (process.start_after_boot) writer.PutTime(*process.start_after_boot);
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
  PutStartAndOwner(process, writer);
  writer.PutReadings(process.readings);
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

// Reads until the first thing that is wrong; after that every read returns an empty value and
// `error` tells the first place.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

  void FailAt(std::size_t position, std::string_view what) {
    if (error_.empty()) error_ = fmt::format("byte {}: {}", position, what);
  }

  template <std::unsigned_integral T>
  T Get(const char* what) {
    const char* const at = Take(sizeof(T), what);
    if (at == nullptr) return 0;
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(T{static_cast<unsigned char>(at[i])} << 8 * i));
    }
    return value;
  }
  Duration GetTime(const char* what) {
    return Duration(std::bit_cast<std::int64_t>(Get<std::uint64_t>(what)));
  }
  std::string GetText(const char* what, std::size_t bytes_max = kTextBytesMax) {
    const std::size_t start = position_;
    const std::size_t size = Get<std::uint16_t>(what);
    if (size > bytes_max) {
      FailAt(start, fmt::format("{}: {} bytes, at most {} are allowed", what, size, bytes_max));
      return {};
    }
    const char* const at = Take(size, what);
    return at == nullptr ? std::string() : std::string(at, size);
  }
  bool GetFlag(const char* what) {
    return GetAtMost(1, what) == 1;  // 0 after a failure
  }
  std::uint8_t GetAtMost(std::uint8_t max, const char* what) {
    const std::size_t start = position_;
    const auto value = Get<std::uint8_t>(what);
    if (value <= max) return value;
    FailAt(start, fmt::format("{} {}, at most {} is known", what, value, max));
    return 0;
  }
  std::optional<std::uint32_t> GetOptional(const char* what) {
    if (!GetFlag(what)) return std::nullopt;
    return Get<std::uint32_t>(what);
  }
  std::size_t GetCount(std::size_t max, std::size_t bytes_each_min, const char* what) {
    const std::size_t start = position_;
    const std::size_t count = Get<std::uint32_t>(what);
    if (count > max) {
      FailAt(start, fmt::format("{} {}, at most {} are allowed", what, count, max));
    } else if (count * bytes_each_min > left()) {
      FailAt(start, fmt::format("{} {}, but only {} bytes are left", what, count, left()));
    }
    return failed() ? 0 : count;
  }
  Missing GetMissing(const char* what) {
    const auto reason = Get<std::uint8_t>(what);
    return reason < kMissingCount ? static_cast<Missing>(reason) : Missing::kDriverError;
  }

  // `fields`: how many the writer had.
  template <class Readings>
  void GetReadings(std::size_t fields, const char* what, Readings& readings) {
    const char* const bitmap = Take(BitmapBytes(fields), what);
    if (bitmap == nullptr) return;
    const auto members = Members(&readings);
    for (std::size_t i = 0; i < fields && !failed(); ++i) {
      const Reading reading =
          ((bitmap[i / 8] >> (i % 8)) & 1) != 0 ? GetValue(what) : Reading(GetMissing(what));
      if (i < members.size()) readings.*members[i] = reading;
    }
  }

 private:
  const char* Take(std::size_t size, const char* what) {
    if (failed()) return nullptr;
    if (left() < size) {
      FailAt(bytes_.size(), fmt::format("ends within {}", what));
      return nullptr;
    }
    const char* const at = bytes_.data() + position_;
    position_ += size;
    return at;
  }
  Reading GetValue(const char* what) {
    const auto value = std::bit_cast<double>(Get<std::uint64_t>(what));
    return std::isfinite(value) ? Reading(value) : Reading(Missing::kImplausible);
  }

  std::string_view bytes_;
  std::size_t position_ = 0;
  std::string error_;
};

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

void GetProcess(Reader& reader, const FieldCounts& fields, GpuProcess& process) {
  process.pid = reader.Get<std::uint32_t>("PID");
  process.type = static_cast<ProcessType>(reader.GetAtMost(kLastProcessType, "process type"));
  process.gpu_instance_id = reader.GetOptional("GPU instance id of a process");
  process.compute_instance_id = reader.GetOptional("compute instance id of a process");
  process.name = reader.GetText("process name");
  const unsigned present = reader.GetAtMost(kHasAll, "owner bits of a process");
  if ((present & kHasStart) != 0) process.start_after_boot = reader.GetTime("process start");
  GetOwner(reader, present, process.owner);
  reader.GetReadings(fields.process, "process readings", process.readings);
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
