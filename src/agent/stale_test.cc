#include "agent/stale.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(MarkReadingsMissing, KeepsIdentitiesAndCountersAndNothingElse) {
  Snapshot snapshot;
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.identity.uuid = "GPU-1";
  gpu.readings.up = 1;
  gpu.readings.power_watts = 320;
  gpu.readings.energy_joules_total = 4200;
  gpu.links.emplace_back().readings.active = 1;
  gpu.mig.emplace_back().readings.sm_active_ratio = 0.5;
  gpu.processes.emplace_back().readings.memory_used_bytes = 1;

  MarkReadingsMissing(snapshot, Missing::kTimedOut);

  EXPECT_EQ(gpu.identity.uuid, "GPU-1");
  EXPECT_EQ(gpu.readings.up, Reading(0));
  EXPECT_EQ(gpu.readings.power_watts, Reading(Missing::kTimedOut));
  EXPECT_EQ(gpu.readings.energy_joules_total, Reading(4200));
  EXPECT_EQ(gpu.links[0].readings.active, Reading(Missing::kTimedOut));
  EXPECT_EQ(gpu.mig[0].readings.sm_active_ratio, Reading(Missing::kTimedOut));
  EXPECT_EQ(gpu.processes[0].readings.memory_used_bytes, Reading(Missing::kTimedOut));
}

}  // namespace
}  // namespace gpuassay
