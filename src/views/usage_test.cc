#include "views/usage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gpuassay {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

OwnerUsage Row(OwnerKind kind, double share, double memory_mib, double watts, double joules) {
  OwnerUsage usage;
  usage.kind = kind;
  usage.readings.sm_share_ratio = share;
  usage.readings.memory_used_bytes = memory_mib * kMib;
  usage.readings.power_watts = watts;
  usage.readings.energy_joules_total = joules;
  usage.readings.sm_active_seconds_total = Missing::kNotSupported;
  usage.readings.tensor_active_seconds_total = Missing::kNotSeparable;
  usage.readings.dram_active_seconds_total = Missing::kNotSeparable;
  return usage;
}

OwnerUsage PodRow(const std::string& pod, const std::string& container, double share, double mib) {
  OwnerUsage usage = Row(OwnerKind::kContainer, share, mib, 10, 100);
  usage.owner.pod = {"ml", pod, ""};
  usage.owner.container = {"", container, ""};
  usage.owner.job = {"Job", "train", ""};
  usage.readings.process_count = 1;
  return usage;
}

Snapshot OneGpu() {
  Snapshot snapshot;
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.identity.uuid = "GPU-1";
  gpu.identity.name = "Tesla T4";
  gpu.readings.utilization_mean_ratio = 0.9;
  gpu.readings.memory_used_bytes = 1000 * kMib;
  gpu.readings.power_watts = 60;
  gpu.readings.energy_joules_total = 600;
  OwnerUsage user = Row(OwnerKind::kUser, 0.1, 100, 10, 100);
  user.owner.user = "alice";
  user.readings.process_count = 2;
  OwnerUsage idle = Row(OwnerKind::kIdle, 0, 0, 20, 200);
  idle.readings.sm_share_ratio = Missing::kNeverSampled;
  idle.readings.memory_used_bytes = Missing::kNeverSampled;
  gpu.owners = {PodRow("a", "main", 0.25, 200),
                PodRow("a", "side", 0.125, 100),
                PodRow("b", "main", 0.375, 300),
                user,
                idle,
                Row(OwnerKind::kUnattributed, 0.05, 300, 0, 0)};
  return snapshot;
}

const UsageRow* Find(const Usage& usage, std::string_view name) {
  const auto& rows = usage.gpus.at(0).rows;
  const auto found = std::ranges::find(rows, name, &UsageRow::name);
  return found == rows.end() ? nullptr : &*found;
}

TEST(Usage, WordsAreReadAndWritten) {
  EXPECT_EQ(ParseUsageBy("pod"), UsageBy::kPod);
  EXPECT_EQ(ParseUsageBy("user"), UsageBy::kUser);
  EXPECT_EQ(ParseUsageBy("container"), std::nullopt);
  EXPECT_EQ(UsageByName(UsageBy::kJob), "job");
}

TEST(Usage, ByPodContainersAreAddedUpAndTheSumIsTheDevice) {
  const Usage usage = MakeUsage(OneGpu(), UsageBy::kPod);
  ASSERT_NE(Find(usage, "ml/a"), nullptr);
  EXPECT_EQ(Find(usage, "ml/a")->numbers.sm_share_ratio, Reading(0.375));
  EXPECT_EQ(Find(usage, "ml/a")->numbers.memory_used_bytes, Reading(300 * kMib));
  EXPECT_EQ(Find(usage, "ml/a")->processes, 2U);
  EXPECT_EQ(Find(usage, "user alice")->numbers.sm_share_ratio, Reading(0.1));
  EXPECT_EQ(Find(usage, "idle")->numbers.power_watts, Reading(20));
  EXPECT_EQ(Find(usage, "ml/a")->numbers.tensor_active_seconds_total,
            Reading(Missing::kNotSeparable));
  const GpuUsage& gpu = usage.gpus[0];
  EXPECT_NEAR(*gpu.sum.sm_share_ratio, 0.9, 1e-12);
  EXPECT_EQ(gpu.sum.memory_used_bytes, gpu.device.memory_used_bytes);
  EXPECT_EQ(gpu.sum.power_watts, gpu.device.power_watts);
  EXPECT_EQ(gpu.sum.energy_joules_total, gpu.device.energy_joules_total);
}

TEST(Usage, ByJobPodsOfOneJobAreOneRow) {
  const Usage usage = MakeUsage(OneGpu(), UsageBy::kJob);
  ASSERT_NE(Find(usage, "Job train in ml"), nullptr);
  EXPECT_EQ(Find(usage, "Job train in ml")->numbers.sm_share_ratio, Reading(0.75));
}

TEST(Usage, AGaugeWithAMissingPartIsMissingAndItsRestUnattributed) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].owners[1].readings.memory_used_bytes = Missing::kNoPermission;
  snapshot.gpus[0].readings.memory_used_bytes = 900 * kMib;
  const Usage usage = MakeUsage(snapshot, UsageBy::kPod);
  EXPECT_EQ(Find(usage, "ml/a")->numbers.memory_used_bytes, Reading(Missing::kNoPermission));
  EXPECT_EQ(Find(usage, "unattributed")->numbers.memory_used_bytes, Reading(500 * kMib));
  EXPECT_EQ(usage.gpus[0].sum.memory_used_bytes, usage.gpus[0].device.memory_used_bytes);
}

TEST(Usage, ByProcessWhatHasEndedIsOther) {
  Snapshot snapshot = OneGpu();
  GpuProcess& process = snapshot.gpus[0].processes.emplace_back();
  process.pid = 42;
  process.name = "python3";
  process.owner = snapshot.gpus[0].owners[0].owner;
  process.readings.sm_share_ratio = 0.85;
  process.readings.memory_used_bytes = 700 * kMib;
  process.readings.power_watts = 40;
  process.readings.energy_joules_total = 150;
  const Usage usage = MakeUsage(snapshot, UsageBy::kProcess);
  const UsageRow* const row = Find(usage, "python3 of ml/a (main)");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->pid, 42U);
  EXPECT_EQ(row->numbers.energy_joules_total, Reading(150));
  EXPECT_EQ(Find(usage, "other")->numbers.energy_joules_total, Reading(250));
  EXPECT_EQ(usage.gpus[0].sum.energy_joules_total, Reading(600));
}

TEST(Usage, TextAndJsonSayReasonsInsteadOfZero) {
  const Usage usage = MakeUsage(OneGpu(), UsageBy::kPod);
  const std::string text = UsageText(usage);
  EXPECT_TRUE(text.starts_with("GPU 0  Tesla T4  GPU-1\n  by pod")) << text;
  EXPECT_NE(text.find("not_separable"), std::string::npos) << text;
  EXPECT_NE(text.find("1000 MiB"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(UsageJson(usage));
  EXPECT_EQ(json["by"], "pod");
  EXPECT_EQ(json["gpus"][0]["rows"][0]["name"], "ml/a");  // as much as ml/b: by name
  EXPECT_EQ(json["gpus"][0]["rows"][0]["missing"]["tensor_active_seconds_total"], "not_separable");
  EXPECT_TRUE(json["gpus"][0]["rows"][0]["tensor_active_seconds_total"].is_null());
  EXPECT_EQ(UsageText(MakeUsage({}, UsageBy::kPod)), "No GPU.\n");
}

}  // namespace
}  // namespace gpuassay
