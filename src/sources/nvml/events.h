// What the driver tells once: Xids, ECC errors, MIG and recovery events, through one event set for
// all GPUs. Events that came before a GPU was added are not seen.
#pragma once

#include <optional>
#include <vector>

#include "model/snapshot.h"
#include "sources/nvml/cycle.h"
#include "sources/nvml/library.h"

namespace gpuassay {

class DriverEvents {
 public:
  struct Event {
    EventKind kind = EventKind::kXid;
    nvmlDevice_t device = nullptr;
    std::uint64_t data = 0;
    std::optional<std::uint32_t> gpu_instance_id;
  };

  explicit DriverEvents(NvmlLibrary& library) : library_(&library) {}
  ~DriverEvents();
  DriverEvents(const DriverEvents&) = delete;
  DriverEvents& operator=(const DriverEvents&) = delete;

  // Listens to exactly these GPUs: adds those that are new; makes the set anew when one is gone.
  struct Listener {
    nvmlDevice_t device;
    std::uint32_t gpu;
    bool operator==(const Listener&) const = default;
  };
  void Listen(const std::vector<Listener>& gpus);

  // Takes what has arrived, without waiting, at most `room` events; the rest comes the next time.
  // An answer of GPU_IS_LOST empties the set: the next Listen() without the lost GPU fills it
  // again.
  void Poll(std::size_t room, std::vector<Event>& events);

  // True after a GPU in the set was lost: Listen() and Poll() again once it is known which.
  bool broken() const { return broken_; }

 private:
  void Register(const Listener& gpu);
  void Free();

  NvmlLibrary* library_;
  nvmlEventSet_t set_ = nullptr;
  std::vector<Listener> listeners_;  // tried, whether the GPU has events or not
  bool broken_ = false;
  bool logged_ = false;
};

}  // namespace gpuassay
