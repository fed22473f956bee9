// Event sets: Xid, ECC, MIG configuration and loss of a GPU, as they come.
#include <algorithm>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

std::uint64_t SupportedTypes(const DeviceState& gpu) {
  std::uint64_t types = nvmlEventTypeXidCriticalError | nvmlEventTypeGpuUnavailableError |
                        nvmlEventTypeGpuRecoveryAction;
  if (gpu.model->features.ecc) {
    types |= nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError;
  }
  if (!gpu.model->mig_profiles.empty()) {
    types |= nvmlEventMigConfigChange;
  }
  // The last two came late.
  if (InstalledDriver()->engine.scenario().driver.major < 560) {
    types &= ~std::uint64_t{nvmlEventTypeGpuUnavailableError | nvmlEventTypeGpuRecoveryAction};
  }
  return types;
}

EventSet* FindSet(Driver& driver, nvmlEventSet_t handle) {
  const auto found = driver.event_sets.find(handle);
  return found == driver.event_sets.end() ? nullptr : found->second.get();
}

// Queues what has happened since the last look, oldest first.
void Collect(const Driver& driver, EventSet& set) {
  const auto already = static_cast<std::ptrdiff_t>(set.pending.size());
  for (EventSet::Registration& registration : set.registrations) {
    for (const DeviceEvent& event :
         driver.engine.EventsAfter(registration.gpu, registration.seen)) {
      if ((event.type & registration.types) != 0) {
        set.pending.emplace_back(registration.handle, event);
      }
    }
    registration.seen = driver.engine.now();
  }
  std::stable_sort(set.pending.begin() + already, set.pending.end(),
                   [](const auto& a, const auto& b) { return a.second.at < b.second.at; });
  while (set.pending.size() > kEventsPendingMax) {
    set.pending.pop_front();
  }
}

// The next event, the loss of a registered GPU, or NVML_ERROR_TIMEOUT when there is nothing.
nvmlReturn_t TakeNext(const Driver& driver, EventSet& set, bool with_instances,
                      nvmlEventData_t* data) {
  Collect(driver, set);
  if (!set.pending.empty()) {
    const auto [handle, event] = set.pending.front();
    set.pending.pop_front();
    data->device = handle;
    data->eventType = event.type;
    data->eventData = event.data;
    if (with_instances) {  // the structure of nvmlEventSetWait ends before them
      data->gpuInstanceId = event.gpu_instance_id.value_or(kNoInstance);
      data->computeInstanceId = kNoInstance;
    }
    return NVML_SUCCESS;
  }
  for (const EventSet::Registration& registration : set.registrations) {
    if (driver.Gpu(registration.gpu).lost) {
      data->device = registration.handle;
      data->eventType = 0;
      data->eventData = 0;
      return NVML_ERROR_GPU_IS_LOST;
    }
  }
  return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t Wait(Function function, nvmlEventSet_t handle, nvmlEventData_t* data,
                  unsigned int timeout_ms, bool with_instances) {
  std::optional<Duration> deadline;
  for (;;) {
    Duration until = {};
    TimeSource* time = nullptr;
    {
      const Call call(function);
      if (call.status() != NVML_SUCCESS) {
        return call.status();
      }
      EventSet* set = FindSet(call.driver(), handle);
      if (set == nullptr || data == nullptr) {
        return NVML_ERROR_INVALID_ARGUMENT;
      }
      const nvmlReturn_t result = TakeNext(call.driver(), *set, with_instances, data);
      if (result != NVML_ERROR_TIMEOUT) {
        return result;
      }
      time = &call.driver().time;
      if (!deadline) {
        const double timeout_us = timeout_ms * 1000.0 * time->Speed();
        deadline = call.now() + Duration(static_cast<Duration::rep>(timeout_us));
      }
      if (call.now() >= *deadline) {
        return NVML_ERROR_TIMEOUT;
      }
      until = std::min(*deadline, TickTime(TickAt(call.now()) + 1));
    }
    time->WaitUntil(until);  // other threads call on meanwhile
  }
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  return OnDriver(Function::nvmlEventSetCreate, set != nullptr,
                  [&](Driver& driver) -> nvmlReturn_t {
                    if (driver.event_sets.size() >= kEventSetsMax) {
                      return NVML_ERROR_MEMORY;
                    }
                    auto created = std::make_unique<EventSet>();
                    *set = reinterpret_cast<nvmlEventSet_t>(created.get());
                    driver.event_sets.emplace(*set, std::move(created));
                    return NVML_SUCCESS;
                  });
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  return OnDriver(Function::nvmlEventSetFree, true, [&](Driver& driver) -> nvmlReturn_t {
    return driver.event_sets.erase(set) == 1 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
  });
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types) {
  return OnGpu(Function::nvmlDeviceGetSupportedEventTypes, device, types != nullptr,
               [&](const DeviceState& gpu) { return Give(true, types, SupportedTypes(gpu)); });
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
  return OnGpu(
      Function::nvmlDeviceRegisterEvents, device, types != 0,
      [&](const DeviceState& gpu) -> nvmlReturn_t {
        Driver& driver = *InstalledDriver();
        EventSet* found = FindSet(driver, set);
        if (found == nullptr) {
          return NVML_ERROR_INVALID_ARGUMENT;
        }
        if ((types & ~SupportedTypes(gpu)) != 0) {
          return NVML_ERROR_NOT_SUPPORTED;  // and none of them is registered
        }
        const auto known =
            std::ranges::find(found->registrations, gpu.index, &EventSet::Registration::gpu);
        if (known != found->registrations.end()) {
          Collect(driver, *found);
          known->types |= types;
          return NVML_SUCCESS;
        }
        found->registrations.push_back(
            {.gpu = gpu.index, .handle = device, .types = types, .seen = driver.engine.now()});
        return NVML_SUCCESS;
      });
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* data, unsigned int timeout_ms) {
  return Wait(Function::nvmlEventSetWait, set, data, timeout_ms, false);
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data,
                                 unsigned int timeout_ms) {
  return Wait(Function::nvmlEventSetWait_v2, set, data, timeout_ms, true);
}

}  // extern "C"
