// The accounts behind OwnerLedger: one per owner (and per process) and device. Private to
// attribution/split.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/snapshot.h"

namespace gpuassay::books {

enum Counter : std::size_t { kEnergy, kBusy, kSmActive, kTensorActive, kDramActive, kCounters };

// A sum that is missing, with the latest reason, until something was added for the first time.
class Total {
 public:
  void Add(double amount) {
    known_ = true;
    if (amount > 0) value_ += amount;
  }
  void Miss(Missing reason) { reason_ = reason; }
  void AddOrMiss(const Reading& amount) { amount ? Add(*amount) : Miss(amount.missing()); }
  void Merge(const Total& other) {
    if (other.known_) Add(other.value_);
  }
  Reading Get() const { return known_ ? Reading(value_) : Reading(reason_); }

 private:
  double value_ = 0;
  bool known_ = false;
  Missing reason_ = Missing::kNeverSampled;
};
using Totals = std::array<Total, kCounters>;

// What a device did in one interval; missing: not known.
using Amounts = std::array<Reading, kCounters>;

// One owner on one device.
struct Account {
  OwnerKind kind = OwnerKind::kUnknown;
  ProcessOwner owner;
  Totals totals;
  Total held, held_idle;
  SteadyTime last_present;

  // Of the present cycle.
  std::uint64_t cycle = 0;
  double processes = 0;
  double allocations = 0;
  Reading fraction = 0.0;  // of the device's doing; missing when a process's is
  Reading memory_bytes = 0.0;
  void Begin(std::uint64_t now) {
    if (cycle == now) return;
    cycle = now;
    processes = 0;
    allocations = 0;
    fraction = 0.0;
    memory_bytes = 0.0;
  }
  bool present() const { return processes > 0 || allocations > 0; }
};

// Adds a part to a sum; a missing part makes the sum missing.
inline void AddPart(Reading& sum, const Reading& part) {
  if (!sum) return;
  sum = part ? Reading(*sum + *part) : part;
}

// Who uses one device, and used it.
class DeviceBooks {
 public:
  // The account of the owner of a process or allocation, made if need be; `other` when there are
  // `accounts_max` already and nobody can be forgotten. Begun for `cycle`. `key` is
  // OwnerKey(owner).
  Account& AccountOf(const std::string& key, const ProcessOwner& owner, std::uint64_t cycle,
                     std::size_t accounts_max);
  // Moves accounts that were last present before `since` into `other`.
  void Forget(SteadyTime since);
  // Present accounts and those not yet forgotten, without `other`.
  const std::unordered_map<std::string, std::unique_ptr<Account>>& accounts() const {
    return accounts_;
  }
  Account& other() { return other_; }
  bool has_other() const { return has_other_; }
  Totals unattributed;

 private:
  // Moves the account of whoever left first into `other`; false when all are here.
  bool MakeRoom(std::uint64_t cycle);
  void MoveToOther(const Account& account);

  std::unordered_map<std::string, std::unique_ptr<Account>> accounts_;
  Account other_;
  bool has_other_ = false;
};

}  // namespace gpuassay::books
