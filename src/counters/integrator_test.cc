#include "counters/integrator.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Snapshot At(Duration time) {
  Snapshot snapshot;
  snapshot.steady = SteadyTime(time);
  snapshot.time = WallTime(seconds(1'700'000'000) + time);
  return snapshot;
}

Gpu MakeGpu(std::string uuid = "GPU-a") {
  Gpu gpu;
  gpu.identity.uuid = std::move(uuid);
  gpu.readings.up = 1;
  return gpu;
}

// One GPU through a series of snapshots.
class IntegratorTest : public testing::Test {
 protected:
  const GpuReadings& Apply(Duration time, const Gpu& gpu) {
    snapshot_ = At(time);
    snapshot_.gpus = {gpu};
    integrator_.Apply(snapshot_);
    return snapshot_.gpus[0].readings;
  }

  Integrator integrator_;
  Snapshot snapshot_;
};

TEST_F(IntegratorTest, ACounterWithAKnownInputStartsAtZero) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 0.5;
  const GpuReadings& readings = Apply(seconds(0), gpu);
  EXPECT_EQ(readings.busy_seconds_total, Reading(0.0));
  EXPECT_EQ(readings.observed_seconds_total, Reading(0.0));
}

TEST_F(IntegratorTest, ACounterThatNeverHadAnInputIsMissingForTheReasonOfItsInput) {
  Gpu gpu = MakeGpu();
  gpu.readings.sm_active_ratio = Missing::kNotSupported;
  gpu.readings.power_watts = Missing::kNoPermission;
  gpu.readings.driver_energy_joules = Missing::kNotSupported;
  Apply(seconds(0), gpu);
  const GpuReadings& readings = Apply(seconds(1), gpu);
  EXPECT_EQ(readings.sm_active_seconds_total, Reading(Missing::kNotSupported));
  EXPECT_EQ(readings.energy_joules_total, Reading(Missing::kNoPermission));
  EXPECT_EQ(readings.observed_seconds_total, Reading(1.0));
}

TEST_F(IntegratorTest, TheReadingStandsForTheIntervalThatEndedWithIt) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 1;
  gpu.readings.pcie_transmit_bytes_per_second = 7;
  Apply(seconds(0), gpu);
  gpu.readings.utilization_mean_ratio = 0.25;
  gpu.readings.pcie_transmit_bytes_per_second = 1000;
  const GpuReadings& readings = Apply(seconds(2), gpu);
  EXPECT_EQ(readings.busy_seconds_total, Reading(0.5));
  EXPECT_EQ(readings.pcie_transmit_bytes_total, Reading(2000.0));
}

TEST_F(IntegratorTest, AMissingReadingStopsItsOwnCounterOnly) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 1;
  gpu.readings.sm_active_ratio = 0.5;
  Apply(seconds(0), gpu);
  Apply(seconds(1), gpu);
  gpu.readings.sm_active_ratio = Missing::kTimedOut;
  const GpuReadings& readings = Apply(seconds(2), gpu);
  EXPECT_EQ(readings.sm_active_seconds_total, Reading(0.5));
  EXPECT_EQ(readings.busy_seconds_total, Reading(2.0));
  EXPECT_EQ(readings.observed_seconds_total, Reading(2.0));
}

TEST_F(IntegratorTest, AGapOfTenSecondsCountsAndALongerOneDoesNot) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 1;
  Apply(seconds(0), gpu);
  EXPECT_EQ(Apply(seconds(10), gpu).busy_seconds_total, Reading(10.0));
  const GpuReadings& readings = Apply(seconds(20) + milliseconds(1), gpu);
  EXPECT_EQ(readings.busy_seconds_total, Reading(10.0));
  EXPECT_EQ(readings.observed_seconds_total, Reading(10.0));
}

TEST_F(IntegratorTest, ALongIntervalBetweenReadingsIsNoGap) {
  Integrator slow(seconds(30));
  const auto busy_at = [&slow](Duration since_start) {
    Snapshot snapshot;
    snapshot.steady = SteadyTime(since_start);
    snapshot.gpus.push_back(MakeGpu());
    snapshot.gpus[0].readings.utilization_mean_ratio = 1;
    slow.Apply(snapshot);
    return snapshot.gpus[0].readings.busy_seconds_total;
  };
  busy_at(seconds(0));
  EXPECT_EQ(busy_at(seconds(30)), Reading(30.0));
  EXPECT_EQ(busy_at(seconds(120)), Reading(120.0));
  EXPECT_EQ(busy_at(seconds(210) + milliseconds(1)), Reading(120.0));
}

TEST_F(IntegratorTest, AnEqualOrEarlierTimeOnlyCopiesTheTotals) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 1;
  Apply(seconds(100), gpu);
  Apply(seconds(101), gpu);
  EXPECT_EQ(Apply(seconds(101), gpu).busy_seconds_total, Reading(1.0));
  EXPECT_EQ(Apply(seconds(50), gpu).busy_seconds_total, Reading(1.0));
}

TEST_F(IntegratorTest, GoesOnAfterTheClockStartedAnew) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 1;
  Apply(seconds(100), gpu);
  Apply(seconds(50), gpu);
  Apply(seconds(51), gpu);
  EXPECT_EQ(Apply(seconds(52), gpu).busy_seconds_total, Reading(1.0));
}

TEST_F(IntegratorTest, ALostGpuKeepsItsTotals) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 1;
  Apply(seconds(0), gpu);
  Apply(seconds(1), gpu);
  Gpu lost = MakeGpu();
  lost.readings.up = 0;
  lost.readings.utilization_mean_ratio = Missing::kGpuLost;
  EXPECT_EQ(Apply(seconds(2), lost).busy_seconds_total, Reading(1.0));
  // It is back: the interval that began while it was away does not count, the next one does.
  EXPECT_EQ(Apply(seconds(3), gpu).busy_seconds_total, Reading(1.0));
  EXPECT_EQ(Apply(seconds(4), gpu).busy_seconds_total, Reading(2.0));
  EXPECT_EQ(snapshot_.gpus[0].readings.observed_seconds_total, Reading(2.0));
}

TEST_F(IntegratorTest, AGpuThatIsGoneForAnHourGoesOn) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 1;
  Apply(seconds(0), gpu);
  Apply(seconds(1), gpu);
  for (int second = 2; second < 3600; second += 9) {
    Snapshot empty = At(seconds(second));
    integrator_.Apply(empty);
  }
  EXPECT_EQ(Apply(seconds(3600), gpu).busy_seconds_total, Reading(1.0));
  EXPECT_EQ(Apply(seconds(3601), gpu).busy_seconds_total, Reading(2.0));
}

TEST_F(IntegratorTest, ARatioNeverCountsMoreThanTheTime) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 42;
  Apply(seconds(0), gpu);
  EXPECT_EQ(Apply(seconds(1), gpu).busy_seconds_total, Reading(1.0));
}

TEST_F(IntegratorTest, EnergyIsTheDifferenceOfTheDriversCounter) {
  Gpu gpu = MakeGpu();
  gpu.readings.power_watts = 100;
  gpu.readings.driver_energy_joules = 5000;
  EXPECT_EQ(Apply(seconds(0), gpu).energy_joules_total, Reading(0.0));
  gpu.readings.driver_energy_joules = 5350;
  EXPECT_EQ(Apply(seconds(1), gpu).energy_joules_total, Reading(350.0));
}

TEST_F(IntegratorTest, EnergyWithoutADriverCounterIsTheIntegralOfPower) {
  Gpu gpu = MakeGpu();
  gpu.readings.power_watts = 100;
  gpu.readings.driver_energy_joules = Missing::kNotSupported;
  Apply(seconds(0), gpu);
  gpu.readings.power_watts = 250;
  EXPECT_EQ(Apply(seconds(2), gpu).energy_joules_total, Reading(500.0));
}

TEST_F(IntegratorTest, AResetOfTheDriversCounterIsBridgedWithPower) {
  Gpu gpu = MakeGpu();
  gpu.readings.power_watts = 100;
  gpu.readings.driver_energy_joules = 5000;
  Apply(seconds(0), gpu);
  gpu.readings.driver_energy_joules = 3;
  EXPECT_EQ(Apply(seconds(1), gpu).energy_joules_total, Reading(100.0));
  gpu.readings.driver_energy_joules = 123;
  EXPECT_EQ(Apply(seconds(2), gpu).energy_joules_total, Reading(220.0));
}

TEST_F(IntegratorTest, AnImpossibleJumpOfTheDriversCounterIsNotBelieved) {
  Gpu gpu = MakeGpu();
  gpu.readings.power_watts = 100;
  gpu.readings.driver_energy_joules = 5000;
  Apply(seconds(0), gpu);
  gpu.readings.driver_energy_joules = 5e12;
  EXPECT_EQ(Apply(seconds(1), gpu).energy_joules_total, Reading(100.0));
  gpu.readings.driver_energy_joules = 5200;
  EXPECT_EQ(Apply(seconds(2), gpu).energy_joules_total, Reading(200.0));
}

TEST_F(IntegratorTest, APauseOfTheDriversCounterLosesNothingAndCountsNothingTwice) {
  Gpu gpu = MakeGpu();
  gpu.readings.power_watts = 100;
  gpu.readings.driver_energy_joules = 5000;
  Apply(seconds(0), gpu);
  gpu.readings.driver_energy_joules = Missing::kTimedOut;
  EXPECT_EQ(Apply(seconds(1), gpu).energy_joules_total, Reading(0.0));
  gpu.readings.driver_energy_joules = 5210;
  EXPECT_EQ(Apply(seconds(2), gpu).energy_joules_total, Reading(210.0));
}

TEST_F(IntegratorTest, PowerTakesOverWhenTheDriversCounterPausesForTooLong) {
  Gpu gpu = MakeGpu();
  gpu.readings.power_watts = 100;
  gpu.readings.driver_energy_joules = 5000;
  Apply(seconds(0), gpu);
  gpu.readings.driver_energy_joules = Missing::kTimedOut;
  for (int second = 1; second <= 10; ++second) Apply(seconds(second), gpu);
  EXPECT_EQ(snapshot_.gpus[0].readings.energy_joules_total, Reading(0.0));
  EXPECT_EQ(Apply(seconds(11), gpu).energy_joules_total, Reading(100.0));
  gpu.readings.driver_energy_joules = 9000;  // a new base
  EXPECT_EQ(Apply(seconds(12), gpu).energy_joules_total, Reading(200.0));
  gpu.readings.driver_energy_joules = 9130;
  EXPECT_EQ(Apply(seconds(13), gpu).energy_joules_total, Reading(330.0));
}

TEST_F(IntegratorTest, ThrottledTimeComesFromTheDriverWhereItCountsIt) {
  Gpu gpu = MakeGpu();
  gpu.readings.clock_event_software_power_cap = 0;
  gpu.readings.driver_throttled_power_seconds = 10;
  Apply(seconds(0), gpu);
  gpu.readings.driver_throttled_power_seconds = 10.25;
  EXPECT_EQ(Apply(seconds(1), gpu).throttled_software_power_cap_seconds_total, Reading(0.25));
}

TEST_F(IntegratorTest, ThrottledTimeElseComesFromTheReasonBit) {
  Gpu gpu = MakeGpu();
  gpu.readings.clock_event_hardware_thermal = 0;
  gpu.readings.clock_event_application_clocks = 1;
  gpu.readings.driver_throttled_hardware_thermal_seconds = Missing::kDriverTooOld;
  Apply(seconds(0), gpu);
  gpu.readings.clock_event_hardware_thermal = 1;
  const GpuReadings& readings = Apply(seconds(2), gpu);
  EXPECT_EQ(readings.throttled_hardware_thermal_seconds_total, Reading(2.0));
  EXPECT_EQ(readings.throttled_application_clocks_seconds_total, Reading(2.0));
  EXPECT_EQ(readings.throttled_power_brake_seconds_total, Reading(Missing::kNeverSampled));
}

TEST_F(IntegratorTest, HeldIdleNeedsAProcessAndNoWork) {
  Gpu gpu = MakeGpu();
  gpu.readings.process_count = 1;
  gpu.readings.utilization_mean_ratio = 0;
  gpu.readings.sm_active_ratio = 0.0009;
  Apply(seconds(0), gpu);
  EXPECT_EQ(Apply(seconds(1), gpu).held_idle_seconds_total, Reading(1.0));
  gpu.readings.sm_active_ratio = 0.001;  // exactly at the threshold: it worked
  EXPECT_EQ(Apply(seconds(2), gpu).held_idle_seconds_total, Reading(1.0));
  gpu.readings.sm_active_ratio = Missing::kNotSupported;
  EXPECT_EQ(Apply(seconds(3), gpu).held_idle_seconds_total, Reading(2.0));
  gpu.readings.utilization_mean_ratio = 0.01;
  EXPECT_EQ(Apply(seconds(4), gpu).held_idle_seconds_total, Reading(2.0));
  gpu.readings.utilization_mean_ratio = 0;
  gpu.readings.process_count = 0;
  EXPECT_EQ(Apply(seconds(5), gpu).held_idle_seconds_total, Reading(2.0));
}

TEST_F(IntegratorTest, HeldIdleIsMissingWhileNobodyKnowsWhoHoldsTheGpu) {
  Gpu gpu = MakeGpu();
  gpu.readings.utilization_mean_ratio = 0;
  gpu.readings.process_count = Missing::kNoPermission;
  Apply(seconds(0), gpu);
  EXPECT_EQ(Apply(seconds(1), gpu).held_idle_seconds_total, Reading(Missing::kNoPermission));
}

TEST_F(IntegratorTest, MigInstancesAreFollowedByTheirUuid) {
  Gpu gpu = MakeGpu();
  MigInstance instance;
  instance.identity = {
      .index = 0, .gpu_instance_id = 7, .compute_instance_id = 0, .uuid = "MIG-x", .profile = ""};
  instance.readings.sm_active_ratio = 0.5;
  gpu.mig = {instance};
  Apply(seconds(0), gpu);
  Apply(seconds(1), gpu);
  EXPECT_EQ(snapshot_.gpus[0].mig[0].readings.sm_active_seconds_total, Reading(0.5));
  // The GPU is divided anew: another instance takes the same place and starts at 0.
  gpu.mig[0].identity.uuid = "MIG-y";
  Apply(seconds(2), gpu);
  EXPECT_EQ(snapshot_.gpus[0].mig[0].readings.sm_active_seconds_total, Reading(0.0));
  EXPECT_EQ(snapshot_.gpus[0].mig[0].readings.tensor_active_seconds_total,
            Reading(Missing::kNeverSampled));
}

GpuProcess MakeProcess(std::uint32_t pid, double sm_ratio) {
  GpuProcess process;
  process.pid = pid;
  process.readings.sm_utilization_ratio = sm_ratio;
  return process;
}

TEST_F(IntegratorTest, AProcessThatEndedFreesItsEntryAndItsPidStartsAnew) {
  Gpu gpu = MakeGpu();
  gpu.readings.process_count = 1;
  gpu.processes = {MakeProcess(42, 0.5)};
  Apply(seconds(0), gpu);
  Apply(seconds(2), gpu);
  EXPECT_EQ(snapshot_.gpus[0].processes[0].readings.sm_utilization_seconds_total, Reading(1.0));
  Gpu empty = MakeGpu();
  empty.readings.process_count = 0;
  Apply(seconds(3), empty);
  gpu.processes = {MakeProcess(42, 0.25)};
  Apply(seconds(4), gpu);
  EXPECT_EQ(snapshot_.gpus[0].processes[0].readings.sm_utilization_seconds_total, Reading(0.25));
}

TEST_F(IntegratorTest, AnotherStartUnderTheSamePidIsAnotherProcess) {
  Gpu gpu = MakeGpu();
  gpu.readings.process_count = 1;
  gpu.processes = {MakeProcess(42, 0.5)};
  Apply(seconds(0), gpu);
  gpu.processes[0].start_after_boot = seconds(100);  // only now known: the same process
  Apply(seconds(2), gpu);
  EXPECT_EQ(snapshot_.gpus[0].processes[0].readings.sm_utilization_seconds_total, Reading(1.0));
  gpu.processes[0].start_after_boot = seconds(102);
  Apply(seconds(3), gpu);
  EXPECT_EQ(snapshot_.gpus[0].processes[0].readings.sm_utilization_seconds_total, Reading(0.5));
}

TEST_F(IntegratorTest, AProcessSurvivesAListThatCouldNotBeRead) {
  Gpu gpu = MakeGpu();
  gpu.readings.process_count = 1;
  gpu.processes = {MakeProcess(42, 0.5)};
  Apply(seconds(0), gpu);
  Apply(seconds(2), gpu);
  Gpu unread = MakeGpu();
  unread.readings.process_count = Missing::kTimedOut;
  Apply(seconds(3), unread);
  Apply(seconds(4), gpu);
  EXPECT_EQ(snapshot_.gpus[0].processes[0].readings.sm_utilization_seconds_total, Reading(1.5));
}

TEST_F(IntegratorTest, TheSamePidOnTwoGpusIsTwoEntries) {
  for (int second = 0; second < 2; ++second) {
    snapshot_ = At(seconds(second));
    snapshot_.gpus = {MakeGpu("GPU-a"), MakeGpu("GPU-b")};
    snapshot_.gpus[0].processes = {MakeProcess(42, 0.5)};
    snapshot_.gpus[1].processes = {MakeProcess(42, 0.125)};
    integrator_.Apply(snapshot_);
  }
  EXPECT_EQ(snapshot_.gpus[0].processes[0].readings.sm_utilization_seconds_total, Reading(0.5));
  EXPECT_EQ(snapshot_.gpus[1].processes[0].readings.sm_utilization_seconds_total, Reading(0.125));
}

DriverEvent Xid(std::uint64_t code, std::string uuid = "GPU-a") {
  DriverEvent event;
  event.time = WallTime(seconds(1'700'000'123));
  event.kind = EventKind::kXid;
  event.gpu_uuid = std::move(uuid);
  event.data = code;
  return event;
}

TEST_F(IntegratorTest, XidsAreCountedByCodeOnTheirGpu) {
  snapshot_ = At(seconds(0));
  snapshot_.gpus = {MakeGpu("GPU-a"), MakeGpu("GPU-b")};
  snapshot_.events = {Xid(79), Xid(31), Xid(79)};
  snapshot_.events.push_back(Xid(13, "GPU-b"));
  snapshot_.events.push_back(Xid(48));
  snapshot_.events.back().kind = EventKind::kDoubleBitEcc;
  integrator_.Apply(snapshot_);
  const Gpu& gpu = snapshot_.gpus[0];
  ASSERT_EQ(gpu.xids.size(), 2U);
  EXPECT_EQ(gpu.xids[0].xid, 31U);
  EXPECT_EQ(gpu.xids[0].count, 1U);
  EXPECT_EQ(gpu.xids[1].xid, 79U);
  EXPECT_EQ(gpu.xids[1].count, 2U);
  EXPECT_EQ(gpu.readings.last_xid, Reading(79.0));
  EXPECT_EQ(gpu.readings.last_xid_timestamp_seconds, Reading(1'700'000'123.0));
  EXPECT_EQ(snapshot_.gpus[1].readings.last_xid, Reading(13.0));
  EXPECT_EQ(gpu.readings.xid_events_total, Reading(3.0));
  EXPECT_EQ(snapshot_.gpus[1].readings.xid_events_total, Reading(1.0));
}

TEST_F(IntegratorTest, XidEventsStartAtZeroOnceTheGpuWasReached) {
  EXPECT_EQ(Apply(seconds(0), MakeGpu()).xid_events_total, Reading(0.0));
  Gpu lost = MakeGpu("GPU-lost");
  lost.readings.up = 0;
  EXPECT_EQ(Apply(seconds(1), lost).xid_events_total, Reading(Missing::kGpuLost));
}

TEST_F(IntegratorTest, XidsStayCountedAndTheLastOneIsAbsentWhenThereWasNone) {
  EXPECT_EQ(Apply(seconds(0), MakeGpu()).last_xid, Reading(Missing::kNeverSampled));
  Snapshot with_event = At(seconds(1));
  with_event.events = {Xid(79)};  // its GPU is not even listed any more
  integrator_.Apply(with_event);
  Apply(seconds(2), MakeGpu());
  ASSERT_EQ(snapshot_.gpus[0].xids.size(), 1U);
  EXPECT_EQ(snapshot_.gpus[0].xids[0].count, 1U);
}

TEST_F(IntegratorTest, TooManyKindsOfXidAreCountedUnderCodeZero) {
  snapshot_ = At(seconds(0));
  snapshot_.gpus = {MakeGpu()};
  for (std::uint64_t code = 1; code <= 70; ++code) snapshot_.events.push_back(Xid(code));
  integrator_.Apply(snapshot_);
  const Gpu& gpu = snapshot_.gpus[0];
  ASSERT_EQ(gpu.xids.size(), kXidKindsMax);
  EXPECT_EQ(gpu.xids[0].xid, 0U);
  EXPECT_EQ(gpu.xids[0].count, 7U);
  EXPECT_EQ(gpu.xids.back().xid, 63U);
}

TEST_F(IntegratorTest, GpusBeyondTheBoundForgetTheLongestUnseen) {
  Gpu first = MakeGpu("GPU-first");
  first.readings.utilization_mean_ratio = 1;
  Apply(seconds(0), first);
  Apply(seconds(1), first);
  for (std::size_t i = 0; i < Integrator::kGpuStatesMax; ++i) {
    Apply(seconds(2 + static_cast<int>(i)), MakeGpu("GPU-" + std::to_string(i)));
  }
  EXPECT_EQ(Apply(seconds(1000), first).busy_seconds_total, Reading(0.0));
}

}  // namespace
}  // namespace gpuassay
