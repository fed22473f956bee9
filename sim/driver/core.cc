#include "sim/driver/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "sim/engine/identifiers.h"

namespace gpuassay::sim {
namespace {

constexpr std::string_view kNames[] = {
#define SIM_FUNCTION(name, introduced, parameters) #name,
#include "sim/driver/functions.def"
};

// Handles are addresses in here, so that they look like pointers to every language's run time and a
// wrong one is recognised without being followed. Never read or written: it costs no memory.
constexpr std::size_t kHandleSpace = std::size_t{1} << 22;
char handle_space[kHandleSpace];
std::size_t handle_next = 0;   // guarded by DriverMutex()
std::uint64_t epoch_next = 1;  // guarded by DriverMutex()
constexpr std::size_t kHandlesPerDriver = 4096;

// Never destroyed at the end of the process: other threads may still be in a call.
std::unique_ptr<Driver>& DriverSlot() {
  static auto* driver = new std::unique_ptr<Driver>();
  return *driver;
}

bool HasFault(const Scenario& scenario, FaultKind kind) {
  return std::ranges::any_of(scenario.faults,
                             [kind](const Fault& fault) { return fault.kind == kind; });
}

std::optional<unsigned int> ParseHex(std::string_view text) {
  unsigned int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string_view FunctionName(Function function) {
  return kNames[static_cast<std::size_t>(function)];
}

std::mutex& DriverMutex() {
  static std::mutex mutex;
  return mutex;
}

Driver* InstalledDriver() { return DriverSlot().get(); }

Driver::Driver(Engine engine_in, TimeSource& time_in)
    : engine(std::move(engine_in)), time(time_in), epoch(epoch_next++) {
  const Scenario& scenario = engine.scenario();
  may_hang = HasFault(scenario, FaultKind::kDriverHang);
  may_mismatch = HasFault(scenario, FaultKind::kVersionMismatch);
  may_deny = HasFault(scenario, FaultKind::kPermissionDenied);
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    missing[i] = IntroducedIn(kNames[i]).value_or(0) > scenario.driver.major;
  }
  if (handle_next + kHandlesPerDriver > kHandleSpace) {
    handle_next = 0;  // the handles of the first drivers of this process are long out of use
  }
  handle_base = handle_next;
  handle_next += kHandlesPerDriver;
  for (std::uint32_t i = 0; i < engine.devices().size(); ++i) {
    handles.push_back({.gpu = i});
    tick_ago.push_back(engine.devices()[i].totals);
  }
}

nvmlDevice_t Driver::HandleAt(std::size_t place) const {
  return reinterpret_cast<nvmlDevice_t>(&handle_space[handle_base + place]);
}

const HandleTarget* Driver::FindHandle(nvmlDevice_t handle) const {
  const auto first = reinterpret_cast<std::uintptr_t>(&handle_space[handle_base]);
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(handle) - first;
  return place < handles.size() ? &handles[place] : nullptr;
}

nvmlDevice_t Driver::MigHandle(const DeviceState& gpu, const MigState& mig) {
  for (std::size_t i = engine.devices().size(); i < handles.size(); ++i) {
    HandleTarget& target = handles[i];
    if (target.gpu == gpu.index && target.mig_index == mig.index) {
      if (target.mig_generation == mig.generation) {
        return HandleAt(i);
      }
    }
  }
  if (handles.size() == kHandlesPerDriver) {
    // After hundreds of new layouts a handle of an old one is used again, as in the real driver.
    const auto old = std::ranges::find_if(
        handles.begin() + static_cast<std::ptrdiff_t>(engine.devices().size()), handles.end(),
        [&](const HandleTarget& target) {
          return target.gpu == gpu.index && target.mig_generation != mig.generation;
        });
    Check(old != handles.end(), "more MIG devices at once than handles");
    old->mig_generation = mig.generation;
    old->mig_index = mig.index;
    return HandleAt(static_cast<std::size_t>(old - handles.begin()));
  }
  handles.push_back(
      {.gpu = gpu.index, .mig = true, .mig_generation = mig.generation, .mig_index = mig.index});
  return HandleAt(handles.size() - 1);
}

std::uint64_t Driver::StampUs(Duration t) const {
  return static_cast<std::uint64_t>(time.WallAt(t).time_since_epoch().count());
}

void Driver::AdvanceTo(Duration t) {
  if (t < next_tick_at_) {
    return;  // most calls: the state is that of the last tick
  }
  const std::uint64_t tick = TickAt(t);
  engine.AdvanceTo(TickTime(tick - 1));
  for (std::size_t i = 0; i < tick_ago.size(); ++i) {
    tick_ago[i] = engine.devices()[i].totals;
  }
  engine.AdvanceTo(TickTime(tick));
  next_tick_at_ = TickTime(tick + 1);
}

void Install(Engine engine, TimeSource& time) {
  const std::scoped_lock lock(DriverMutex());
  DriverSlot() = std::make_unique<Driver>(std::move(engine), time);
}

void Uninstall() {
  const std::scoped_lock lock(DriverMutex());
  DriverSlot().reset();
}

Call Call::Initialize(Function function) {
  Call call;
  call.status_ = call.Enter(function, nullptr, true);
  return call;
}

nvmlReturn_t Call::Faults(Function function, Duration now, bool initializing) const {
  const Driver& driver = *driver_;
  if (function == Function::nvmlShutdown) {
    return NVML_SUCCESS;  // the library only lets go
  }
  if (driver.may_mismatch) {
    const bool first = initializing && driver.references == 0;
    if (driver.engine.VersionMismatch(now, first ? now : driver.initialized_at)) {
      return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    }
  }
  if (driver.may_deny && driver.engine.PermissionDenied(now, FunctionName(function))) {
    return NVML_ERROR_NO_PERMISSION;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t Call::Enter(Function function, nvmlDevice_t device, bool initializing) {
  lock_ = std::unique_lock(DriverMutex());
  std::optional<Duration> waited_at;
  for (std::uint64_t epoch = 0;;) {
    driver_ = InstalledDriver();
    if (driver_ == nullptr || (epoch != 0 && driver_->epoch != epoch)) {
      return initializing ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_UNINITIALIZED;
    }
    epoch = driver_->epoch;
    if (driver_->references == 0 && !initializing) {
      return NVML_ERROR_UNINITIALIZED;
    }
    if (driver_->missing[static_cast<std::size_t>(function)]) {
      return NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    std::optional<std::uint32_t> gpu;
    if (device != nullptr) {
      const HandleTarget* target = driver_->FindHandle(device);
      if (target == nullptr) {
        return NVML_ERROR_INVALID_ARGUMENT;
      }
      gpu = target->gpu;
    }
    now_ = driver_->time.Now();
    // `waited_at`: a hang that ends at this very moment is over.
    if (driver_->may_hang && waited_at != now_) {
      if (const std::optional<Duration> end = driver_->engine.HangEnd(now_, gpu)) {
        waited_at = end;
        TimeSource& time = driver_->time;
        lock_.unlock();
        const bool ended = time.WaitUntil(*end);
        lock_.lock();
        if (!ended) {
          return NVML_ERROR_TIMEOUT;
        }
        continue;
      }
    }
    const nvmlReturn_t fault = Faults(function, now_, initializing);
    if (fault == NVML_SUCCESS) {
      driver_->AdvanceTo(now_);
    }
    return fault;
  }
}

nvmlReturn_t Call::EnterDevice(Function function, nvmlDevice_t device, Needs needs) {
  const nvmlReturn_t entered = Enter(function, device, false);
  if (entered != NVML_SUCCESS) {
    return entered;
  }
  if (device == nullptr) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  const HandleTarget& target = *driver_->FindHandle(device);
  gpu_ = &driver_->Gpu(target.gpu);
  if (gpu_->lost) {
    return NVML_ERROR_GPU_IS_LOST;
  }
  if (gpu_->reset_required && needs == Needs::kHardware) {
    return NVML_ERROR_RESET_REQUIRED;
  }
  if (target.mig) {
    const auto found = std::ranges::find_if(gpu_->mig, [&](const MigState& mig) {
      return mig.index == target.mig_index && mig.generation == target.mig_generation;
    });
    if (found == gpu_->mig.end()) {
      return NVML_ERROR_INVALID_ARGUMENT;  // the layout it belonged to is gone
    }
    mig_ = &*found;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t GiveText(std::string_view text, char* out, unsigned int length) {
  if (length <= text.size()) {
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  out[text.copy(out, text.size())] = '\0';
  return NVML_SUCCESS;
}

unsigned long long Rounded(double value) {
  return value > 0 ? static_cast<unsigned long long>(value + 0.5) : 0;
}

std::optional<PciAddress> ParsePciAddress(std::string_view text) {
  // [domain:]bus:device[.function]; the function of a GPU is always 0.
  if (const auto dot = text.find('.'); dot != std::string_view::npos) {
    if (text.substr(dot + 1) != "0") {
      return std::nullopt;
    }
    text = text.substr(0, dot);
  }
  std::array<unsigned int, 3> parts{};
  for (std::size_t i = 3; i-- > 0;) {
    const auto colon = text.rfind(':');
    const auto value = ParseHex(colon == std::string_view::npos ? text : text.substr(colon + 1));
    if (!value) {
      return std::nullopt;
    }
    parts[i] = *value;
    if (colon == std::string_view::npos) {
      return i > 1 ? std::nullopt
                   : std::optional(PciAddress{i == 0 ? parts[0] : 0U, parts[1], parts[2]});
    }
    text = text.substr(0, colon);
  }
  return std::nullopt;
}

void FillPciInfo(const PciAddress& address, std::uint32_t pci_device_id,
                 std::uint32_t pci_subsystem_id, nvmlPciInfo_t* out) {
  *out = {};
  out->domain = address.domain;
  out->bus = address.bus;
  out->device = address.device;
  out->pciDeviceId = pci_device_id;
  out->pciSubSystemId = pci_subsystem_id;
  CopyText(fmt::format("{:04X}:{:02X}:{:02X}.0", address.domain, address.bus, address.device),
           out->busIdLegacy);
  CopyText(fmt::format("{:08X}:{:02X}:{:02X}.0", address.domain, address.bus, address.device),
           out->busId);
}

std::string MigUuid(const Driver& driver, const DeviceState& gpu, const MigState& mig) {
  return driver.engine.scenario().driver.major >= kMigUuidDriverMajor
             ? mig.uuid
             : MigUuidOfParent(gpu.config.uuid, mig.gpu_instance_id, mig.compute_instance_id);
}

}  // namespace gpuassay::sim
