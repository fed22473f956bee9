// What every function of the simulated driver goes through: the driver's state, its handles, and
// Call, which takes the lock, applies the scenario's faults of the driver itself and finds the GPU.
#pragma once

#include <array>
#include <bitset>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/driver/driver.h"
#include "sim/driver/functions.h"

namespace gpuassay::sim {

inline constexpr std::size_t kFunctionCount = static_cast<std::size_t>(Function::kCount);
inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;  // NVML's "not in MIG"
inline constexpr std::size_t kEventsPendingMax = 1024;    // per set; older ones are dropped
inline constexpr std::size_t kEventSetsMax = 1024;
inline constexpr std::size_t kGpmSamplesMax = 65536;

std::string_view FunctionName(Function function);

// What a handle stands for. A MIG handle lives as long as its layout's generation.
struct HandleTarget {
  std::uint32_t gpu = 0;
  bool mig = false;
  std::uint32_t mig_generation = 0;
  std::uint32_t mig_index = 0;
};

struct EventSet {
  struct Registration {
    std::uint32_t gpu = 0;
    nvmlDevice_t handle = nullptr;
    std::uint64_t types = 0;
    Duration seen = {};  // events up to here are queued
  };
  std::vector<Registration> registrations;
  std::deque<std::pair<nvmlDevice_t, DeviceEvent>> pending;
};

struct GpmSample {
  bool taken = false;
  bool mig = false;
  std::uint32_t gpu = 0;
  std::uint32_t gpu_instance = 0;
  ActivityTotals totals;
  std::vector<LinkState> links;
};

// The installed driver. Everything in it is guarded by DriverMutex().
struct Driver {
  Driver(Engine engine_in, TimeSource& time_in);

  Engine engine;
  TimeSource& time;
  std::uint64_t epoch;                  // differs for every installed driver of the process
  std::bitset<kFunctionCount> missing;  // too new for the scenario's driver
  bool may_hang = false, may_mismatch = false, may_deny = false;
  std::uint32_t references = 0;  // nvmlInit less nvmlShutdown
  Duration initialized_at = {};
  std::vector<bool> lost_at_init;        // by GPU: the client never saw it
  std::size_t handle_base = 0;           // place of the first handle in the handle space
  std::vector<HandleTarget> handles;     // the GPUs first, then MIG devices as they are asked for
  std::vector<ActivityTotals> tick_ago;  // by GPU: one tick before the present one, for rates
  std::map<nvmlEventSet_t, std::unique_ptr<EventSet>> event_sets;
  std::map<nvmlGpmSample_t, std::unique_ptr<GpmSample>> gpm_samples;

  const DeviceState& Gpu(std::uint32_t index) const { return engine.devices()[index]; }
  nvmlDevice_t GpuHandle(std::uint32_t index) const { return HandleAt(index); }
  nvmlDevice_t MigHandle(const DeviceState& gpu, const MigState& mig);
  const HandleTarget* FindHandle(nvmlDevice_t handle) const;  // nullptr: none of this driver's
  std::uint64_t StampUs(Duration t) const;                    // microseconds since 1970
  void AdvanceTo(Duration t);

 private:
  nvmlDevice_t HandleAt(std::size_t place) const;
  Duration next_tick_at_ = TickTime(1);
};

std::mutex& DriverMutex();
Driver* InstalledDriver();  // under DriverMutex(); nullptr when there is none

// Why the library has no driver, for nvmlInit to say (library.cc).
void SetLoadError(std::string line);

// Answers that the library knows by itself stay available when the GPU needs a reset.
enum class Needs { kIdentity, kHardware };

// One call of an NVML function. It holds the lock until it is destroyed; while the scenario makes
// the driver hang it waits without the lock. Use the driver only when status() is NVML_SUCCESS.
class Call {
 public:
  explicit Call(Function function) : status_(Enter(function, nullptr, false)) {}
  Call(Function function, nvmlDevice_t device, Needs needs)
      : status_(EnterDevice(function, device, needs)) {}
  // nvmlInit: like the others, but nothing has to be initialised.
  static Call Initialize(Function function);

  nvmlReturn_t status() const { return status_; }
  Driver& driver() const { return *driver_; }
  Duration now() const { return now_; }
  const DeviceState& gpu() const { return *gpu_; }
  const MigState* mig() const { return mig_; }  // nullptr: the handle is a GPU's

 private:
  Call() = default;
  nvmlReturn_t Enter(Function function, nvmlDevice_t device, bool initializing);
  nvmlReturn_t EnterDevice(Function function, nvmlDevice_t device, Needs needs);
  nvmlReturn_t Faults(Function function, Duration now, bool initializing) const;

  std::unique_lock<std::mutex> lock_;
  Driver* driver_ = nullptr;
  Duration now_ = {};
  const DeviceState* gpu_ = nullptr;
  const MigState* mig_ = nullptr;
  nvmlReturn_t status_ = NVML_SUCCESS;
};

// A call that concerns no single GPU. `arguments_valid`: false makes it
// NVML_ERROR_INVALID_ARGUMENT.
template <class Body>
nvmlReturn_t OnDriver(Function function, bool arguments_valid, Body&& body) {
  const Call call(function);
  if (call.status() != NVML_SUCCESS) {
    return call.status();
  }
  return arguments_valid ? body(call.driver()) : NVML_ERROR_INVALID_ARGUMENT;
}

// A call on a GPU or a MIG device; the body gets the GPU and, for a MIG handle, the instance.
template <class Body>
nvmlReturn_t OnDevice(Function function, nvmlDevice_t device, bool arguments_valid, Body&& body,
                      Needs needs = Needs::kHardware) {
  const Call call(function, device, needs);
  if (call.status() != NVML_SUCCESS) {
    return call.status();
  }
  return arguments_valid ? body(call) : NVML_ERROR_INVALID_ARGUMENT;
}

// A call on a whole GPU; MIG handles are not supported.
template <class Body>
nvmlReturn_t OnGpu(Function function, nvmlDevice_t device, bool arguments_valid, Body&& body,
                   Needs needs = Needs::kHardware) {
  const Call call(function, device, needs);
  if (call.status() != NVML_SUCCESS) {
    return call.status();
  }
  if (!arguments_valid) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  return call.mig() != nullptr ? NVML_ERROR_NOT_SUPPORTED : body(call.gpu());
}

// Writes `value`, or says that it is not supported.
template <class Out, class Value>
nvmlReturn_t Give(bool supported, Out* out, Value value) {
  if (!supported) {
    return NVML_ERROR_NOT_SUPPORTED;
  }
  *out = static_cast<Out>(value);
  return NVML_SUCCESS;
}

// Writes a C string; NVML_ERROR_INSUFFICIENT_SIZE when it does not fit with its end.
nvmlReturn_t GiveText(std::string_view text, char* out, unsigned int length);

// Copies with truncation and an end, for the fixed arrays of structures.
template <std::size_t N>
void CopyText(std::string_view text, char (&out)[N]) {
  out[text.copy(out, N - 1)] = '\0';
}

// The engine's tick at scenario time `t`: the last whose TickTime is not after it.
constexpr std::uint64_t TickAt(Duration t) {
  return t.count() <= 0 ? 0 : (static_cast<std::uint64_t>(t.count()) * 6 + 5) / 1'000'000;
}

// A measured number as the integers of NVML: rounded, never negative.
unsigned long long Rounded(double value);

// PCI addresses, in all forms that tools write.
struct PciAddress {
  unsigned int domain = 0, bus = 0, device = 0;
  bool operator==(const PciAddress&) const = default;
};
std::optional<PciAddress> ParsePciAddress(std::string_view text);
void FillPciInfo(const PciAddress& address, std::uint32_t pci_device_id,
                 std::uint32_t pci_subsystem_id, nvmlPciInfo_t* out);

std::string MigUuid(const Driver& driver, const DeviceState& gpu, const MigState& mig);

}  // namespace gpuassay::sim
