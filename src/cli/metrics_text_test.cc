#include "cli/metrics_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace gpuassay {
namespace {

TEST(MetricsTable, HasALineForEachSeries) {
  const std::string table = MetricsTable();
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(table, '\n')), AllMetrics().size() + 1);
  EXPECT_TRUE(table.starts_with("Metric  ")) << table.substr(0, 80);
  EXPECT_NE(table.find("gpuassay_gpu_clock_event_active{reason=\"power_brake\"}"),
            std::string::npos);
}

TEST(MetricsJson, TellsAllThatTheCatalogueKnows) {
  const auto list = nlohmann::ordered_json::parse(MetricsJson());
  ASSERT_EQ(list.size(), AllMetrics().size());
  EXPECT_EQ(list[0].dump(),
            R"({"name":"gpuassay_gpu_utilization_ratio","labels":"","scope":"gpu",)"
            R"("field":"utilization_ratio","family":"compute","kind":"gauge","unit":"ratio",)"
            R"("pace":"every cycle","source":"nvmlDeviceGetUtilizationRates.gpu",)"
            R"("help":"Share of the driver's last sample period in which at least one kernel was )"
            R"(resident. Says nothing about how much of the GPU worked; compare sm_active_ratio.",)"
            R"("dcgm":"DCGM_FI_DEV_GPU_UTIL"})");
}

TEST(MetricsMarkdown, IsWhatTheDocumentationShows) {
  std::ifstream in(GPUASSAY_SOURCE_DIR "/docs/metrics.md");
  const std::string shown{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(MetricsMarkdown(), shown)
      << "docs/metrics.md is old: gpuassay metrics --markdown > docs/metrics.md";
}

TEST(HelpOf, ALaterLineOfAFamilyHasTheHelpOfTheFirst) {
  const MetricInfo* metric = FindMetric("clock_event_power_brake");
  ASSERT_NE(metric, nullptr);
  EXPECT_EQ(HelpOf(*metric), "1 while this reason holds the clocks below the maximum.");
}

}  // namespace
}  // namespace gpuassay
