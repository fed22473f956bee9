#include "attribution/split/ledger.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/split/books.h"
#include "attribution/split/device_share.h"
#include "attribution/split/owner_key.h"
#include "attribution/split/split.h"

namespace gpuassay {
namespace {

using books::Amounts;
using books::Device;
using books::DeviceBooks;
using books::ProcessBook;
using books::Totals;

// GPUs that are remembered after they have gone.
constexpr std::size_t kGpusRememberedMax = 2 * kGpusMax;

constexpr Reading GpuReadings::*kGpuTotals[books::kCounters] = {
    &GpuReadings::energy_joules_total, &GpuReadings::busy_seconds_total,
    &GpuReadings::sm_active_seconds_total, &GpuReadings::tensor_active_seconds_total,
    &GpuReadings::dram_active_seconds_total};

// What a counter rose by since it was last looked at; the reason while it is not known.
class Difference {
 public:
  Reading Since(const Reading& now) {
    if (!now) return now;
    const double amount = std::max(*now - last_, 0.0);
    last_ = *now;
    return amount;
  }

 private:
  double last_ = 0;  // counters of the Integrator start at 0
};

struct ProcessBookKey {
  std::uint32_t pid;
  Duration::rep start;
  std::uint64_t instance;
  bool operator==(const ProcessBookKey&) const = default;
};
struct ProcessBookKeyHash {
  std::size_t operator()(const ProcessBookKey& key) const {
    const auto start = static_cast<std::uint64_t>(key.start);
    return std::hash<std::uint64_t>()((std::uint64_t{key.pid} << 32) ^ start ^
                                      (key.instance * 0x9e3779b97f4a7c15));
  }
};

// Both ids as one number, another one for none.
std::uint64_t InstanceNumber(std::optional<std::uint32_t> gpu_instance,
                             std::optional<std::uint32_t> compute_instance) {
  constexpr std::uint32_t kNone = 0xffffffff;
  return (std::uint64_t{gpu_instance.value_or(kNone)} << 32) | compute_instance.value_or(kNone);
}

struct InstanceState {
  DeviceBooks owners;
  Difference sm_active, tensor_active, dram_active;
};

struct GpuState {
  DeviceBooks owners;  // of the whole GPU
  std::unordered_map<std::uint64_t, InstanceState> instances;
  std::unordered_map<ProcessBookKey, ProcessBook, ProcessBookKeyHash> processes;
  books::Total idle_energy;
  books::Total unattributed_energy;  // in MIG mode, of no instance
  Difference totals[books::kCounters];
  Difference observed;
  std::optional<double> idle_watts;  // lowest seen without work
  int readings_without_work = 0;
  std::uint64_t cycle = 0;
};

bool WithoutWork(const Gpu& gpu) {
  const GpuReadings& readings = gpu.readings;
  if (readings.sm_active_ratio && *readings.sm_active_ratio >= 0.001) return false;
  if (!readings.utilization_mean_ratio) {
    return readings.sm_active_ratio.has_value();
  }
  return *readings.utilization_mean_ratio <= 0;
}

void LearnIdlePower(GpuState& state, Gpu& gpu) {
  GpuReadings& readings = gpu.readings;
  if (!readings.power_watts || !WithoutWork(gpu)) {
    state.readings_without_work = 0;
  } else if (++state.readings_without_work >= OwnerLedger::kIdleReadings) {
    state.idle_watts =
        std::min(state.idle_watts.value_or(*readings.power_watts), *readings.power_watts);
  }
  if (state.idle_watts) {
    readings.idle_power_watts = *state.idle_watts;
  } else if (readings.power_limit_default_watts) {
    readings.idle_power_watts =
        OwnerLedger::kAssumedIdleShare * *readings.power_limit_default_watts;
  } else {
    readings.idle_power_watts = readings.power_limit_default_watts;
  }
}

void CountProcesses(Gpu& gpu) {
  GpuReadings& readings = gpu.readings;
  double active = 0;
  double memory = 0;
  Reading sampled = 0.0;
  Reading held = 0.0;
  for (const GpuProcess& process : gpu.processes) {
    const Reading& share = process.readings.sm_utilization_ratio;
    if (!share) sampled = share;
    if (share && *share > 0) ++active;
    const Reading& used = process.readings.memory_used_bytes;
    if (!used) held = used;
    if (used) memory += *used;
  }
  if (!readings.process_count) {
    readings.active_process_count = readings.process_count;
    readings.memory_processes_bytes = readings.process_count;
    readings.memory_unattributed_bytes = readings.process_count;
    return;
  }
  readings.active_process_count = sampled ? Reading(active) : sampled;
  if (!readings.memory_used_bytes) held = readings.memory_used_bytes;
  readings.memory_processes_bytes =
      held ? Reading(std::min(memory, *readings.memory_used_bytes)) : held;
  readings.memory_unattributed_bytes =
      held ? Reading(*readings.memory_used_bytes - *readings.memory_processes_bytes) : held;
}

std::string_view KeyOf(const GpuIdentity& identity) {
  return identity.uuid.empty() ? identity.pci_bus_id : identity.uuid;
}

}  // namespace

struct OwnerLedger::Impl {
  LedgerOptions options;
  std::unordered_map<std::string, GpuState> gpus;
  std::uint64_t cycle = 0;
  SteadyTime now;
  SchedulerPtr scheduler;
  // Allocations by the UUID of their device, made anew when the scheduler's view changes.
  struct Held {
    const ProcessOwner* owner;
    std::string key;
  };
  std::unordered_map<std::string, std::vector<Held>> allocations;

  void TakeScheduler(const SchedulerPtr& newest) {
    if (newest == scheduler) return;
    scheduler = newest;
    allocations.clear();
    if (!scheduler) return;
    for (const Allocation& allocation : scheduler->allocations) {
      const DeviceUnit& unit = allocation.unit;
      const std::string& uuid = unit.mig_uuid.empty() ? unit.gpu_uuid : unit.mig_uuid;
      if (uuid.empty()) continue;
      allocations[uuid].push_back({&allocation.owner, OwnerKey(allocation.owner)});
    }
  }

  GpuState& StateOf(const GpuIdentity& identity) {
    const std::string key(KeyOf(identity));
    const auto found = gpus.find(key);
    if (found != gpus.end()) return found->second;
    if (gpus.size() >= kGpusRememberedMax) {
      gpus.erase(std::min_element(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) {
        return a.second.cycle < b.second.cycle;
      }));
    }
    return gpus[key];
  }

  ProcessBook& BookOf(GpuState& state, const GpuProcess& process) {
    const ProcessBookKey key = {
        process.pid, process.start_after_boot ? process.start_after_boot->count() : -1,
        InstanceNumber(process.gpu_instance_id, process.compute_instance_id)};
    ProcessBook& book = state.processes[key];
    if (book.key.empty() || book.owner != process.owner) {
      book.owner = process.owner;
      book.key = OwnerKey(process.owner);
    }
    book.cycle = cycle;
    return book;
  }

  void AddProcess(GpuState& state, GpuProcess& process, Device& device) {
    ProcessBook& book = BookOf(state, process);
    books::Account& account =
        device.owners->AccountOf(book.key, process.owner, cycle, options.owners_per_gpu_max);
    account.processes += 1;
    device.shared.processes.push_back(&process);
    device.processes.push_back(&process);
    device.process_books.push_back(&book);
    device.accounts.push_back(&account);
  }

  void AddAllocations(std::string_view uuid, Device& device) {
    device.scheduler_known = scheduler != nullptr;
    const auto held = allocations.find(std::string(uuid));
    if (held == allocations.end()) return;
    for (const Held& one : held->second) {
      device.owners->AccountOf(one.key, *one.owner, cycle, options.owners_per_gpu_max)
          .allocations += 1;
    }
  }

  void ApplyGpu(Gpu& gpu) {
    GpuState& state = StateOf(gpu.identity);
    // The same GPU twice in one snapshot counts once.
    if (state.cycle == cycle) return;
    state.cycle = cycle;
    LearnIdlePower(state, gpu);
    CountProcesses(gpu);
    gpu.owners.clear();
    Amounts amounts;
    for (std::size_t i = 0; i < books::kCounters; ++i) {
      amounts[i] = state.totals[i].Since(gpu.readings.*kGpuTotals[i]);
    }
    const Reading observed = state.observed.Since(gpu.readings.observed_seconds_total);
    const double interval_s = observed ? *observed : 0;
    const GpuReadings& readings = gpu.readings;
    Reading idle_power = readings.power_watts;
    if (idle_power && readings.idle_power_watts) {
      idle_power = std::min(*idle_power, *readings.idle_power_watts);
    } else if (idle_power) {
      idle_power = 0.0;  // nobody knows what it draws without work: all goes by SM share
    }
    Reading& energy = amounts[books::kEnergy];
    if (energy) {
      const double idle = idle_power ? std::min(*idle_power * interval_s, *energy) : 0;
      state.idle_energy.Add(idle);
      energy = *energy - idle;
    } else {
      state.idle_energy.Miss(energy.missing());
    }
    const Reading power =
        readings.power_watts ? Reading(*readings.power_watts - *idle_power) : readings.power_watts;
    const bool in_instances = !gpu.mig.empty();
    if (in_instances) {
      SettleInstances(state, gpu, amounts, power, interval_s);
    } else {
      SettleWhole(state, gpu, amounts, power, interval_s);
    }
    // Before the last row, which is the unattributed one of the GPU.
    gpu.owners.insert(gpu.owners.end() - 1,
                      books::PowerRow(OwnerKind::kIdle, idle_power, state.idle_energy));
    if (!readings.process_count) return;  // nobody said that a process has gone
    std::erase_if(state.processes, [this](const auto& item) { return item.second.cycle != cycle; });
  }

  void SettleWhole(GpuState& state, Gpu& gpu, const Amounts& amounts, const Reading& power,
                   double interval_s) {
    Device device;
    device.owners = &state.owners;
    device.shared.busy = gpu.readings.utilization_mean_ratio;
    device.shared.memory_used_bytes = gpu.readings.memory_used_bytes;
    device.shared.processes_complete =
        gpu.readings.process_count.has_value() && gpu.processes_dropped == 0;
    device.amounts = amounts;
    device.power_watts = power;
    device.interval_s = interval_s;
    for (GpuProcess& process : gpu.processes) AddProcess(state, process, device);
    AddAllocations(gpu.identity.uuid, device);
    books::Settle(device, cycle, now, gpu.owners);
    state.owners.Forget(now - options.forget_after);
  }

  void SettleInstances(GpuState& state, Gpu& gpu, const Amounts& amounts, const Reading& power,
                       double interval_s);
  void SettleInstance(GpuState& state, Gpu& gpu, MigInstance& instance, Device device);
};

// In MIG mode the GPU's energy goes over the instances first; what none of them accounts for is in
// the row of the GPU as a whole.
void OwnerLedger::Impl::SettleInstances(GpuState& state, Gpu& gpu, const Amounts& amounts,
                                        const Reading& power, double interval_s) {
  std::vector<bool> occupied(gpu.mig.size(), false);
  for (const GpuProcess& process : gpu.processes) {
    for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
      if (process.gpu_instance_id == gpu.mig[i].identity.gpu_instance_id) occupied[i] = true;
    }
  }
  const std::vector<Reading> shares = SplitOverInstances(gpu.mig, occupied);
  Reading rest_energy = amounts[books::kEnergy];
  Reading rest_power = power;
  for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
    Device device;
    device.interval_s = interval_s;
    const auto part = [&](const Reading& whole, Reading& rest) -> Reading {
      if (!whole) return whole;
      if (!shares[i]) return shares[i];
      rest = *rest - *shares[i] * *whole;
      return *shares[i] * *whole;
    };
    device.amounts[books::kEnergy] = part(amounts[books::kEnergy], rest_energy);
    device.power_watts = part(power, rest_power);
    SettleInstance(state, gpu, gpu.mig[i], std::move(device));
  }
  state.unattributed_energy.AddOrMiss(rest_energy);
  if (rest_power) rest_power = std::max(*rest_power, 0.0);
  gpu.owners.push_back(
      books::PowerRow(OwnerKind::kUnattributed, rest_power, state.unattributed_energy));
}

void OwnerLedger::Impl::SettleInstance(GpuState& state, Gpu& gpu, MigInstance& instance,
                                       Device device) {
  const MigIdentity& identity = instance.identity;
  const MigReadings& readings = instance.readings;
  InstanceState& own =
      state.instances[InstanceNumber(identity.gpu_instance_id, identity.compute_instance_id)];
  device.owners = &own.owners;
  device.gpu_instance_id = identity.gpu_instance_id;
  device.compute_instance_id = identity.compute_instance_id;
  device.shared.busy = readings.graphics_engine_active_ratio ? readings.graphics_engine_active_ratio
                                                             : readings.sm_active_ratio;
  device.shared.memory_used_bytes = readings.memory_used_bytes;
  device.shared.processes_complete =
      gpu.readings.process_count.has_value() && gpu.processes_dropped == 0;
  device.amounts[books::kBusy] =
      device.shared.busy ? Reading(*device.shared.busy * device.interval_s) : device.shared.busy;
  device.amounts[books::kSmActive] = own.sm_active.Since(readings.sm_active_seconds_total);
  device.amounts[books::kTensorActive] =
      own.tensor_active.Since(readings.tensor_active_seconds_total);
  device.amounts[books::kDramActive] = own.dram_active.Since(readings.dram_active_seconds_total);
  for (GpuProcess& process : gpu.processes) {
    const bool here = process.gpu_instance_id == identity.gpu_instance_id &&
                      (!process.compute_instance_id ||
                       *process.compute_instance_id == identity.compute_instance_id);
    if (here) AddProcess(state, process, device);
  }
  AddAllocations(identity.uuid, device);
  books::Settle(device, cycle, now, gpu.owners);
  own.owners.Forget(now - options.forget_after);
}

OwnerLedger::OwnerLedger(LedgerOptions options) : impl_(std::make_unique<Impl>()) {
  options.owners_per_gpu_max = std::min(options.owners_per_gpu_max, kOwnersPerGpuMax);
  impl_->options = options;
}
OwnerLedger::~OwnerLedger() = default;

void OwnerLedger::Apply(Snapshot& snapshot) {
  Impl& impl = *impl_;
  ++impl.cycle;
  impl.now = snapshot.steady;
  impl.TakeScheduler(snapshot.scheduler);
  for (Gpu& gpu : snapshot.gpus) impl.ApplyGpu(gpu);
}

}  // namespace gpuassay
