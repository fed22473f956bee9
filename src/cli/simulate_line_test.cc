#include "cli/simulate_line.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

using std::chrono::minutes;

Snapshot TwoGpus() {
  Snapshot snapshot;
  for (std::uint32_t index = 0; index < 2; ++index) {
    Gpu& gpu = snapshot.gpus.emplace_back();
    gpu.identity.index = index;
    gpu.identity.uuid = "GPU-" + std::to_string(index);
    gpu.readings.up = 1.0;
    gpu.readings.utilization_ratio = index == 0 ? 1.0 : 0.5;
    gpu.readings.sm_active_ratio = 0.05;
    gpu.readings.power_watts = 300.0;
    gpu.readings.temperature_celsius = index == 0 ? 61.0 : 74.0;
    gpu.readings.memory_used_bytes = 10.0 * (1 << 30);
    gpu.readings.clock_event_idle = 0.0;
  }
  return snapshot;
}

TEST(SimulateLine, IsTheNodeAsAWhole) {
  EXPECT_EQ(SimulateTitle() + SimulateLine(TwoGpus(), minutes(2)),
            "     time  GPUs   util     SM tensor   DRAM power W max C used GiB NVL GB/s  state, "
            "clocks held, events\n"
            "       2m   2/2    75%   5.0%      -      -     600    74     20.0        -\n");
}

TEST(SimulateLine, TellsWhichGpusAreHeldLostOrHadAnEvent) {
  Snapshot snapshot = TwoGpus();
  snapshot.gpus[0].readings.clock_event_software_power_cap = 1.0;
  snapshot.gpus[1].readings.up = 0.0;
  snapshot.gpus[1].readings.temperature_celsius = Missing::kGpuLost;
  snapshot.events.push_back({{}, EventKind::kXid, "GPU-1", 79, {}});
  snapshot.events.push_back({{}, EventKind::kMigConfigChange, "GPU-x", 0, {}});
  const std::string line = SimulateLine(snapshot, minutes(2));
  EXPECT_NE(line.find("  gpu lost (GPU 1); power cap (GPU 0); GPU 1: Xid 79; "
                      "GPU-x: mig_config_change\n"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find(" 1/2 "), std::string::npos) << line;
}

TEST(SimulateLine, UnknownIsADash) {
  EXPECT_EQ(SimulateLine(Snapshot{}, minutes(0)),
            "       0s   -/0      -      -      -      -       -     -        -        -\n");
}

}  // namespace
}  // namespace gpuassay
