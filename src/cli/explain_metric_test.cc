#include "cli/explain_metric.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace gpuassay {
namespace {

TEST(ExplainMetric, TellsUnitKindSourceAndWhatIsRelated) {
  const auto text = ExplainMetric("gpuassay_gpu_power_limit_watts");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, R"(gpuassay_gpu_power_limit_watts
  Power limit in force: the lowest of all limiters.
  unit      watts
  kind      gauge, per gpu, power
  field     power_limit_watts
  read      every minute
  from      nvmlDeviceGetEnforcedPowerLimit
  DCGM      DCGM_FI_DEV_ENFORCED_POWER_LIMIT (W, dcgm-exporter 4.8);
            DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS (W, 4.9)
)");
}

TEST(ExplainMetric, AFieldIsExplainedInEachScope) {
  const auto text = ExplainMetric("memory_used_bytes");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("gpuassay_gpu_memory_used_bytes\n"), std::string::npos);
  EXPECT_NE(text->find("gpuassay_mig_memory_used_bytes\n"), std::string::npos);
  EXPECT_NE(text->find("gpuassay_process_memory_used_bytes\n"), std::string::npos);
}

TEST(ExplainMetric, AFamilyTellsItsSeriesAndAFieldOnlyItsOwn) {
  const auto family = ExplainMetric("gpuassay_gpu_remapped_rows");
  ASSERT_TRUE(family);
  EXPECT_NE(family->find("{cause=\"correctable\"}"), std::string::npos);
  EXPECT_NE(family->find("{cause=\"uncorrectable\"}"), std::string::npos);
  const auto field = ExplainMetric("remapped_rows_correctable");
  ASSERT_TRUE(field);
  EXPECT_EQ(field->find("{cause=\"uncorrectable\"}"), std::string::npos);
}

TEST(ExplainMetric, PointsFromAGaugeToItsCounterAndBack) {
  EXPECT_NE(ExplainMetric("sm_active_ratio")->find("gpuassay_gpu_sm_active_seconds_total"),
            std::string::npos);
  EXPECT_NE(ExplainMetric("sm_active_seconds_total")->find("gpuassay_gpu_sm_active_ratio"),
            std::string::npos);
}

TEST(ExplainMetric, ADcgmNameLeadsToOurs) {
  const auto text = ExplainMetric("DCGM_FI_DEV_FB_FREE");
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("DCGM_FI_DEV_FB_FREE\n")) << *text;
  EXPECT_NE(text->find("(MiB, dcgm-exporter 4.8)"), std::string::npos) << *text;
  EXPECT_NE(text->find("\ngpuassay_gpu_memory_free_bytes\n"), std::string::npos) << *text;
}

TEST(ExplainMetric, AnUnknownNameIsBadInputWithTheNearestNames) {
  const auto text = ExplainMetric("sm_activ_ratio");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(text.error().what,
            "sm_activ_ratio: no metric, field or DCGM name; the nearest are sm_active_ratio, "
            "dram_active_ratio, fp16_active_ratio (or ask for util or missing)");
}

// A name that many web pages have and no exporter prints.
TEST(NearestNames, LeadFromAWrongDcgmNameToTheRightOne) {
  EXPECT_EQ(NearestNames("DCGM_FI_DEV_GPUUTIL", 1),
            std::vector<std::string>{"DCGM_FI_DEV_GPU_UTIL"});
  EXPECT_EQ(NearestNames("DCGM_FI_DEV_FB_used", 1),
            std::vector<std::string>{"DCGM_FI_DEV_FB_USED"});
}

TEST(NearestNames, TakeAnyText) {
  EXPECT_EQ(NearestNames(std::string(100000, 'x'), 3).size(), 3u);
  EXPECT_EQ(NearestNames("", 2).size(), 2u);
}

TEST(ExplainMissing, GroupsFieldsByReasonAndGpus) {
  Snapshot snapshot;
  for (std::uint32_t index = 0; index < 3; ++index) {
    Gpu& gpu = snapshot.gpus.emplace_back();
    gpu.identity.index = index;
    ForEachReading(gpu.readings, [](Reading& reading) { reading = 1.0; });
    gpu.readings.fan_speed_ratio = Missing::kNotSupported;
  }
  snapshot.gpus[1].readings.tensor_active_ratio = Missing::kDriverTooOld;
  NvLink& link = snapshot.gpus[2].links.emplace_back();
  ForEachReading(link.readings, [](Reading& reading) { reading = 1.0; });
  link.readings.crc_errors_total = Missing::kNotSupported;
  snapshot.capabilities_missing = {"nvmlGpmSampleGet", "nvmlGpmMetricsGet"};
  EXPECT_EQ(ExplainMissing(snapshot), R"(not_supported
  this GPU model, or its present mode (for example MIG), does not have it.
    GPU 0-2: fan_speed_ratio
    GPU 2: nvlink.crc_errors_total

driver_too_old
  the installed driver lacks it; a newer driver may have it.
    GPU 1: tensor_active_ratio

Functions that the installed driver library lacks
  nvmlGpmSampleGet, nvmlGpmMetricsGet
)");
}

TEST(ExplainMissing, AnXidThatNeverCameIsNotMissing) {
  Snapshot snapshot;
  Gpu& gpu = snapshot.gpus.emplace_back();
  ForEachReading(gpu.readings, [](Reading& reading) { reading = 1.0; });
  gpu.readings.last_xid = Missing::kNeverSampled;
  gpu.readings.last_xid_timestamp_seconds = Missing::kNeverSampled;
  EXPECT_EQ(ExplainMissing(snapshot), "Nothing is missing.\n");
  EXPECT_EQ(ExplainMissing(Snapshot{}), "There are no GPUs.\n");
}

}  // namespace
}  // namespace gpuassay
