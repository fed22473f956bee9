#include "model/catalogue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace gpuassay {
namespace {

TEST(Catalogue, MembersStandInTheOrderOfTheirMetrics) {
  GpuReadings readings;
  readings.sm_active_ratio = 0.25;
  const auto metrics = MetricsOf(MetricScope::kGpu);
  const auto members = Members(&readings);
  ASSERT_EQ(metrics.size(), members.size());
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ((readings.*members[i]).has_value(), metrics[i].field == "sm_active_ratio")
        << metrics[i].field;
  }
}

TEST(Catalogue, EveryScopeHasItsMetrics) {
  std::size_t sum = 0;
  for (const MetricScope scope :
       {MetricScope::kGpu, MetricScope::kLink, MetricScope::kMig, MetricScope::kProcess,
        MetricScope::kSource, MetricScope::kOwner}) {
    for (const MetricInfo& metric : MetricsOf(scope)) EXPECT_EQ(metric.scope, scope);
    sum += MetricsOf(scope).size();
  }
  EXPECT_EQ(sum, AllMetrics().size());
  EXPECT_EQ(MetricsOf(MetricScope::kLink).front().name, "gpuassay_nvlink_active");
  EXPECT_EQ(MetricsOf(MetricScope::kSource).front().name, "gpuassay_source_up");
  EXPECT_EQ(MetricsOf(MetricScope::kOwner).front().name, "gpuassay_owner_processes");
}

TEST(Catalogue, NamesFollowTheRulesOfPrometheus) {
  for (const MetricInfo& metric : AllMetrics()) {
    EXPECT_TRUE(metric.name.starts_with("gpuassay_")) << metric.name;
    EXPECT_EQ(metric.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string_view::npos)
        << metric.name;
    EXPECT_EQ(metric.kind == MetricKind::kCounter, metric.name.ends_with("_total")) << metric.name;
    EXPECT_FALSE(metric.source.empty()) << metric.name;
  }
}

TEST(Catalogue, TheUnitIsInTheFieldsName) {
  const std::map<MetricUnit, std::string> words = {
      {MetricUnit::kRatio, "ratio"},     {MetricUnit::kBytes, "bytes"},
      {MetricUnit::kWatts, "watts"},     {MetricUnit::kBytesPerSecond, "bytes_per_second"},
      {MetricUnit::kJoules, "joules"},   {MetricUnit::kHertz, "hertz"},
      {MetricUnit::kSeconds, "seconds"}, {MetricUnit::kCelsius, "celsius"}};
  for (const MetricInfo& metric : AllMetrics()) {
    const auto word = words.find(metric.unit);
    if (word == words.end()) continue;
    EXPECT_NE(metric.field.find(word->second), std::string_view::npos) << metric.field;
    EXPECT_NE(metric.name.find(word->second), std::string_view::npos) << metric.name;
  }
}

// One family: one help, one kind, one unit, lines beside each other, told apart by their labels.
TEST(Catalogue, LinesOfOneFamilyStandTogether) {
  std::set<std::string_view> seen;
  std::set<std::string> series;
  const MetricInfo* first = nullptr;
  for (const MetricInfo& metric : AllMetrics()) {
    const bool same = first != nullptr && first->name == metric.name;
    EXPECT_EQ(metric.help.empty(), same) << metric.field;
    if (same) {
      EXPECT_EQ(metric.kind, first->kind) << metric.field;
      EXPECT_EQ(metric.unit, first->unit) << metric.field;
    } else {
      EXPECT_TRUE(seen.insert(metric.name).second) << metric.name << " is in two places";
      first = &metric;
    }
    EXPECT_TRUE(series.insert(std::string(metric.name) + std::string(metric.labels)).second)
        << metric.field;
  }
}

TEST(Catalogue, FindsByMetricNameAndByField) {
  ASSERT_NE(FindMetric("gpuassay_gpu_power_watts"), nullptr);
  EXPECT_EQ(FindMetric("gpuassay_gpu_power_watts")->field, "power_watts");
  ASSERT_NE(FindMetric("power_watts"), nullptr);
  EXPECT_EQ(FindMetric("power_watts")->name, "gpuassay_gpu_power_watts");
  EXPECT_EQ(FindMetric("gpuassay_gpu_power"), nullptr);
  EXPECT_EQ(FindMetric(""), nullptr);
}

TEST(Catalogue, SetsAllReadingsOfAStructMissing) {
  LinkReadings readings;
  readings.active = 1.0;
  SetAllMissing(readings, Missing::kGpuLost);
  EXPECT_EQ(readings.active, Reading(Missing::kGpuLost));
  EXPECT_EQ(readings.crc_errors_total, Reading(Missing::kGpuLost));
}

TEST(Catalogue, EnumsHaveTextsForTablesAndDocs) {
  EXPECT_EQ(ScopeName(MetricScope::kProcess), "process");
  EXPECT_EQ(ScopeName(MetricScope::kOwner), "owner");
  EXPECT_EQ(FamilyName(MetricFamily::kInterconnect), "interconnect");
  EXPECT_EQ(KindName(MetricKind::kCounter), "counter");
  EXPECT_EQ(PaceName(MetricPace::kDerived), "derived");
  EXPECT_EQ(UnitName(MetricUnit::kTimestamp), "seconds since 1970");
}

}  // namespace
}  // namespace gpuassay
