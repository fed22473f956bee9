#include "attribution/split/device_share.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "attribution/split/owner_key.h"
#include "model/catalogue.h"

namespace gpuassay::books {
namespace {

constexpr Reading ProcessReadings::*kProcessTotals[kCounters] = {
    &ProcessReadings::energy_joules_total, &ProcessReadings::busy_seconds_total,
    &ProcessReadings::sm_active_seconds_total, &ProcessReadings::tensor_active_seconds_total,
    &ProcessReadings::dram_active_seconds_total};
constexpr Reading OwnerReadings::*kOwnerTotals[kCounters] = {
    &OwnerReadings::energy_joules_total, &OwnerReadings::busy_seconds_total,
    &OwnerReadings::sm_active_seconds_total, &OwnerReadings::tensor_active_seconds_total,
    &OwnerReadings::dram_active_seconds_total};

// More than this share of the device's time by somebody unknown, and nobody was alone on it.
constexpr double kStrangerBusyMax = 0.01;

// Whose doing the device's work was, by owner: fractions of the accounts. Processes that cannot be
// told apart are no matter when all are of one owner. Returns the fraction that is nobody's.
double AddFractions(const Device& device, const DeviceSplit& split) {
  const std::vector<Account*>& accounts = device.accounts;
  const bool one_owner =
      !accounts.empty() && device.shared.processes_complete &&
      std::all_of(accounts.begin(), accounts.end(), [&](Account* a) { return a == accounts[0]; });
  double sampled = 0;
  bool unsampled = false;
  for (const GpuProcess* process : device.processes) {
    const Reading& share = process->readings.sm_utilization_ratio;
    if (share) sampled += *share;
    unsampled = unsampled || !share;
  }
  const bool somebody_else =
      !unsampled && sampled <= 0 && device.shared.busy && *device.shared.busy > 0;
  if (one_owner && !somebody_else) {
    accounts[0]->fraction = 1.0;
    return 0;
  }
  for (std::size_t i = 0; i < accounts.size(); ++i) {
    AddPart(accounts[i]->fraction, split.fraction[i]);
  }
  return split.unattributed_fraction;
}

// Each account of the device once.
std::vector<Account*> PresentAccounts(const Device& device, std::uint64_t cycle) {
  std::vector<Account*> present;
  present.reserve(device.owners->accounts().size() + 1);
  for (const auto& [key, account] : device.owners->accounts()) {
    if (account->cycle == cycle && account->present()) present.push_back(account.get());
  }
  Account& other = device.owners->other();
  if (device.owners->has_other() && other.cycle == cycle) present.push_back(&other);
  return present;
}

// The owner who alone was active; null when there were several, or somebody unknown.
const Account* SoleActive(const Device& device, const std::vector<Account*>& present,
                          double unattributed_fraction) {
  const double busy = device.shared.busy ? *device.shared.busy : 1;
  if (unattributed_fraction * busy > kStrangerBusyMax) return nullptr;
  const Account* sole = nullptr;
  for (const Account* account : present) {
    if (!account->fraction) return nullptr;
    if (*account->fraction <= 0) continue;
    if (sole != nullptr) return nullptr;
    sole = account;
  }
  return sole;
}

// What one account gets of one counter.
Reading PartOf(const Account& account, std::size_t counter, double amount, const Account* sole) {
  if (!account.fraction) return account.fraction;
  const bool exclusive = counter == kTensorActive || counter == kDramActive;
  if (!exclusive) return *account.fraction * amount;
  if (&account == sole) return amount;
  return *account.fraction <= 0 ? Reading(0.0) : Reading(Missing::kNotSeparable);
}

// Books one interval; what goes to no account is unattributed.
void Book(const Device& device, const std::vector<Account*>& present, const Account* sole) {
  Totals& unattributed = device.owners->unattributed;
  for (std::size_t counter = 0; counter < kCounters; ++counter) {
    const Reading& amount = device.amounts[counter];
    if (!amount) unattributed[counter].Miss(amount.missing());
    double rest = amount ? *amount : 0;
    for (Account* account : present) {
      const Reading part = amount ? PartOf(*account, counter, *amount, sole) : amount;
      if (part) rest -= *part;
      account->totals[counter].AddOrMiss(part);
    }
    if (amount) unattributed[counter].Add(rest);
  }
}

void BookHolding(const Device& device, const std::vector<Account*>& present) {
  const bool device_idle = device.shared.busy && *device.shared.busy <= 0;
  for (Account* account : present) {
    account->held.Add(device.interval_s);
    if (!account->fraction && !device_idle) {
      account->held_idle.Miss(account->fraction.missing());
      continue;
    }
    const bool idle = device_idle || *account->fraction <= 0;
    account->held_idle.Add(idle ? device.interval_s : 0);
  }
}

// The process that alone was active; nullptr when there were several, or somebody unknown.
const GpuProcess* SoleActiveProcess(const Device& device, const DeviceSplit& split) {
  const double busy = device.shared.busy ? *device.shared.busy : 1;
  if (split.unattributed_fraction * busy > kStrangerBusyMax) return nullptr;
  const GpuProcess* sole = nullptr;
  for (std::size_t i = 0; i < device.processes.size(); ++i) {
    if (!split.fraction[i]) return nullptr;
    if (*split.fraction[i] <= 0) continue;
    if (sole != nullptr) return nullptr;
    sole = device.processes[i];
  }
  return sole;
}

void BookProcesses(const Device& device, const DeviceSplit& split) {
  const GpuProcess* const sole = SoleActiveProcess(device, split);
  for (std::size_t i = 0; i < device.processes.size(); ++i) {
    Totals& totals = device.process_books[i]->totals;
    const Reading& fraction = split.fraction[i];
    for (std::size_t counter = 0; counter < kCounters; ++counter) {
      const Reading& amount = device.amounts[counter];
      const bool exclusive = counter == kTensorActive || counter == kDramActive;
      if (!amount || !fraction) {
        totals[counter].Miss(amount ? fraction.missing() : amount.missing());
      } else if (!exclusive) {
        totals[counter].Add(*fraction * *amount);
      } else if (device.processes[i] == sole || *fraction <= 0) {
        totals[counter].Add(*fraction <= 0 ? 0 : *amount);
      } else {
        totals[counter].Miss(Missing::kNotSeparable);
      }
    }
  }
}

Reading Times(const Reading& fraction, const Reading& amount) {
  if (!amount) return amount;
  return fraction ? Reading(*fraction * *amount) : fraction;
}

void FillProcesses(const Device& device, const DeviceSplit& split) {
  for (std::size_t i = 0; i < device.processes.size(); ++i) {
    ProcessReadings& readings = device.processes[i]->readings;
    readings.sm_share_ratio = split.busy[i];
    readings.power_watts = Times(split.fraction[i], device.power_watts);
    const Totals& totals = device.process_books[i]->totals;
    for (std::size_t counter = 0; counter < kCounters; ++counter) {
      readings.*kProcessTotals[counter] = totals[counter].Get();
    }
  }
}

OwnerUsage RowOf(const Device& device, const Account& account, bool present) {
  OwnerUsage row;
  row.kind = account.kind;
  row.gpu_instance_id = device.gpu_instance_id;
  row.compute_instance_id = device.compute_instance_id;
  row.owner = account.owner;
  OwnerReadings& readings = row.readings;
  const Reading none = 0.0;
  readings.process_count = present ? account.processes : 0.0;
  readings.allocation_count = !device.scheduler_known
                                  ? Reading(Missing::kNeverSampled)
                                  : Reading(present ? account.allocations : 0.0);
  readings.memory_used_bytes = present ? account.memory_bytes : none;
  const Reading& fraction = present ? account.fraction : none;
  readings.sm_share_ratio = Times(fraction, device.shared.busy);
  readings.power_watts = Times(fraction, device.power_watts);
  for (std::size_t counter = 0; counter < kCounters; ++counter) {
    readings.*kOwnerTotals[counter] = account.totals[counter].Get();
  }
  readings.held_seconds_total = account.held.Get();
  readings.held_idle_seconds_total = account.held_idle.Get();
  return row;
}

// What is left of a gauge when every known row has its part.
Reading Rest(const Reading& whole, Reading OwnerReadings::*member,
             std::span<const OwnerUsage> rows) {
  if (!whole) return whole;
  double rest = *whole;
  for (const OwnerUsage& row : rows) {
    if (row.readings.*member) rest -= *(row.readings.*member);
  }
  return std::max(rest, 0.0);
}

OwnerUsage UnattributedRow(const Device& device, std::span<const OwnerUsage> rows) {
  OwnerUsage row;
  row.kind = OwnerKind::kUnattributed;
  row.gpu_instance_id = device.gpu_instance_id;
  row.compute_instance_id = device.compute_instance_id;
  OwnerReadings& readings = row.readings;
  SetAllMissing(readings, Missing::kNotSupported);  // it is nobody: no processes, nothing held
  readings.memory_used_bytes =
      Rest(device.shared.memory_used_bytes, &OwnerReadings::memory_used_bytes, rows);
  readings.sm_share_ratio = Rest(device.shared.busy, &OwnerReadings::sm_share_ratio, rows);
  readings.power_watts = Rest(device.power_watts, &OwnerReadings::power_watts, rows);
  for (std::size_t counter = 0; counter < kCounters; ++counter) {
    readings.*kOwnerTotals[counter] = device.owners->unattributed[counter].Get();
  }
  return row;
}

void AddMemory(const Device& device, const DeviceSplit& split) {
  for (std::size_t i = 0; i < device.accounts.size(); ++i) {
    AddPart(device.accounts[i]->memory_bytes, split.memory_bytes[i]);
  }
}

}  // namespace

void Settle(const Device& device, std::uint64_t cycle, SteadyTime now,
            std::vector<OwnerUsage>& rows) {
  const DeviceSplit split = SplitDevice(device.shared);
  const double unattributed = AddFractions(device, split);
  AddMemory(device, split);
  const std::vector<Account*> present = PresentAccounts(device, cycle);
  Book(device, present, SoleActive(device, present, unattributed));
  BookHolding(device, present);
  BookProcesses(device, split);
  for (Account* account : present) account->last_present = now;
  FillProcesses(device, split);
  const std::size_t first = rows.size();
  for (const auto& [key, account] : device.owners->accounts()) {
    rows.push_back(RowOf(device, *account, account->cycle == cycle && account->present()));
  }
  std::sort(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
            [](const OwnerUsage& a, const OwnerUsage& b) {
              return std::pair(a.kind, OwnerKey(a.owner)) < std::pair(b.kind, OwnerKey(b.owner));
            });
  if (device.owners->has_other()) {
    Account& other = device.owners->other();
    rows.push_back(RowOf(device, other, other.cycle == cycle && other.present()));
  }
  rows.push_back(UnattributedRow(device, std::span(rows).subspan(first)));
}

OwnerUsage PowerRow(OwnerKind kind, const Reading& power_watts, const Total& energy) {
  OwnerUsage row;
  row.kind = kind;
  SetAllMissing(row.readings, Missing::kNotSupported);
  row.readings.power_watts = power_watts;
  row.readings.energy_joules_total = energy.Get();
  return row;
}

}  // namespace gpuassay::books
