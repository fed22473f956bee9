// One device (a GPU, or a MIG instance) in one cycle: who did what on it is booked and listed.
// Private to attribution/split.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attribution/split/books.h"
#include "attribution/split/split.h"
#include "model/snapshot.h"

namespace gpuassay::books {

// The books of one process on one device.
struct ProcessBook {
  ProcessOwner owner;
  std::string key;  // OwnerKey(owner)
  Totals totals;
  std::uint64_t cycle = 0;
};

struct Device {
  DeviceBooks* owners = nullptr;
  SharedDevice shared;
  // In the order of `shared.processes`.
  std::vector<GpuProcess*> processes;
  std::vector<ProcessBook*> process_books;
  std::vector<Account*> accounts;
  std::optional<std::uint32_t> gpu_instance_id;
  std::optional<std::uint32_t> compute_instance_id;
  Amounts amounts;      // energy: above idle
  Reading power_watts;  // above idle
  double interval_s = 0;
  bool scheduler_known = false;
};

// Books the interval, fills the derived readings of the processes and appends a row per owner and
// the unattributed one.
void Settle(const Device& device, std::uint64_t cycle, SteadyTime now,
            std::vector<OwnerUsage>& rows);

// The readings of a row that has only power and energy.
OwnerUsage PowerRow(OwnerKind kind, const Reading& power_watts, const Total& energy);

}  // namespace gpuassay::books
