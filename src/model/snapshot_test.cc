#include "model/snapshot.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

// JSON and labels have these words: they must not change.
TEST(Snapshot, TypesOfProcessesHaveNames) {
  EXPECT_EQ(ProcessTypeName(ProcessType::kCompute), "compute");
  EXPECT_EQ(ProcessTypeName(ProcessType::kGraphics), "graphics");
  EXPECT_EQ(ProcessTypeName(ProcessType::kComputeAndGraphics), "compute+graphics");
  EXPECT_EQ(ProcessTypeName(ProcessType::kMps), "mps");
}

TEST(Snapshot, KindsOfEventsHaveNames) {
  EXPECT_EQ(EventKindName(EventKind::kXid), "xid");
  EXPECT_EQ(EventKindName(EventKind::kSingleBitEcc), "single_bit_ecc");
  EXPECT_EQ(EventKindName(EventKind::kDoubleBitEcc), "double_bit_ecc");
  EXPECT_EQ(EventKindName(EventKind::kMigConfigChange), "mig_config_change");
  EXPECT_EQ(EventKindName(EventKind::kGpuUnavailable), "gpu_unavailable");
  EXPECT_EQ(EventKindName(EventKind::kRecoveryAction), "recovery_action");
}

TEST(Snapshot, KindsOfOwnersSchedulersAndHoldersHaveNames) {
  EXPECT_EQ(OwnerKindName(OwnerKind::kContainer), "container");
  EXPECT_EQ(OwnerKindName(OwnerKind::kUnattributed), "unattributed");
  EXPECT_EQ(SchedulerKindName(SchedulerKind::kSlurm), "slurm");
  EXPECT_EQ(HolderKindName(HolderKind::kDefunctLeader), "defunct_leader");
  EXPECT_EQ(HolderKindName(HolderKind::kOther), "other");
  EXPECT_EQ(CleanUpName(CleanUp::kDriverReload), "driver_reload");
  EXPECT_EQ(CleanUpInterrupts(CleanUp::kDriverReload), "Interrupts all GPU work on this node.");
}

TEST(Snapshot, NothingIsKnownOfAGpuThatNobodyHasRead) {
  const Gpu gpu;
  EXPECT_EQ(gpu.readings.up, Reading(Missing::kNeverSampled));
  EXPECT_EQ(gpu.identity.minor_number, std::nullopt);
  EXPECT_EQ(gpu.identity.uuid, "");
}

}  // namespace
}  // namespace gpuassay
