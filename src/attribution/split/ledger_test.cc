#include "attribution/split/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "counters/integrator.h"
#include "model/catalogue.h"

namespace gpuassay {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

ProcessOwner Pod(const std::string& name) {
  ProcessOwner owner;
  owner.pod = {"ml", name, "uid-" + name};
  owner.container = {"id-" + name, "main", "containerd"};
  return owner;
}

GpuProcess Process(std::uint32_t pid, const ProcessOwner& owner, Reading sm, Reading memory = 0.0) {
  GpuProcess process;
  process.pid = pid;
  process.start_after_boot = Duration(1000 * pid);
  process.owner = owner;
  process.readings.sm_utilization_ratio = sm;
  process.readings.memory_used_bytes = memory;
  return process;
}

// A node whose time goes on by one second per reading, as the agent sees it.
class Node {
 public:
  explicit Node(LedgerOptions options = {}) : ledger_(options) {}

  // The GPU at the next second, complete.
  const Gpu& Read(Gpu gpu, SchedulerPtr scheduler = nullptr) {
    seconds_ += 1;
    snapshot_ = Snapshot{};
    snapshot_.steady = SteadyTime(std::chrono::seconds(seconds_));
    snapshot_.scheduler = std::move(scheduler);
    gpu.readings.up = 1.0;
    gpu.readings.process_count = static_cast<double>(gpu.processes.size());
    snapshot_.gpus.push_back(std::move(gpu));
    integrator_.Apply(snapshot_);
    ledger_.Apply(snapshot_);
    return snapshot_.gpus[0];
  }

 private:
  Integrator integrator_;
  OwnerLedger ledger_;
  Snapshot snapshot_;
  int seconds_ = 0;
};

Gpu Whole(double busy, double watts, std::vector<GpuProcess> processes) {
  Gpu gpu;
  gpu.identity.uuid = "GPU-1";
  gpu.readings.utilization_mean_ratio = busy;
  gpu.readings.power_watts = watts;
  gpu.readings.power_limit_default_watts = 70.0;
  gpu.readings.memory_used_bytes = 8234 * kMiB;
  gpu.readings.sm_active_ratio = busy / 2;
  gpu.readings.tensor_active_ratio = busy / 4;
  gpu.readings.dram_active_ratio = busy / 8;
  gpu.processes = std::move(processes);
  return gpu;
}

const OwnerUsage& RowOf(const Gpu& gpu, OwnerKind kind, const std::string& pod = "") {
  const auto found = std::ranges::find_if(gpu.owners, [&](const OwnerUsage& row) {
    return row.kind == kind && (pod.empty() || (row.owner.pod && row.owner.pod->name == pod));
  });
  EXPECT_NE(found, gpu.owners.end()) << OwnerKindName(kind) << " " << pod;
  static const OwnerUsage kNone;
  return found == gpu.owners.end() ? kNone : *found;
}

TEST(OwnerLedger, SplitsPowerAboveIdleBySmShare) {
  Node node;
  const auto gpu = [] {
    return Whole(0.78, 42.0,
                 {Process(1, Pod("training-job-1"), 0.39, 4234 * kMiB),
                  Process(2, Pod("inference-svc"), 0.26, 2896 * kMiB),
                  Process(3, Pod("notebook-3"), 0.13, 1104 * kMiB)});
  };
  node.Read(gpu());
  const Gpu& read = node.Read(gpu());
  // 42 W - 7 W (a tenth of 70 W, nothing idle was seen yet) = 35 W for 3 : 2 : 1.
  EXPECT_EQ(*read.readings.idle_power_watts, 7);
  EXPECT_DOUBLE_EQ(*RowOf(read, OwnerKind::kContainer, "training-job-1").readings.power_watts,
                   17.5);
  EXPECT_NEAR(*RowOf(read, OwnerKind::kContainer, "inference-svc").readings.power_watts, 35.0 / 3,
              1e-9);
  EXPECT_NEAR(*RowOf(read, OwnerKind::kContainer, "notebook-3").readings.power_watts, 35.0 / 6,
              1e-9);
  EXPECT_EQ(*RowOf(read, OwnerKind::kIdle).readings.power_watts, 7);
  EXPECT_NEAR(*RowOf(read, OwnerKind::kUnattributed).readings.power_watts, 0, 1e-9);
  EXPECT_EQ(*RowOf(read, OwnerKind::kContainer, "notebook-3").readings.memory_used_bytes,
            1104 * kMiB);
  EXPECT_EQ(*RowOf(read, OwnerKind::kUnattributed).readings.memory_used_bytes, 0);
  EXPECT_NEAR(*RowOf(read, OwnerKind::kContainer, "training-job-1").readings.busy_seconds_total,
              0.39, 1e-9);
  EXPECT_NEAR(*read.processes[0].readings.energy_joules_total, 17.5, 1e-9);
  EXPECT_EQ(*read.readings.active_process_count, 3);
}

TEST(OwnerLedger, TensorTimeGoesOnlyToWhoWasAlone) {
  Node node;
  node.Read(Whole(0.8, 42, {Process(1, Pod("a"), 0.4), Process(2, Pod("b"), 0.4)}));
  const Gpu& shared =
      node.Read(Whole(0.8, 42, {Process(1, Pod("a"), 0.4), Process(2, Pod("b"), 0.4)}));
  EXPECT_EQ(RowOf(shared, OwnerKind::kContainer, "a").readings.tensor_active_seconds_total,
            Reading(Missing::kNotSeparable));
  EXPECT_NEAR(*RowOf(shared, OwnerKind::kUnattributed).readings.tensor_active_seconds_total, 0.2,
              1e-9);
  EXPECT_NEAR(*RowOf(shared, OwnerKind::kContainer, "a").readings.sm_active_seconds_total, 0.2,
              1e-9);
  const Gpu& alone =
      node.Read(Whole(0.8, 42, {Process(1, Pod("a"), 0.8), Process(2, Pod("b"), 0.0)}));
  EXPECT_NEAR(*RowOf(alone, OwnerKind::kContainer, "a").readings.tensor_active_seconds_total, 0.2,
              1e-9);
  EXPECT_NEAR(*RowOf(alone, OwnerKind::kContainer, "a").readings.dram_active_seconds_total, 0.1,
              1e-9);
  EXPECT_EQ(*RowOf(alone, OwnerKind::kContainer, "b").readings.tensor_active_seconds_total, 0);
  EXPECT_NEAR(*RowOf(alone, OwnerKind::kUnattributed).readings.tensor_active_seconds_total, 0.2,
              1e-9);
}

TEST(OwnerLedger, ProcessesOfOneOwnerNeedNotBeToldApart) {
  Node node;
  const auto gpu = [] {
    return Whole(0.8, 42,
                 {Process(1, Pod("a"), Missing::kNotSupported),
                  Process(2, Pod("a"), Missing::kNotSupported)});
  };
  node.Read(gpu());
  const Gpu& read = node.Read(gpu());
  const OwnerUsage& row = RowOf(read, OwnerKind::kContainer, "a");
  EXPECT_DOUBLE_EQ(*row.readings.sm_share_ratio, 0.8);
  EXPECT_NEAR(*row.readings.tensor_active_seconds_total, 0.2, 1e-9);
  EXPECT_EQ(*row.readings.process_count, 2);
  EXPECT_EQ(read.processes[0].readings.sm_share_ratio, Reading(Missing::kNotSeparable));
  EXPECT_EQ(read.processes[0].readings.energy_joules_total, Reading(Missing::kNotSeparable));
}

TEST(OwnerLedger, TwoOwnersWithoutSamplesGetNoNumberAndAReason) {
  Node node;
  const auto gpu = [] {
    return Whole(0.8, 42,
                 {Process(1, Pod("a"), Missing::kNotSupported),
                  Process(2, Pod("b"), Missing::kNotSupported)});
  };
  node.Read(gpu());
  const Gpu& read = node.Read(gpu());
  const OwnerUsage& row = RowOf(read, OwnerKind::kContainer, "a");
  EXPECT_EQ(row.readings.sm_share_ratio, Reading(Missing::kNotSeparable));
  EXPECT_EQ(row.readings.energy_joules_total, Reading(Missing::kNotSeparable));
  EXPECT_NEAR(*RowOf(read, OwnerKind::kUnattributed).readings.energy_joules_total, 35, 1e-9);
  EXPECT_DOUBLE_EQ(*RowOf(read, OwnerKind::kUnattributed).readings.sm_share_ratio, 0.8);
}

TEST(OwnerLedger, LearnsIdlePowerAfterFiveReadingsWithoutWork) {
  Node node;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(*node.Read(Whole(0, 11, {})).readings.idle_power_watts, 7) << i;
  }
  EXPECT_EQ(*node.Read(Whole(0, 11, {})).readings.idle_power_watts, 11);
  EXPECT_EQ(*node.Read(Whole(0.5, 9, {})).readings.idle_power_watts, 11) << "work was seen";
  EXPECT_EQ(*RowOf(node.Read(Whole(0.5, 9, {})), OwnerKind::kIdle).readings.power_watts, 9)
      << "never more than there is";
}

TEST(OwnerLedger, WhatAHeldGpuDrawsAboveIdleIsItsOnlyHolders) {
  Node node;
  node.Read(Whole(0, 27, {Process(1, Pod("a"), 0.0)}));
  const Gpu& read = node.Read(Whole(0, 27, {Process(1, Pod("a"), 0.0)}));
  const OwnerUsage& row = RowOf(read, OwnerKind::kContainer, "a");
  EXPECT_NEAR(*row.readings.energy_joules_total, 20, 1e-9);
  EXPECT_EQ(*row.readings.held_idle_seconds_total, 1);
  EXPECT_EQ(*row.readings.held_seconds_total, 1);
  EXPECT_EQ(*row.readings.busy_seconds_total, 0);
}

TEST(OwnerLedger, CountersOutliveTheProcessAndThenGoToOther) {
  Node node({.owners_per_gpu_max = 8, .forget_after = std::chrono::seconds(3)});
  node.Read(Whole(0.5, 17, {Process(1, Pod("a"), 0.5)}));
  node.Read(Whole(0.5, 17, {Process(1, Pod("a"), 0.5)}));
  const Gpu& gone = node.Read(Whole(0, 7, {}));
  EXPECT_NEAR(*RowOf(gone, OwnerKind::kContainer, "a").readings.energy_joules_total, 10, 1e-9);
  EXPECT_EQ(*RowOf(gone, OwnerKind::kContainer, "a").readings.process_count, 0);
  EXPECT_EQ(*RowOf(gone, OwnerKind::kContainer, "a").readings.sm_share_ratio, 0);
  for (int i = 0; i < 3; ++i) node.Read(Whole(0, 7, {}));
  const Gpu& later = node.Read(Whole(0, 7, {}));
  EXPECT_NEAR(*RowOf(later, OwnerKind::kOther).readings.energy_joules_total, 10, 1e-9);
  EXPECT_EQ(later.owners.size(), 3u) << "other, idle, unattributed";
}

TEST(OwnerLedger, AnotherProcessWithThePidStartsAtZero) {
  Node node;
  node.Read(Whole(0.5, 17, {Process(1, Pod("a"), 0.5)}));
  node.Read(Whole(0.5, 17, {Process(1, Pod("a"), 0.5)}));
  GpuProcess reused = Process(1, Pod("b"), 0.5);
  reused.start_after_boot = Duration(99);
  const Gpu& read = node.Read(Whole(0.5, 17, {reused}));
  EXPECT_NEAR(*read.processes[0].readings.energy_joules_total, 10, 1e-9);
  EXPECT_NEAR(*RowOf(read, OwnerKind::kContainer, "a").readings.energy_joules_total, 10, 1e-9);
  EXPECT_NEAR(*RowOf(read, OwnerKind::kContainer, "b").readings.energy_joules_total, 10, 1e-9);
}

SchedulerPtr Allocated(const std::string& pod, const std::string& gpu,
                       const std::string& mig = "") {
  auto scheduler = std::make_shared<Scheduler>();
  Allocation& allocation = scheduler->allocations.emplace_back();
  allocation.unit = {"nvidia.com/gpu", gpu, std::nullopt, gpu, mig};
  allocation.owner.pod = {"ml", pod, ""};
  allocation.owner.container = {"", "main", ""};
  return scheduler;
}

TEST(OwnerLedger, AnAllocationWithoutAProcessHoldsTheGpuIdle) {
  Node node;
  const SchedulerPtr scheduler = Allocated("a", "GPU-1");
  node.Read(Whole(0.5, 17, {Process(2, Pod("b"), 0.5)}), scheduler);
  const Gpu& read = node.Read(Whole(0.5, 17, {Process(2, Pod("b"), 0.5)}), scheduler);
  const OwnerUsage& a = RowOf(read, OwnerKind::kContainer, "a");
  EXPECT_EQ(*a.readings.allocation_count, 1);
  EXPECT_EQ(*a.readings.process_count, 0);
  EXPECT_EQ(*a.readings.held_idle_seconds_total, 1);
  EXPECT_EQ(*RowOf(read, OwnerKind::kContainer, "b").readings.allocation_count, 0);
  EXPECT_EQ(*RowOf(read, OwnerKind::kContainer, "b").readings.held_idle_seconds_total, 0);
}

TEST(OwnerLedger, AProcessAndItsAllocationAreOneOwner) {
  Node node;
  const Gpu& read = node.Read(Whole(0.5, 17, {Process(1, Pod("a"), 0.5)}), Allocated("a", "GPU-1"));
  EXPECT_EQ(read.owners.size(), 3u) << "a, idle, unattributed";
  EXPECT_EQ(*read.owners[0].readings.allocation_count, 1);
  EXPECT_EQ(*read.owners[0].readings.process_count, 1);
}

TEST(OwnerLedger, WithoutASchedulerAllocationsAreUnknown) {
  Node node;
  const Gpu& read = node.Read(Whole(0.5, 17, {Process(1, Pod("a"), 0.5)}));
  EXPECT_EQ(read.owners[0].readings.allocation_count, Reading(Missing::kNeverSampled));
}

MigInstance Instance(std::uint32_t index, double active) {
  MigInstance instance;
  instance.identity = {index, index + 7, 0, "MIG-" + std::to_string(index), "1g.10gb"};
  instance.readings.graphics_engine_active_ratio = active;
  instance.readings.sm_active_ratio = active;
  instance.readings.tensor_active_ratio = active / 2;
  instance.readings.dram_active_ratio = active / 4;
  instance.readings.multiprocessors = 16.0;
  instance.readings.memory_used_bytes = 1000 * kMiB;
  return instance;
}

Gpu InMigMode() {
  Gpu gpu = Whole(0, 187, {});
  gpu.readings.utilization_mean_ratio = Missing::kNotSupported;
  gpu.readings.power_limit_default_watts = 700.0;
  gpu.mig = {Instance(0, 0.15), Instance(1, 0.99)};
  for (const std::uint32_t index : {0u, 1u}) {
    GpuProcess process = Process(10 + index, Pod(index == 0 ? "fast" : "slow-inference"),
                                 Missing::kNotSupported, 900 * kMiB);
    process.gpu_instance_id = index + 7;
    process.compute_instance_id = 0;
    gpu.processes.push_back(process);
  }
  return gpu;
}

TEST(OwnerLedger, MigInstancesShareTheGpusEnergyByActivityTimesSize) {
  Node node;
  node.Read(InMigMode());
  const Gpu& read = node.Read(InMigMode());
  const OwnerUsage& slow = RowOf(read, OwnerKind::kContainer, "slow-inference");
  EXPECT_EQ(slow.gpu_instance_id, 8u);
  EXPECT_NEAR(*slow.readings.sm_share_ratio, 0.99, 1e-9);
  EXPECT_NEAR(*slow.readings.energy_joules_total, 117 * 0.99 / 1.14, 1e-9);
  EXPECT_NEAR(*slow.readings.tensor_active_seconds_total, 0.495, 1e-9);
  EXPECT_NEAR(*RowOf(read, OwnerKind::kContainer, "fast").readings.energy_joules_total,
              117 * 0.15 / 1.14, 1e-9);
  EXPECT_EQ(*RowOf(read, OwnerKind::kIdle).readings.energy_joules_total, 70);
  EXPECT_EQ(*RowOf(read, OwnerKind::kUnattributed).readings.memory_used_bytes, 100 * kMiB)
      << "of the first instance";
  EXPECT_EQ(read.owners.back().gpu_instance_id, std::nullopt);
}

// --- the invariant, over a thousand random mixes -------------------------------------------------

class RandomMix {
 public:
  explicit RandomMix(std::uint64_t seed) : random_(seed) {
    mig_ = Below(3) == 0;
    replicas_ = 1 + Below(8);
    pods_ = 1 + Below(12);
    instances_ = 1 + Below(7);
    allocate_ = Below(2) == 0;
  }

  Gpu Next() {
    Gpu gpu;
    gpu.identity.uuid = "GPU-1";
    gpu.readings.power_watts = Maybe(20 + Share() * 680);
    gpu.readings.power_limit_default_watts = Maybe(700);
    gpu.readings.memory_used_bytes = Maybe(Share() * 80e9);
    if (!mig_) gpu.readings.utilization_mean_ratio = Maybe(Below(4) == 0 ? 0 : Share());
    gpu.readings.sm_active_ratio = Maybe(Share());
    gpu.readings.tensor_active_ratio = Maybe(Share());
    gpu.readings.dram_active_ratio = Maybe(Share());
    if (Below(3) == 0) gpu.readings.driver_energy_joules = energy_ += Share() * 700;
    for (std::uint32_t i = 0; mig_ && i < instances_; ++i) {
      MigInstance instance = Instance(i, Below(4) == 0 ? 0 : Share());
      if (Below(10) == 0) instance.readings.sm_active_ratio = Missing::kDriverError;
      if (Below(10) == 0) instance.readings.graphics_engine_active_ratio = Missing::kDriverError;
      if (Below(10) == 0) instance.readings.multiprocessors = Missing::kNotSupported;
      instance.readings.memory_used_bytes = Maybe(Share() * 10e9);
      gpu.mig.push_back(instance);
    }
    if (Below(20) == 0) gpu.processes_dropped = 1;
    for (std::uint64_t n = Below(16); n > 0; --n) AddProcess(gpu);
    return gpu;
  }

  SchedulerPtr NextScheduler() {
    if (!allocate_) return nullptr;
    auto scheduler = std::make_shared<Scheduler>();
    for (std::uint64_t n = Below(replicas_ + 1); n > 0; --n) {
      const std::string mig = mig_ ? "MIG-" + std::to_string(Below(instances_)) : "";
      const SchedulerPtr one = Allocated("pod-" + std::to_string(Below(pods_)), "GPU-1", mig);
      scheduler->allocations.push_back(one->allocations[0]);
    }
    return scheduler;
  }

 private:
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  double Share() { return static_cast<double>(Below(1'000'001)) / 1e6; }
  Reading Maybe(double value) {
    return Below(8) == 0 ? Reading(static_cast<Missing>(Below(kMissingCount))) : Reading(value);
  }
  void AddProcess(Gpu& gpu) {
    const auto pid = static_cast<std::uint32_t>(100 + gpu.processes.size() * 10 + Below(10));
    ProcessOwner owner;
    const std::uint64_t kind = Below(5);
    if (kind <= 1) owner = Pod("pod-" + std::to_string(Below(pods_)));
    if (kind == 2) owner.job = {"slurm", std::to_string(Below(4)), std::to_string(Below(2))};
    if (kind == 3) owner.user = "user-" + std::to_string(Below(3));
    GpuProcess process =
        Process(pid, owner, Maybe(Below(3) == 0 ? 0 : Share()), Maybe(Share() * 20e9));
    process.start_after_boot = Duration(Below(3));
    if (mig_) {
      process.gpu_instance_id = static_cast<std::uint32_t>(7 + Below(instances_));
      process.compute_instance_id = 0;
      process.readings.sm_utilization_ratio = Missing::kNotSupported;
    }
    gpu.processes.push_back(process);
  }

  std::mt19937_64 random_;
  bool mig_ = false;
  bool allocate_ = false;
  std::uint64_t replicas_ = 1, pods_ = 1, instances_ = 1;
  double energy_ = 0;
};

// What the rows of a device (all of them without `instance`) say of one number, added up.
double Sum(const Gpu& gpu, Reading OwnerReadings::*member,
           std::optional<std::uint32_t> instance = std::nullopt) {
  double sum = 0;
  for (const OwnerUsage& row : gpu.owners) {
    const bool wanted = !instance || row.gpu_instance_id == instance;
    if (wanted && row.readings.*member) sum += *(row.readings.*member);
  }
  return sum;
}

void ExpectSum(const Gpu& gpu, const Reading& whole, Reading OwnerReadings::*member,
               std::optional<std::uint32_t> instance, const char* what) {
  if (!whole) return;
  const double sum = Sum(gpu, member, instance);
  EXPECT_NEAR(sum, *whole, 1e-6 * std::max(1.0, std::abs(*whole))) << what;
}

void ExpectAddsUp(const Gpu& gpu) {
  ExpectSum(gpu, gpu.readings.power_watts, &OwnerReadings::power_watts, std::nullopt, "power");
  ExpectSum(gpu, gpu.readings.energy_joules_total, &OwnerReadings::energy_joules_total,
            std::nullopt, "energy");
  if (gpu.mig.empty()) {
    ExpectSum(gpu, gpu.readings.memory_used_bytes, &OwnerReadings::memory_used_bytes, std::nullopt,
              "memory");
    ExpectSum(gpu, gpu.readings.utilization_mean_ratio, &OwnerReadings::sm_share_ratio,
              std::nullopt, "SM share");
    ExpectSum(gpu, gpu.readings.busy_seconds_total, &OwnerReadings::busy_seconds_total,
              std::nullopt, "busy");
    ExpectSum(gpu, gpu.readings.sm_active_seconds_total, &OwnerReadings::sm_active_seconds_total,
              std::nullopt, "SM active");
    ExpectSum(gpu, gpu.readings.tensor_active_seconds_total,
              &OwnerReadings::tensor_active_seconds_total, std::nullopt, "tensor");
    ExpectSum(gpu, gpu.readings.dram_active_seconds_total,
              &OwnerReadings::dram_active_seconds_total, std::nullopt, "DRAM");
  }
  for (const MigInstance& instance : gpu.mig) {
    const std::uint32_t id = instance.identity.gpu_instance_id;
    ExpectSum(gpu, instance.readings.memory_used_bytes, &OwnerReadings::memory_used_bytes, id,
              "memory of an instance");
    ExpectSum(gpu, instance.readings.sm_active_seconds_total,
              &OwnerReadings::sm_active_seconds_total, id, "SM active of an instance");
    ExpectSum(gpu, instance.readings.tensor_active_seconds_total,
              &OwnerReadings::tensor_active_seconds_total, id, "tensor of an instance");
    ExpectSum(gpu, instance.readings.dram_active_seconds_total,
              &OwnerReadings::dram_active_seconds_total, id, "DRAM of an instance");
  }
}

void ExpectNothingNegative(const Gpu& gpu) {
  for (const OwnerUsage& row : gpu.owners) {
    ForEachReading(row.readings,
                   [](const Reading& reading) { EXPECT_GE(reading.get().value_or(0), 0); });
  }
}

TEST(OwnerLedger, AThousandRandomMixesAddUpToTheDevice) {
  for (std::uint64_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomMix mix(seed);
    Node node({.owners_per_gpu_max = 1 + seed % 7, .forget_after = std::chrono::seconds(seed % 4)});
    for (int reading = 0; reading < 12; ++reading) {
      const Gpu& gpu = node.Read(mix.Next(), mix.NextScheduler());
      ExpectAddsUp(gpu);
      ExpectNothingNegative(gpu);
    }
  }
}

TEST(OwnerLedger, CountersOfAnOwnerNeverGoDownWhileItIsListed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomMix mix(seed);
    Node node;
    std::map<std::string, double> before;
    for (int reading = 0; reading < 20; ++reading) {
      const Gpu& gpu = node.Read(mix.Next());
      for (const OwnerUsage& row : gpu.owners) {
        if (!row.readings.energy_joules_total || !row.owner.pod) continue;
        double& last =
            before[row.owner.pod->name + std::to_string(row.gpu_instance_id.value_or(99))];
        EXPECT_GE(*row.readings.energy_joules_total, last) << "seed " << seed;
        last = *row.readings.energy_joules_total;
      }
    }
  }
}

}  // namespace
}  // namespace gpuassay
