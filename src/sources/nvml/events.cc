#include "sources/nvml/events.h"

#include <algorithm>

#include "base/log.h"

namespace gpuassay {
namespace {

constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;
constexpr unsigned long long kWanted =
    nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError |
    nvmlEventTypeXidCriticalError | nvmlEventMigConfigChange | nvmlEventTypeGpuUnavailableError |
    nvmlEventTypeGpuRecoveryAction;

std::optional<EventKind> KindOf(unsigned long long type) {
  switch (type) {
    case nvmlEventTypeSingleBitEccError:
      return EventKind::kSingleBitEcc;
    case nvmlEventTypeDoubleBitEccError:
      return EventKind::kDoubleBitEcc;
    case nvmlEventTypeXidCriticalError:
      return EventKind::kXid;
    case nvmlEventMigConfigChange:
      return EventKind::kMigConfigChange;
    case nvmlEventTypeGpuUnavailableError:
      return EventKind::kGpuUnavailable;
    case nvmlEventTypeGpuRecoveryAction:
      return EventKind::kRecoveryAction;
    default:
      return std::nullopt;
  }
}

}  // namespace

DriverEvents::~DriverEvents() { Free(); }

void DriverEvents::Free() {
  if (set_ != nullptr) library_->Call<NvmlFunction::nvmlEventSetFree>(CallWatch::kNoGpu, set_);
  set_ = nullptr;
  listeners_.clear();
}

void DriverEvents::Register(const Listener& gpu) {
  unsigned long long supported = 0;
  if (library_->Call<NvmlFunction::nvmlDeviceGetSupportedEventTypes>(gpu.gpu, gpu.device,
                                                                     &supported) != NVML_SUCCESS) {
    return;
  }
  // Asking for a type that the GPU lacks fails for all of them.
  const unsigned long long types = supported & kWanted;
  if (types == 0) return;
  library_->Call<NvmlFunction::nvmlDeviceRegisterEvents>(gpu.gpu, gpu.device, types, set_);
}

void DriverEvents::Listen(const std::vector<Listener>& gpus) {
  if (!broken_ && set_ != nullptr && gpus == listeners_) return;
  const bool gone = std::ranges::any_of(listeners_, [&](const Listener& known) {
    return std::ranges::find(gpus, known) == gpus.end();
  });
  if (gone || broken_) Free();
  broken_ = false;
  if (set_ == nullptr) {
    const nvmlReturn_t result =
        library_->Call<NvmlFunction::nvmlEventSetCreate>(CallWatch::kNoGpu, &set_);
    if (result != NVML_SUCCESS) {
      set_ = nullptr;
      if (!logged_) LogWarning(NvmlErrorLine(NvmlFunction::nvmlEventSetCreate, result));
      logged_ = true;
      return;
    }
  }
  for (const Listener& gpu : gpus) {
    if (std::ranges::find(listeners_, gpu) == listeners_.end()) Register(gpu);
  }
  listeners_ = gpus;
}

void DriverEvents::Poll(std::size_t room, std::vector<Event>& events) {
  if (set_ == nullptr || listeners_.empty()) return;
  for (std::size_t taken = 0; taken < room; ++taken) {
    nvmlEventData_t data = {};
    const nvmlReturn_t result =
        library_->Call<NvmlFunction::nvmlEventSetWait_v2>(CallWatch::kNoGpu, set_, &data, 0U);
    if (result == NVML_ERROR_GPU_IS_LOST) broken_ = true;
    if (result != NVML_SUCCESS) return;
    const std::optional<EventKind> kind = KindOf(data.eventType);
    if (!kind) continue;
    Event event;
    event.kind = *kind;
    event.device = data.device;
    event.data = data.eventData;
    if (data.gpuInstanceId != kNoInstance) event.gpu_instance_id = data.gpuInstanceId;
    events.push_back(event);
  }
}

}  // namespace gpuassay
