// Faults at their times, events, MIG.
#include <gtest/gtest.h>

#include "sim/engine/engine.h"
#include "sim/engine/test_engine.h"

namespace gpuassay::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// "type:data@ms" of each event.
std::string Events(const Engine& engine, std::uint32_t device, Duration after = Duration(-1)) {
  std::string out;
  for (const DeviceEvent& event : engine.EventsAfter(device, after)) {
    out += std::to_string(event.type) + ":" + std::to_string(event.data) + "@" +
           std::to_string(event.at.count() / 1000) + " ";
  }
  return out;
}

TEST(Faults, LastFromTheirStartToTheirEnd) {
  Engine engine = Story("gpu-lost");
  EXPECT_FALSE(At(engine, milliseconds(29'900), 7).lost);
  EXPECT_TRUE(At(engine, seconds(30), 7).lost);
  EXPECT_FALSE(engine.devices()[6].lost);
  EXPECT_EQ(engine.devices()[7].recovery_action, 2U);
  const double energy = engine.devices()[7].energy_j;
  EXPECT_EQ(At(engine, minutes(10), 7).energy_j, energy);
  EXPECT_TRUE(engine.devices()[7].lost);
  EXPECT_FALSE(At(engine, seconds(630), 7).lost);
}

TEST(Faults, XidsComeAsEventsAtTheirTimes) {
  Engine engine = Story("xid");
  engine.AdvanceTo(minutes(3));
  EXPECT_EQ(Events(engine, 0), "8:31@10000 8:31@15000 8:31@20000 ");
  EXPECT_EQ(Events(engine, 0, seconds(15)), "8:31@20000 ");
  EXPECT_EQ(Events(engine, 1), "8:94@15000 ");
  EXPECT_EQ(Events(engine, 2), "2:0@25000 8:48@25000 ");
  EXPECT_EQ(Events(engine, 4), "8:74@50000 ");
  EXPECT_EQ(Events(engine, 6), "");
}

TEST(Faults, AtTimeZeroAreSeenOnce) {
  Engine engine = Make("gpus: [{model: t4}]\nfaults: [{kind: xid, value: 13}]");
  EXPECT_EQ(Events(engine, 0), "8:13@0 ");
  engine.AdvanceTo(seconds(5));
  EXPECT_EQ(Events(engine, 0), "8:13@0 ");
}

TEST(Faults, MemoryErrorsCountAndLeaveARemapPending) {
  Engine engine = Story("xid");
  engine.AdvanceTo(minutes(3));
  const DeviceState& uncorrected = engine.devices()[2];
  EXPECT_EQ(uncorrected.ecc_uncorrected, 1);
  EXPECT_EQ(uncorrected.remapped_uncorrectable, 1U);
  EXPECT_TRUE(uncorrected.row_remap_pending);
  EXPECT_EQ(uncorrected.recovery_action, 1U);
  EXPECT_TRUE(engine.devices()[3].row_remap_failed);
  EXPECT_FALSE(engine.devices()[3].row_remap_pending);
  EXPECT_NEAR(engine.devices()[5].ecc_corrected, 16, 0.05);  // 6/min for 160 s
  EXPECT_NEAR(engine.devices()[6].pcie_replays, 480, 1);
  EXPECT_TRUE(engine.devices()[7].reset_required);
  EXPECT_EQ(engine.devices()[7].recovery_action, 1U);
  EXPECT_FALSE(engine.devices()[4].links[3].active);
  EXPECT_NEAR(engine.devices()[4].links[3].crc_errors, 25 * 130, 5);
}

TEST(Faults, OrphanMemoryHasNoProcess) {
  Engine engine = Story("orphan-memory");
  EXPECT_EQ(At(engine, seconds(29)).processes.size(), 1U);
  EXPECT_EQ(engine.devices()[0].memory_used_bytes, 4234 * kMiB);
  EXPECT_TRUE(At(engine, seconds(31)).processes.empty());
  EXPECT_EQ(engine.devices()[0].memory_used_bytes, 4234 * kMiB);
}

TEST(Faults, GarbageIsImplausibleAndPasses) {
  Engine engine = Story("garbage");
  bool above = false;
  bool dead = false;
  for (int second = 21; second < 80; ++second) {
    const DeviceState& state = At(engine, seconds(second));
    EXPECT_TRUE(state.garbage);
    above = above || state.utilization_percent > 100;
    for (const ProcessUtilizationSample& sample : state.process_samples) {
      dead = dead || (sample.pid != 13000 && sample.sm_percent > 100);
    }
  }
  EXPECT_TRUE(above);
  EXPECT_TRUE(dead);
  EXPECT_FALSE(At(engine, seconds(81)).garbage);
  EXPECT_LE(engine.devices()[0].utilization_percent, 100U);
  EXPECT_TRUE(engine.devices()[1].fabric_ready);
}

TEST(Faults, OfTheDriver) {
  Engine hang = Story("driver-hang");
  EXPECT_EQ(hang.HangEnd(milliseconds(19'999), std::nullopt), std::nullopt);
  EXPECT_EQ(hang.HangEnd(seconds(20), std::nullopt), seconds(30));
  EXPECT_EQ(hang.HangEnd(seconds(25), 3), seconds(30));
  EXPECT_EQ(hang.HangEnd(seconds(30), std::nullopt), std::nullopt);
  EXPECT_EQ(Story("driver-hang-forever").HangEnd(seconds(21), std::nullopt), kForever);

  Engine one = Make("gpus: [{model: t4, count: 2}]\nfaults: [{kind: driver_hang, gpu: 1}]");
  EXPECT_EQ(one.HangEnd(seconds(1), std::nullopt), std::nullopt);
  EXPECT_EQ(one.HangEnd(seconds(1), 0), std::nullopt);
  EXPECT_EQ(one.HangEnd(seconds(1), 1), kForever);

  Engine mismatch = Story("version-mismatch");
  EXPECT_FALSE(mismatch.VersionMismatch(seconds(19), seconds(0)));
  EXPECT_TRUE(mismatch.VersionMismatch(seconds(20), seconds(0)));
  EXPECT_FALSE(mismatch.VersionMismatch(seconds(25), seconds(20)));

  Engine denied = Story("garbage");
  EXPECT_FALSE(denied.PermissionDenied(seconds(100), "nvmlGpmSampleGet"));
  EXPECT_TRUE(denied.PermissionDenied(seconds(130), "nvmlGpmSampleGet"));
  EXPECT_FALSE(denied.PermissionDenied(seconds(130), "nvmlDeviceGetUUID"));
}

TEST(Events, AreBounded) {
  Engine engine =
      Make("gpus: [{model: t4}]\nfaults: [{kind: xid, value: 13, count: 5000, every: 1ms}]");
  engine.AdvanceTo(seconds(10));
  const auto events = engine.EventsAfter(0, Duration(-1));
  EXPECT_EQ(events.size(), 1024U);
  EXPECT_EQ(events.back().at, milliseconds(4999));
}

// Mission, M28: 2 x 1g.5gb, 1 x 2g.10gb, 1 x 3g.20gb; the two small ones at 15 and 99 %.
TEST(Mig, InstancesHaveTheirOwnTotals) {
  Engine engine = Story("a100-mig");
  const DeviceState& state = At(engine, minutes(2));
  EXPECT_TRUE(state.mig_enabled);
  ASSERT_EQ(state.mig.size(), 4U);
  EXPECT_EQ(state.mig[0].profile->name, "1g.5gb");
  EXPECT_EQ(state.mig[0].gpu_instance_id, 7U);
  EXPECT_EQ(state.mig[3].gpu_instance_id, 1U);
  EXPECT_EQ(state.mig[0].uuid.substr(0, 4), "MIG-");
  EXPECT_NE(state.mig[0].uuid, state.mig[1].uuid);
  EXPECT_NEAR(state.mig[0].totals.graphics_engine / 120, 0.15, 1e-9);
  EXPECT_NEAR(state.mig[1].totals.graphics_engine / 120, 0.99, 1e-9);
  EXPECT_EQ(state.mig[1].memory_used_bytes, 4384 * kMiB);
  EXPECT_EQ(state.mig[3].totals.busy, 0);
  EXPECT_EQ(state.memory_used_bytes, (1210 + 4384 + 6020) * kMiB);
}

TEST(Mig, ParentTotalsAreTheSumByShareOfSms) {
  Engine engine = Story("a100-mig");
  const DeviceState& state = At(engine, minutes(2));
  double sm = 0;
  double tensor = 0;
  double dram = 0;
  for (const MigState& instance : state.mig) {
    sm += instance.totals.sm_active * instance.profile->multiprocessors / 108;
    tensor += instance.totals.tensor * instance.profile->multiprocessors / 108;
    dram += instance.totals.dram * instance.profile->memory_slices / 8;
  }
  EXPECT_NEAR(state.totals.sm_active, sm, 1e-9);
  EXPECT_NEAR(state.totals.tensor, tensor, 1e-9);
  EXPECT_NEAR(state.totals.dram, dram, 1e-9);
  EXPECT_GT(sm, 20);
}

TEST(Mig, RepartitionMakesNewInstancesAndEndsOldPrograms) {
  Engine engine = Story("mig-repartition");
  const std::string uuid = At(engine, seconds(50)).mig.at(0).uuid;
  EXPECT_EQ(engine.devices()[0].mig.size(), 2U);
  EXPECT_EQ(engine.devices()[0].mig[0].generation, 0U);
  EXPECT_EQ(engine.devices()[0].processes.size(), 1U);
  const DeviceState& state = At(engine, seconds(70));
  ASSERT_EQ(state.mig.size(), 4U);
  EXPECT_EQ(state.mig[0].generation, 1U);
  EXPECT_NE(state.mig[0].uuid, uuid);
  EXPECT_EQ(Events(engine, 0), "256:0@60000 ");
  ASSERT_EQ(state.processes.size(), 1U);
  EXPECT_EQ(state.processes[0].pid, 11002U);
  EXPECT_EQ(state.mig[3].memory_used_bytes, 4096 * kMiB);
  EXPECT_GT(state.mig[3].totals.busy, 4);
  EXPECT_EQ(At(engine, seconds(370)).mig.size(), 2U);
  EXPECT_EQ(engine.devices()[0].mig[0].generation, 2U);
}

TEST(Mig, ProgramsOfAnOldLayoutEnd) {
  Engine engine = Make(
      "gpus: [{model: h100-sxm5-80gb, mig: [1g.10gb]}]\n"
      "processes: [{pid: 1, gpus: 0, mig: 0, memory: 1 GiB}]\n"
      "faults: [{kind: mig_reconfigure, at: 5s, layout: [2g.20gb]}]");
  EXPECT_EQ(At(engine, seconds(4)).processes.size(), 1U);
  EXPECT_TRUE(At(engine, seconds(6)).processes.empty());
  EXPECT_EQ(engine.devices()[0].memory_used_bytes, 0U);
}

TEST(Mig, MayBeOnWithoutInstances) {
  Engine engine = Make("noise: 0\ngpus: [{model: h100-sxm5-80gb, mig: []}]");
  const DeviceState& state = At(engine, seconds(10));
  EXPECT_TRUE(state.mig_enabled);
  EXPECT_TRUE(state.mig.empty());
  EXPECT_EQ(state.power_w, 68);
}

}  // namespace
}  // namespace gpuassay::sim
