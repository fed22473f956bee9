// When to start, give up on and replace the driver worker: a pure state machine on the steady
// clock. The supervisor tells it what happened and does what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace gpuassay {

struct WorkerPolicyOptions {
  // No reading for this long: the driver counts as hanging. A driver call takes milliseconds; three
  // missed readings are no accident.
  Duration hang_after = std::chrono::seconds(3);
  // Hanging for this long: the worker is killed and another one tried. Longer than a GPU reset or a
  // driver load without persistence mode takes (about 10 s).
  Duration replace_after = std::chrono::seconds(20);
  // A worker killed while the driver holds it in the kernel does not die. It is left alone after
  // this.
  Duration kill_grace = std::chrono::seconds(2);
  // So many workers may be stuck in the kernel before no further one is tried: each holds memory.
  std::uint32_t stuck_workers_max = 3;
  // Wait before a start after a failure; doubles up to the maximum, starts again after a reading.
  Duration backoff_first = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::seconds(60);
  // A GPU on which two workers in a row hung is left out, so that it does not hide the others, and
  // tried again after this; doubles each time.
  Duration quarantine = std::chrono::minutes(5);
};

class WorkerPolicy {
 public:
  enum class Action {
    kNone,
    kStart,     // start a worker that leaves out skipped_gpus()
    kAskToEnd,  // close the worker's socket; tell OnExit
    kKill,      // SIGKILL the worker; tell OnExit or OnAbandoned
    kAbandon,   // it does not die: forget it and tell OnAbandoned
  };

  explicit WorkerPolicy(WorkerPolicyOptions options) : options_(options) {}

  void OnStarted(SteadyTime now);
  void OnReading(SteadyTime now);
  // The worker ended by itself or was killed. `asked_for_successor`: not a failure (version
  // mismatch).
  void OnExit(SteadyTime now, bool asked_for_successor);
  void OnAbandoned(SteadyTime now);
  // One worker that was abandoned has died after all.
  void OnAbandonedDied() { stuck_workers_ -= stuck_workers_ > 0 ? 1 : 0; }
  // GPU of the call that hangs, told right before a kKill is carried out.
  void OnHangingGpu(SteadyTime now, std::optional<std::uint32_t> gpu);
  // The worker is asked to end, killed when it does not, and none is started until Resume().
  void Release() { released_ = true; }
  void Resume(SteadyTime now);

  Action Decide(SteadyTime now);
  // Nothing will have to be decided before this, unless something happens.
  SteadyTime NextDecision(SteadyTime now) const;

  bool running() const { return running_; }
  bool released() const { return released_; }
  bool Hanging(SteadyTime now) const;
  std::vector<std::uint32_t> skipped_gpus() const;

 private:
  struct Quarantine {
    std::uint32_t gpu;
    SteadyTime until;
    Duration length;
    bool skipped;  // false while it is being tried again
  };

  void Failed(SteadyTime now);
  // Takes the GPUs whose time is over out of quarantine.
  bool QuarantineIsOver(SteadyTime now);

  WorkerPolicyOptions options_;
  bool running_ = false;
  bool released_ = false;
  bool killed_ = false;
  bool asked_to_end_ = false;
  SteadyTime last_sign_;  // start or last reading
  SteadyTime asked_at_;
  SteadyTime killed_at_;
  SteadyTime start_not_before_ = SteadyTime::min();
  Duration backoff_ = {};
  std::uint32_t stuck_workers_ = 0;
  std::optional<std::uint32_t> last_hanging_gpu_;
  std::vector<Quarantine> quarantines_;
};

}  // namespace gpuassay
