#include "attribution/split/split.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

GpuProcess Process(Reading sm, Reading memory) {
  GpuProcess process;
  process.readings.sm_utilization_ratio = sm;
  process.readings.memory_used_bytes = memory;
  return process;
}

SharedDevice DeviceOf(const std::vector<GpuProcess>& processes, Reading busy, Reading used) {
  SharedDevice device;
  device.busy = busy;
  device.memory_used_bytes = used;
  for (const GpuProcess& process : processes) device.processes.push_back(&process);
  return device;
}

TEST(SplitDevice, ThreeProcessesOnAT4AddUpToItsMemoryAndUtilisation) {
  const std::vector<GpuProcess> processes = {Process(0.41, 4234 * kMiB), Process(0.22, 2896 * kMiB),
                                             Process(0.15, 1104 * kMiB)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.78, 8234 * kMiB));
  EXPECT_DOUBLE_EQ(*split.busy[0], 0.41);
  EXPECT_DOUBLE_EQ(*split.busy[1], 0.22);
  EXPECT_DOUBLE_EQ(*split.busy[2], 0.15);
  EXPECT_NEAR(*split.unattributed_busy, 0, 1e-12);
  EXPECT_EQ(*split.memory_bytes[0], 4234 * kMiB);
  EXPECT_EQ(*split.unattributed_memory_bytes, 0);
}

TEST(SplitDevice, SamplesThatOverlapAreScaledDownAlike) {
  const std::vector<GpuProcess> processes = {Process(0.9, 0.0), Process(0.6, 0.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 1.0, 0.0));
  EXPECT_DOUBLE_EQ(*split.busy[0], 0.6);
  EXPECT_DOUBLE_EQ(*split.busy[1], 0.4);
  EXPECT_DOUBLE_EQ(split.unattributed_fraction, 0);
}

TEST(SplitDevice, ADifferenceOfOnePercentPerProcessIsRounding) {
  const std::vector<GpuProcess> processes = {Process(0.40, 0.0), Process(0.20, 0.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.62, 0.0));
  EXPECT_DOUBLE_EQ(*split.busy[0], 0.62 * 2 / 3);
  EXPECT_NEAR(*split.unattributed_busy, 0, 1e-12);
}

TEST(SplitDevice, ALargerDifferenceBelongsToNobody) {
  const std::vector<GpuProcess> processes = {Process(0.40, 0.0), Process(0.20, 0.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.63, 0.0));
  EXPECT_DOUBLE_EQ(*split.busy[0], 0.40);
  EXPECT_DOUBLE_EQ(*split.busy[1], 0.20);
  EXPECT_NEAR(*split.unattributed_busy, 0.03, 1e-12);
}

TEST(SplitDevice, AProcessThatIsAloneNeedsNoSamples) {
  const std::vector<GpuProcess> processes = {Process(Missing::kNotSupported, 0.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.78, 0.0));
  EXPECT_DOUBLE_EQ(*split.busy[0], 0.78);
  EXPECT_DOUBLE_EQ(*split.fraction[0], 1);
}

TEST(SplitDevice, AProcessThatIsAloneAndWasSeenIdleDidNotDoIt) {
  const std::vector<GpuProcess> processes = {Process(0.0, 0.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.5, 0.0));
  EXPECT_DOUBLE_EQ(*split.busy[0], 0);
  EXPECT_DOUBLE_EQ(*split.unattributed_busy, 0.5);
}

TEST(SplitDevice, AListThatWasCutHasNobodyAlone) {
  const std::vector<GpuProcess> processes = {Process(Missing::kNotSupported, 0.0)};
  SharedDevice device = DeviceOf(processes, 0.78, 0.0);
  device.processes_complete = false;
  const DeviceSplit split = SplitDevice(device);
  EXPECT_EQ(split.busy[0], Reading(Missing::kNotSeparable));
  EXPECT_DOUBLE_EQ(*split.unattributed_busy, 0.78);
}

TEST(SplitDevice, TwoWithoutSamplesCannotBeToldApart) {
  const std::vector<GpuProcess> processes = {Process(Missing::kNotSupported, 10.0),
                                             Process(Missing::kNotSupported, 20.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.8, 40.0));
  EXPECT_EQ(split.busy[0], Reading(Missing::kNotSeparable));
  EXPECT_EQ(split.fraction[1], Reading(Missing::kNotSeparable));
  EXPECT_DOUBLE_EQ(*split.unattributed_busy, 0.8);
  EXPECT_EQ(*split.unattributed_memory_bytes, 10.0);
}

TEST(SplitDevice, OneWithoutSamplesLeavesItsPartUnattributed) {
  const std::vector<GpuProcess> processes = {Process(0.3, 0.0),
                                             Process(Missing::kNeverSampled, 0.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.8, 0.0));
  EXPECT_DOUBLE_EQ(*split.busy[0], 0.3);
  EXPECT_EQ(split.busy[1], Reading(Missing::kNotSeparable));
  EXPECT_DOUBLE_EQ(*split.unattributed_busy, 0.5);
}

TEST(SplitDevice, WithoutUtilisationNobodyHasAShareOfIt) {
  const std::vector<GpuProcess> processes = {Process(0.3, 0.0), Process(0.1, 0.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, Missing::kNoPermission, 0.0));
  EXPECT_EQ(split.busy[0], Reading(Missing::kNoPermission));
  EXPECT_DOUBLE_EQ(*split.fraction[0], 0.75) << "what they did relative to each other is known";
}

TEST(SplitDevice, MemoryFreedBetweenTheReadingsIsTakenFromAllAlike) {
  const std::vector<GpuProcess> processes = {Process(0.0, 60.0), Process(0.0, 40.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.0, 50.0));
  EXPECT_DOUBLE_EQ(*split.memory_bytes[0], 30);
  EXPECT_DOUBLE_EQ(*split.memory_bytes[1], 20);
  EXPECT_DOUBLE_EQ(*split.unattributed_memory_bytes, 0);
}

TEST(SplitDevice, MemoryThatTheDriverDoesNotTellIsMissingNotZero) {
  const std::vector<GpuProcess> processes = {Process(0.0, Missing::kNotSupported),
                                             Process(0.0, 40.0)};
  const DeviceSplit split = SplitDevice(DeviceOf(processes, 0.0, 100.0));
  EXPECT_EQ(split.memory_bytes[0], Reading(Missing::kNotSupported));
  EXPECT_DOUBLE_EQ(*split.unattributed_memory_bytes, 60);
}

TEST(SplitDevice, AnEmptyDeviceIsNobodys) {
  const DeviceSplit split = SplitDevice(DeviceOf({}, 0.25, 4234 * kMiB));
  EXPECT_DOUBLE_EQ(*split.unattributed_busy, 0.25);
  EXPECT_EQ(*split.unattributed_memory_bytes, 4234 * kMiB);
  EXPECT_DOUBLE_EQ(split.unattributed_fraction, 1);
}

MigInstance Instance(const char* profile, Reading active, Reading multiprocessors) {
  MigInstance instance;
  instance.identity.profile = profile;
  instance.readings.sm_active_ratio = active;
  instance.readings.graphics_engine_active_ratio = Missing::kNotSupported;
  instance.readings.multiprocessors = multiprocessors;
  return instance;
}

TEST(SplitOverInstances, CountsActivityTimesMultiprocessors) {
  const std::vector<Reading> shares = SplitOverInstances(
      {Instance("1g.10gb", 0.99, 16.0), Instance("3g.40gb", 0.33, 48.0)}, {true, true});
  EXPECT_DOUBLE_EQ(*shares[0], 0.5);
  EXPECT_DOUBLE_EQ(*shares[1], 0.5);
}

TEST(SplitOverInstances, CountsSlicesWhereMultiprocessorsAreUnknown) {
  const std::vector<Reading> shares =
      SplitOverInstances({Instance("1g.5gb", 1.0, Missing::kNotSupported),
                          Instance("1c.3g.20gb", 1.0, Missing::kNotSupported)},
                         {true, true});
  EXPECT_DOUBLE_EQ(*shares[0], 0.25);
  EXPECT_DOUBLE_EQ(*shares[1], 0.75);
}

TEST(SplitOverInstances, OneThatCannotBeReadDidNothingWhenNobodyIsOnIt) {
  const std::vector<Reading> shares = SplitOverInstances(
      {Instance("1g.10gb", 0.5, 16.0), Instance("1g.10gb", Missing::kDriverError, 16.0)},
      {true, false});
  EXPECT_DOUBLE_EQ(*shares[0], 1);
  EXPECT_DOUBLE_EQ(*shares[1], 0);
}

TEST(SplitOverInstances, OneThatCannotBeReadWithSomebodyOnItMakesAllUnknown) {
  const std::vector<Reading> shares = SplitOverInstances(
      {Instance("1g.10gb", 0.5, 16.0), Instance("1g.10gb", Missing::kDriverError, 16.0)},
      {true, true});
  EXPECT_EQ(shares[0], Reading(Missing::kNotSeparable));
  EXPECT_EQ(shares[1], Reading(Missing::kNotSeparable));
}

TEST(SplitOverInstances, TheOnlyOneWithSomebodyOnItDidItAll) {
  const std::vector<Reading> shares =
      SplitOverInstances({Instance("1g.5gb", Missing::kNotSupported, 14.0),
                          Instance("3g.20gb", Missing::kNotSupported, 42.0)},
                         {false, true});
  EXPECT_DOUBLE_EQ(*shares[0], 0);
  EXPECT_DOUBLE_EQ(*shares[1], 1);
}

TEST(SplitOverInstances, AllIdleHaveNoShare) {
  const std::vector<Reading> shares = SplitOverInstances(
      {Instance("1g.10gb", 0.0, 16.0), Instance("1g.10gb", 0.0, 16.0)}, {true, true});
  EXPECT_DOUBLE_EQ(*shares[0], 0);
  EXPECT_DOUBLE_EQ(*shares[1], 0);
}

}  // namespace
}  // namespace gpuassay
