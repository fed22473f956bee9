#include "sources/simulator/simulator_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/snapshot_codec.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr double kMib = 1048576;

sim::Scenario Story(const std::string& name) {
  auto scenario = sim::LoadScenario(GPUASSAY_SOURCE_DIR "/sim/scenarios/" + name + ".yaml");
  EXPECT_TRUE(scenario) << scenario.error().what;
  return std::move(*scenario);
}

sim::Scenario Written(std::string_view yaml) {
  auto scenario = sim::ParseScenario(yaml, "test");
  EXPECT_TRUE(scenario) << scenario.error().what;
  return std::move(*scenario);
}

// A node in virtual time.
class Node {
 public:
  explicit Node(sim::Scenario scenario)
      : clock_(scenario.start), source_(MakeSimulator(std::move(scenario), clock_, "")) {}

  // A reading each second, up to this time after the start; the last one is returned.
  Snapshot ReadUntil(Duration end) {
    Snapshot snapshot;
    while (clock_.Elapsed() + seconds(1) <= end) {
      clock_.Advance(seconds(1));
      snapshot = source_->Read();
      for (const DriverEvent& event : snapshot.events) events.push_back(event);
    }
    return snapshot;
  }

  VirtualClock& clock() { return clock_; }
  Source& source() { return *source_; }
  std::vector<DriverEvent> events;

 private:
  VirtualClock clock_;
  std::unique_ptr<Source> source_;
};

std::size_t CountMissing(const GpuReadings& readings, Missing reason) {
  std::size_t count = 0;
#define GPU_METRIC(field, ...) count += readings.field == Reading(reason) ? 1 : 0;
#include "model/metrics.def"
  return count;
}

TEST(Simulator, ReadsEightGpusWithEverythingAHopperHas) {
  Node node(Story("h100-8x-training"));
  const Snapshot snapshot = node.ReadUntil(seconds(10));
  EXPECT_EQ(snapshot.sources.at(0).error, "");
  EXPECT_EQ(snapshot.sources[0].name, "simulator");
  ASSERT_EQ(snapshot.gpus.size(), 8U);
  std::set<std::string> uuids;
  for (const Gpu& gpu : snapshot.gpus) {
    uuids.insert(gpu.identity.uuid);
    EXPECT_EQ(gpu.identity.name, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(gpu.identity.architecture, "Hopper");
    EXPECT_EQ(gpu.readings.up, Reading(1));
    EXPECT_EQ(gpu.readings.memory_total_bytes, Reading(81559 * kMib));
    EXPECT_EQ(gpu.readings.power_limit_watts, Reading(700));
    EXPECT_EQ(gpu.readings.nvlink_links, Reading(18));
    EXPECT_EQ(gpu.readings.nvlink_links_active, Reading(18));
    EXPECT_EQ(gpu.links.size(), 18U);
    EXPECT_TRUE(gpu.links[17].readings.transmit_bytes_per_second);
    EXPECT_FALSE(gpu.processes.empty());
    EXPECT_GT(*gpu.readings.sm_active_ratio, 0.1);
    EXPECT_GT(*gpu.readings.power_watts, 100);
    EXPECT_EQ(CountMissing(gpu.readings, Missing::kDriverError), 0U);
    EXPECT_EQ(CountMissing(gpu.readings, Missing::kImplausible), 0U);
  }
  EXPECT_EQ(uuids.size(), 8U);
}

TEST(Simulator, TellsTinyKernelsFromWork) {
  Node node(Story("tiny-kernels"));
  double busy = 0;
  for (int second = 1; second <= 60; ++second) {
    const Snapshot snapshot = node.ReadUntil(seconds(second));
    if (second > 1) busy += *snapshot.gpus.at(0).readings.utilization_mean_ratio / 59;
    if (second < 60) continue;
    EXPECT_NEAR(*snapshot.gpus[0].readings.sm_active_ratio, 0.001, 0.0005);
    EXPECT_NEAR(*snapshot.gpus[0].readings.utilization_ratio, 0.87, 0.02);
    EXPECT_NEAR(*snapshot.gpus[2].readings.sm_active_ratio, 0.95, 0.01);
    EXPECT_EQ(snapshot.gpus[2].readings.utilization_ratio, Reading(1));
  }
  EXPECT_NEAR(busy, 0.865, 0.006);
}

TEST(Simulator, ReadsTheMemoryOfThreeProcessesOnAT4) {
  Node node(Story("t4-three-processes"));
  const Snapshot snapshot = node.ReadUntil(seconds(10));
  EXPECT_EQ(snapshot.node.hostname, "t4-node");
  EXPECT_EQ(snapshot.node.driver_version, "535.183.01");
  const Gpu& gpu = snapshot.gpus.at(0);
  EXPECT_EQ(gpu.readings.memory_total_bytes, Reading(15360 * kMib));
  EXPECT_EQ(gpu.readings.memory_used_bytes, Reading(8234 * kMib));
  EXPECT_EQ(*gpu.readings.memory_used_bytes + *gpu.readings.memory_free_bytes +
                *gpu.readings.memory_reserved_bytes,
            15360 * kMib);
  EXPECT_NEAR(*gpu.readings.utilization_ratio, 0.78, 0.02);
  EXPECT_EQ(gpu.readings.sm_active_ratio, Reading(Missing::kNotSupported));
  EXPECT_EQ(gpu.readings.process_count, Reading(3));
  ASSERT_EQ(gpu.processes.size(), 3U);
  EXPECT_EQ(gpu.processes[0].pid, 27341U);
  EXPECT_EQ(gpu.processes[0].name, "training-job-1");
  EXPECT_EQ(gpu.processes[0].readings.memory_used_bytes, Reading(4234 * kMib));
  EXPECT_EQ(gpu.processes[1].readings.memory_used_bytes, Reading(2896 * kMib));
  EXPECT_EQ(gpu.processes[2].readings.memory_used_bytes, Reading(1104 * kMib));
  EXPECT_GT(*gpu.processes[0].readings.sm_utilization_ratio, 0.05);
}

TEST(Simulator, ReadsMigInstancesWithoutGpm) {
  Node node(Story("a100-mig"));
  const Gpu gpu = node.ReadUntil(seconds(10)).gpus.at(0);
  EXPECT_EQ(gpu.readings.mig_enabled, Reading(1));
  EXPECT_EQ(gpu.readings.utilization_ratio, Reading(Missing::kNotSupported));
  ASSERT_EQ(gpu.mig.size(), 4U);
  std::multiset<std::string> profiles;
  for (const MigInstance& mig : gpu.mig) profiles.insert(mig.identity.profile);
  EXPECT_EQ(profiles, (std::multiset<std::string>{"1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"}));
  EXPECT_EQ(gpu.readings.process_count, Reading(3));
  double on_instances = 0;
  for (const MigInstance& mig : gpu.mig) on_instances += *mig.readings.process_count;
  EXPECT_EQ(on_instances, 3);
  for (const GpuProcess& process : gpu.processes) EXPECT_TRUE(process.gpu_instance_id);
}

TEST(Simulator, FollowsAMigRePartition) {
  Node node(Story("mig-repartition"));
  Snapshot snapshot = node.ReadUntil(seconds(50));
  const auto profiles = [&] {
    std::multiset<std::string> names;
    for (const MigInstance& mig : snapshot.gpus.at(0).mig) names.insert(mig.identity.profile);
    return names;
  };
  EXPECT_EQ(profiles(), (std::multiset<std::string>{"3g.40gb", "3g.40gb"}));
  EXPECT_NEAR(*snapshot.gpus[0].mig[0].readings.sm_active_ratio, 0.5, 0.05);
  snapshot = node.ReadUntil(seconds(61));
  EXPECT_EQ(profiles(), (std::multiset<std::string>{"1g.10gb", "1g.10gb", "2g.20gb", "2g.20gb"}));
  for (const MigInstance& mig : snapshot.gpus[0].mig) {
    EXPECT_TRUE(mig.readings.memory_total_bytes);
  }
  snapshot = node.ReadUntil(seconds(100));
  double active = 0;
  for (const MigInstance& mig : snapshot.gpus[0].mig) {
    active = std::max(active, *mig.readings.sm_active_ratio);
  }
  EXPECT_NEAR(active, 0.8, 0.05);
  snapshot = node.ReadUntil(seconds(362));
  EXPECT_EQ(profiles(), (std::multiset<std::string>{"3g.40gb", "3g.40gb"}));
}

TEST(Simulator, ShowsSevenGpusWhenTheEighthIsLostAndEightWhenItIsBack) {
  Node node(Story("gpu-lost"));
  const std::string uuid = node.ReadUntil(seconds(20)).gpus.at(7).identity.uuid;
  Snapshot snapshot = node.ReadUntil(seconds(40));
  ASSERT_EQ(snapshot.gpus.size(), 8U);
  EXPECT_EQ(snapshot.sources[0].readings.up, Reading(1));
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(snapshot.gpus[i].readings.up, Reading(1));
    EXPECT_GT(*snapshot.gpus[i].readings.sm_active_ratio, 0.5);
  }
  EXPECT_EQ(snapshot.gpus[7].identity.uuid, uuid);
  EXPECT_EQ(snapshot.gpus[7].readings.up, Reading(0));
  EXPECT_EQ(snapshot.gpus[7].readings.power_watts, Reading(Missing::kGpuLost));
  snapshot = node.ReadUntil(minutes(12));
  EXPECT_EQ(snapshot.gpus[7].readings.up, Reading(1));
  EXPECT_TRUE(snapshot.gpus[7].readings.power_watts);
}

TEST(Simulator, GoesOnWhenAHangEnds) {
  Node node(Story("driver-hang"));
  node.ReadUntil(seconds(19));
  node.clock().Advance(milliseconds(1500));
  const Snapshot snapshot = node.source().Read();  // the call comes back at second 30
  EXPECT_NEAR(*snapshot.sources.at(0).readings.duration_seconds, 9.5, 0.01);
  EXPECT_EQ(snapshot.sources[0].error, "");
  EXPECT_EQ(node.ReadUntil(seconds(35)).gpus.at(3).readings.up, Reading(1));
}

TEST(Simulator, SaysThatCallsTimeOutWhenAHangNeverEnds) {
  Node node(Story("driver-hang-forever"));
  const Snapshot snapshot = node.ReadUntil(seconds(25));
  EXPECT_EQ(snapshot.sources.at(0).missing, Missing::kTimedOut);
  ASSERT_EQ(snapshot.gpus.size(), 8U);
  EXPECT_EQ(snapshot.gpus[0].readings.power_watts, Reading(Missing::kTimedOut));
}

TEST(Simulator, TellsEachXidOnce) {
  Node node(Story("xid"));
  Snapshot snapshot = node.ReadUntil(seconds(80));
  std::map<std::pair<std::string, std::uint64_t>, int> xids;
  for (const DriverEvent& event : node.events) {
    if (event.kind == EventKind::kXid) ++xids[{event.gpu_uuid, event.data}];
  }
  const auto count = [&](std::size_t gpu, std::uint64_t xid) {
    return xids[{snapshot.gpus.at(gpu).identity.uuid, xid}];
  };
  EXPECT_EQ(count(0, 31), 3);
  EXPECT_EQ(count(1, 94), 1);
  EXPECT_EQ(count(4, 74), 1);
  EXPECT_EQ(count(1, 31), 0);
  EXPECT_EQ(snapshot.gpus[3].readings.row_remap_failed, Reading(1));
  EXPECT_EQ(snapshot.gpus[0].readings.row_remap_failed, Reading(0));
  snapshot = node.ReadUntil(seconds(130));
  EXPECT_GT(*snapshot.gpus[4].links.at(3).readings.crc_errors_total, 0);
  EXPECT_EQ(snapshot.gpus[4].links[3].readings.active, Reading(0));
  EXPECT_EQ(snapshot.gpus[4].readings.nvlink_links_active, Reading(11));
  EXPECT_NEAR(*snapshot.gpus[4].readings.nvlink_transmit_bytes_per_second, 60e9, 6e9);
  EXPECT_EQ(snapshot.gpus[7].readings.up, Reading(0));
  EXPECT_EQ(snapshot.gpus[7].readings.power_watts, Reading(Missing::kResetRequired));
}

TEST(Simulator, RejectsGarbageAndGoesOn) {
  Node node(Story("garbage"));
  bool rejected = false;
  for (int second = 1; second <= 70; ++second) {
    const Snapshot snapshot = node.ReadUntil(seconds(second));
    for (const Gpu& gpu : snapshot.gpus) {
      const Reading& busy = gpu.readings.utilization_ratio;
      rejected = rejected || busy == Reading(Missing::kImplausible);
      if (busy) {
        EXPECT_LE(*busy, 1);
      }
      EXPECT_EQ(gpu.processes.size(), 1U);
      for (const GpuProcess& process : gpu.processes) {
        const Reading& share = process.readings.sm_utilization_ratio;
        if (share) {
          EXPECT_LE(*share, 1);
        }
      }
    }
  }
  EXPECT_TRUE(rejected);
  EXPECT_TRUE(node.ReadUntil(seconds(100)).gpus[0].readings.utilization_ratio);
}

TEST(Simulator, SaysWhatAnOldDriverAndAnOldGpuDoNotHave) {
  Node node(Story("old-driver"));
  const Snapshot snapshot = node.ReadUntil(seconds(5));
  EXPECT_EQ(snapshot.node.driver_version, "470.256.02");
  const auto lacks = [&](const char* function) {
    return std::ranges::find(snapshot.capabilities_missing, function) !=
           snapshot.capabilities_missing.end();
  };
  EXPECT_TRUE(lacks("nvmlDeviceGetMemoryInfo_v2"));
  EXPECT_TRUE(lacks("nvmlGpmSampleGet"));
  EXPECT_FALSE(lacks("nvmlDeviceGetUUID"));
  const Gpu& gpu = snapshot.gpus.at(0);
  EXPECT_EQ(gpu.identity.architecture, "Kepler");
  EXPECT_TRUE(gpu.readings.memory_used_bytes);
  EXPECT_EQ(gpu.readings.memory_reserved_bytes, Reading(Missing::kDriverTooOld));
  EXPECT_EQ(gpu.readings.sm_active_ratio, Reading(Missing::kNotSupported));
  EXPECT_EQ(gpu.readings.power_instant_watts, Reading(Missing::kDriverTooOld));
  EXPECT_EQ(gpu.processes.at(0).name, "caffe");
}

TEST(Simulator, WantsANewProcessAfterAnUpgrade) {
  Node node(Story("version-mismatch"));
  node.ReadUntil(seconds(19));
  EXPECT_FALSE(node.source().NeedsNewProcess());
  const Snapshot snapshot = node.ReadUntil(seconds(25));
  EXPECT_TRUE(node.source().NeedsNewProcess());
  EXPECT_EQ(snapshot.sources.at(0).missing, Missing::kVersionMismatch);
  EXPECT_EQ(snapshot.gpus.size(), 4U);
}

TEST(Simulator, ComputesThresholdsOfModelsThatReportMargins) {
  Node node(Written("gpus:\n  - {model: h200}\n"));
  const GpuReadings readings = node.ReadUntil(seconds(5)).gpus.at(0).readings;
  EXPECT_EQ(readings.temperature_max_operating_celsius, Reading(87));
  EXPECT_EQ(readings.temperature_slowdown_celsius, Reading(89));
  EXPECT_EQ(readings.temperature_shutdown_celsius, Reading(95));
}

std::string BytesOf(const std::string& story, int length_s) {
  Node node(Story(story));
  std::string bytes;
  for (int second = 1; second <= length_s; ++second) {
    EncodeSnapshot(node.ReadUntil(seconds(second)), bytes);
  }
  return bytes;
}

TEST(Simulator, TellsTheSameStoryTwice) {
  EXPECT_TRUE(BytesOf("mixed-fleet", 70) == BytesOf("mixed-fleet", 70));
  EXPECT_TRUE(BytesOf("xid", 70) == BytesOf("xid", 70));
}

TEST(RealTimeSimulator, IsReadAtTheMomentOfTheClockWhileTheStoryRunsFaster) {
  VirtualClock clock(WallTime(seconds(1'800'000'000)));
  const auto source = MakeRealTimeSimulator(Story("gpu-lost"), clock, 10, "node7");
  source->Read();
  clock.Advance(seconds(4));  // 40 s of the story: the eighth GPU is lost
  const Snapshot snapshot = source->Read();
  EXPECT_EQ(snapshot.time, WallTime(seconds(1'800'000'004)));
  EXPECT_EQ(snapshot.node.hostname, "node7");
  EXPECT_EQ(snapshot.sources.at(0).last_success, WallTime(seconds(1'800'000'004)));
  EXPECT_EQ(snapshot.gpus.at(7).readings.up, Reading(0));
}

}  // namespace
}  // namespace gpuassay
