// Keeps the books of who used each GPU: fills the shares of processes and owners in each snapshot,
// and counters that add up to the counters of the device (M23, M24). From consecutive snapshots of
// one node, after the Integrator; no clock, no I/O.
//
// The invariant, in every snapshot: over all OwnerUsage of a GPU, memory adds up to
// memory_used_bytes, SM share to utilization_mean_ratio, power to power_watts, and each counter to
// the GPU's own; where a MIG instance is the device, SM, tensor and DRAM numbers add up to the
// instance's. A missing part counts for nothing: what it would have is in the unattributed part.
//
// Energy. The idle part (idle_power_watts x time) belongs to nobody; what is above it goes by SM
// share, in MIG mode first over the instances by activity x SMs. Without any activity it goes to
// the only process there is, else to nobody.
// SM-active time goes by SM share: processes are taken to fill the SMs alike while they run. Tensor
// and DRAM time only goes to an owner who was the only active one in the interval: a share of time
// says nothing about which pipes were used.
#pragma once

#include <memory>

#include "model/snapshot.h"

namespace gpuassay {

struct LedgerOptions {
  // Owners with books of their own per GPU; at most kOwnersPerGpuMax. Later ones are `other`.
  std::size_t owners_per_gpu_max = 128;
  // An owner without process and allocation stays listed so long, then its counters go to `other`:
  // long enough for every scrape to see the last of them.
  Duration forget_after = std::chrono::minutes(10);
};

class OwnerLedger {
 public:
  // Until a GPU was seen without work its idle power is taken to be this share of its default power
  // limit; docs/attribution.md says what boards draw.
  static constexpr double kAssumedIdleShare = 0.1;
  // Readings without work in a row before power counts as idle: power_watts is a mean over one
  // second, clocks fall some seconds after the last kernel.
  static constexpr int kIdleReadings = 5;

  explicit OwnerLedger(LedgerOptions options = {});
  ~OwnerLedger();

  // Fills the kDerived process and owner fields, memory_processes_bytes, memory_unattributed_bytes,
  // idle_power_watts, active_process_count and Gpu::owners. Not thread-safe.
  void Apply(Snapshot& snapshot);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
