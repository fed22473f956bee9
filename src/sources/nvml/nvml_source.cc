#include "sources/nvml/nvml_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "model/catalogue.h"
#include "sources/nvml/device.h"
#include "sources/nvml/events.h"
#include "sources/nvml/identity.h"
#include "sources/nvml/library.h"

namespace gpuassay {
namespace {

class NvmlSource final : public Source {
 public:
  NvmlSource(NvmlOptions options, NvmlLibrary library)
      : options_(std::move(options)), library_(std::move(library)), names_(library_) {
    node_.hostname = options_.hostname;
    status_.name = options_.source_name;
  }
  ~NvmlSource() override { Close(); }
  NvmlSource(const NvmlSource&) = delete;
  NvmlSource& operator=(const NvmlSource&) = delete;

  std::string_view name() const override { return options_.source_name; }
  Snapshot Read() override;
  bool NeedsNewProcess() const override { return mismatch_.has_value(); }

 private:
  struct Failure {
    NvmlFunction function;
    nvmlReturn_t code;
  };
  using Attempt = std::optional<Failure>;  // nullopt: it went well

  Attempt ReadAll(const Cycle& cycle, Snapshot& snapshot);
  Attempt Initialise();
  Attempt Enumerate(const Cycle& cycle);
  void FindDevice(std::uint32_t index, std::vector<const NvmlDevice*>& seen);
  NvmlDevice& AddDevice(std::uint32_t index, nvmlDevice_t handle, std::string uuid);
  NvmlDevice* DeviceAt(std::uint32_t index);
  NvmlDevice* DeviceWith(const std::string& uuid);
  void ReadDevices(const Cycle& cycle);
  void Listen();
  void PollEvents(const Cycle& cycle, Snapshot& snapshot);
  void Take(const DriverEvents::Event& event, const Cycle& cycle, Snapshot& snapshot);
  void Finish(const Cycle& cycle, const Attempt& attempt, Snapshot& snapshot);
  void Close();
  bool IsSkipped(std::uint32_t index) const {
    return std::ranges::find(options_.gpus_to_skip, index) != options_.gpus_to_skip.end();
  }

  NvmlOptions options_;
  NvmlLibrary library_;
  NodeIdentity node_;
  SourceStatus status_;
  double reads_ = 0;
  double failures_ = 0;
  bool initialised_ = false;
  Attempt mismatch_;  // the end: only a new process can go on

  ProcessNames names_;
  std::vector<std::unique_ptr<NvmlDevice>> devices_;  // by index
  std::unique_ptr<DriverEvents> events_;
  std::vector<DriverEvents::Event> arrived_;  // here to keep its memory
  std::vector<DriverEvents::Listener> listeners_;
  unsigned int count_ = 0;
  std::optional<SteadyTime> next_enumeration_;
};

Snapshot NvmlSource::Read() {
  const Cycle cycle = {options_.clock->Wall(), options_.clock->Steady()};
  Snapshot snapshot;
  snapshot.time = cycle.wall;
  snapshot.steady = cycle.steady;
  reads_ += 1;
  library_.ClearTrouble();
  const Attempt attempt = ReadAll(cycle, snapshot);
  Finish(cycle, attempt, snapshot);
  return snapshot;
}

NvmlSource::Attempt NvmlSource::ReadAll(const Cycle& cycle, Snapshot& snapshot) {
  if (mismatch_) return mismatch_;
  if (Attempt failed = Initialise()) return failed;
  if (Attempt failed = Enumerate(cycle)) return failed;
  // Before the GPUs are read: a new MIG layout is then seen in the same cycle.
  Listen();
  PollEvents(cycle, snapshot);
  names_.BeginCycle(cycle);
  ReadDevices(cycle);
  names_.EndCycle();
  if (events_->broken()) {  // by now it is known which GPU is lost
    Listen();
    PollEvents(cycle, snapshot);
  }
  // Answers of single calls that are about the whole driver.
  if (library_.trouble() != NVML_SUCCESS) {
    return Failure{library_.trouble_function(), library_.trouble()};
  }
  return std::nullopt;
}

NvmlSource::Attempt NvmlSource::Initialise() {
  if (initialised_) return std::nullopt;
  const nvmlReturn_t result = library_.Call<NvmlFunction::nvmlInit_v2>(CallWatch::kNoGpu);
  if (result != NVML_SUCCESS) return Failure{NvmlFunction::nvmlInit_v2, result};
  initialised_ = true;
  ReadNodeIdentity(library_, node_);
  events_ = std::make_unique<DriverEvents>(library_);
  next_enumeration_.reset();
  return std::nullopt;
}

NvmlSource::Attempt NvmlSource::Enumerate(const Cycle& cycle) {
  unsigned int count = 0;
  const nvmlReturn_t result =
      library_.Call<NvmlFunction::nvmlDeviceGetCount_v2>(CallWatch::kNoGpu, &count);
  if (result != NVML_SUCCESS) return Failure{NvmlFunction::nvmlDeviceGetCount_v2, result};
  count = std::min(count, static_cast<unsigned int>(kGpusMax));
  if (next_enumeration_ && cycle.steady < *next_enumeration_ && count == count_) {
    return std::nullopt;
  }
  count_ = count;
  next_enumeration_ = cycle.steady + options_.slow_every;
  std::vector<const NvmlDevice*> seen;
  for (std::uint32_t index = 0; index < count; ++index) FindDevice(index, seen);
  for (const auto& device : devices_) {
    const bool found = std::ranges::find(seen, device.get()) != seen.end();
    if (!found) device->Unreachable(NVML_ERROR_GPU_IS_LOST);
  }
  std::ranges::stable_sort(devices_, {},
                           [](const auto& device) { return device->gpu().identity.index; });
  return std::nullopt;
}

void NvmlSource::FindDevice(std::uint32_t index, std::vector<const NvmlDevice*>& seen) {
  NvmlDevice* at_index = DeviceAt(index);
  if (IsSkipped(index)) {
    if (at_index == nullptr) at_index = &AddDevice(index, nullptr, "");
    at_index->Skip(Missing::kTimedOut);
    seen.push_back(at_index);
    return;
  }
  nvmlDevice_t handle = nullptr;
  nvmlReturn_t result =
      library_.Call<NvmlFunction::nvmlDeviceGetHandleByIndex_v2>(index, index, &handle);
  std::string uuid;
  if (result == NVML_SUCCESS) {
    DeviceCalls calls(library_, index, handle);
    result = ReadUuid(calls, handle, uuid);
  }
  if (result != NVML_SUCCESS) {
    // It is there and cannot be reached: the one that was here before, or one never seen.
    if (at_index == nullptr) at_index = &AddDevice(index, nullptr, "");
    at_index->Unreachable(result);
    seen.push_back(at_index);
    return;
  }
  NvmlDevice* device = DeviceWith(uuid);
  if (device == nullptr) {
    // A GPU that could not be reached so far has no identity to keep.
    std::erase_if(devices_, [at_index](const auto& known) {
      return known.get() == at_index && known->gpu().identity.uuid.empty();
    });
    device = &AddDevice(index, handle, uuid);
  }
  device->Found(index, handle);
  seen.push_back(device);
}

NvmlDevice& NvmlSource::AddDevice(std::uint32_t index, nvmlDevice_t handle, std::string uuid) {
  devices_.push_back(std::make_unique<NvmlDevice>(library_, index, handle, std::move(uuid)));
  return *devices_.back();
}

NvmlDevice* NvmlSource::DeviceAt(std::uint32_t index) {
  const auto found = std::ranges::find(
      devices_, index, [](const auto& device) { return device->gpu().identity.index; });
  return found == devices_.end() ? nullptr : found->get();
}

NvmlDevice* NvmlSource::DeviceWith(const std::string& uuid) {
  const auto found = std::ranges::find_if(devices_, [&uuid](const auto& device) -> bool {
    return device->gpu().identity.uuid == uuid;
  });
  return found == devices_.end() ? nullptr : found->get();
}

void NvmlSource::ReadDevices(const Cycle& cycle) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const Duration stagger = options_.slow_every * static_cast<Duration::rep>(i) /
                             static_cast<Duration::rep>(devices_.size());
    devices_[i]->Read(cycle, options_.slow_every, stagger, names_);
    if (library_.trouble() != NVML_SUCCESS) return;
  }
}

void NvmlSource::Listen() {
  listeners_.clear();
  for (const auto& device : devices_) {
    if (device->reachable() && !device->lost()) {
      listeners_.push_back({device->handle(), device->gpu().identity.index});
    }
  }
  events_->Listen(listeners_);
}

void NvmlSource::PollEvents(const Cycle& cycle, Snapshot& snapshot) {
  arrived_.clear();
  events_->Poll(kEventsMax - snapshot.events.size(), arrived_);
  for (const DriverEvents::Event& event : arrived_) Take(event, cycle, snapshot);
}

void NvmlSource::Take(const DriverEvents::Event& event, const Cycle& cycle, Snapshot& snapshot) {
  DriverEvent taken;
  taken.time = cycle.wall;
  taken.kind = event.kind;
  taken.data = event.data;
  taken.gpu_instance_id = event.gpu_instance_id;
  for (const auto& device : devices_) {
    if (device->handle() != event.device) continue;
    taken.gpu_uuid = device->gpu().identity.uuid;
    if (event.kind == EventKind::kMigConfigChange) device->RequestSlow();
  }
  if (event.kind == EventKind::kGpuUnavailable) next_enumeration_.reset();
  snapshot.events.push_back(std::move(taken));
}

void NvmlSource::Finish(const Cycle& cycle, const Attempt& attempt, Snapshot& snapshot) {
  SourceReadings& readings = status_.readings;
  std::string error;
  if (attempt) {
    failures_ += 1;
    error = NvmlErrorLine(attempt->function, attempt->code);
    status_.missing = MissingFor(attempt->code);
    for (const auto& device : devices_) device->MarkUnread(status_.missing);
    if (attempt->code == NVML_ERROR_LIB_RM_VERSION_MISMATCH) mismatch_ = attempt;
    if (attempt->code == NVML_ERROR_UNINITIALIZED ||
        attempt->code == NVML_ERROR_DRIVER_NOT_LOADED) {
      initialised_ = false;
    }
  } else {
    status_.last_success = cycle.wall;
    status_.missing = Missing::kNeverSampled;
  }
  if (error != status_.error) {
    if (error.empty()) {
      LogInfo(options_.source_name + ": the driver answers again");
    } else {
      LogWarning(fmt::format("{}: {}", options_.source_name, error));
    }
  }
  status_.error = std::move(error);
  readings.up = attempt ? 0.0 : 1.0;
  readings.reads_total = reads_;
  readings.failures_total = failures_;
  readings.duration_seconds = Seconds(options_.clock->Steady() - cycle.steady);

  snapshot.node = node_;
  snapshot.sources.push_back(status_);
  snapshot.capabilities_missing = library_.missing();
  snapshot.gpus.reserve(devices_.size());
  for (const auto& device : devices_) snapshot.gpus.push_back(device->gpu());
}

void NvmlSource::Close() {
  devices_.clear();
  events_.reset();
  if (initialised_) library_.Call<NvmlFunction::nvmlShutdown>(CallWatch::kNoGpu);
  initialised_ = false;
}

}  // namespace

Result<std::unique_ptr<Source>> OpenNvml(NvmlOptions options) {
  Check(options.clock != nullptr, "NvmlOptions.clock is set");
  auto library = options.resolve ? NvmlLibrary::FromResolver(options.resolve, options.source_name,
                                                             options.watch)
                                 : NvmlLibrary::Open(options.library, options.watch);
  if (!library) return std::unexpected(library.error());
  return std::make_unique<NvmlSource>(std::move(options), std::move(*library));
}

}  // namespace gpuassay
