#include <gtest/gtest.h>

#include <array>
#include <string>

#include "exposition/exposition.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Snapshot WithSource() {
  Snapshot snapshot;
  snapshot.node.hostname = "node1";
  SourceStatus source;
  source.name = "nvml";
  source.last_success = WallTime(seconds(1'700'000'000));
  source.readings.up = 1;
  source.readings.reads_total = 12;
  snapshot.sources = {source};
  return snapshot;
}

TEST(LiveMetrics, TellHowOldTheNumbersAre) {
  EXPECT_EQ(RenderLiveMetrics(WithSource(), WallTime(milliseconds(1'700'000'002'500)),
                              TextFormat::kPrometheus),
            "# HELP gpuassay_source_up 1 when the last reading of this source succeeded.\n"
            "# TYPE gpuassay_source_up gauge\n"
            "gpuassay_source_up{source=\"nvml\",hostname=\"node1\"} 1\n"
            "# HELP gpuassay_source_reads_total Readings tried.\n"
            "# TYPE gpuassay_source_reads_total counter\n"
            "gpuassay_source_reads_total{source=\"nvml\",hostname=\"node1\"} 12\n"
            "# HELP gpuassay_source_age_seconds Time since this source was last read with success: "
            "how old its numbers are. Absent before the first success.\n"
            "# TYPE gpuassay_source_age_seconds gauge\n"
            "gpuassay_source_age_seconds{source=\"nvml\",hostname=\"node1\"} 2.5\n"
            "# HELP gpuassay_source_last_success_timestamp_seconds When this source was last read "
            "with success.\n"
            "# TYPE gpuassay_source_last_success_timestamp_seconds gauge\n"
            "gpuassay_source_last_success_timestamp_seconds{source=\"nvml\",hostname=\"node1\"} "
            "1700000000\n");
}

TEST(LiveMetrics, NoAgeBeforeTheFirstSuccess) {
  Snapshot snapshot = WithSource();
  snapshot.sources[0].last_success.reset();
  snapshot.sources[0].readings.up = 0;
  const std::string text =
      RenderLiveMetrics(snapshot, WallTime(seconds(1'700'000'000)), TextFormat::kPrometheus);
  EXPECT_EQ(text.find("age"), std::string::npos);
  EXPECT_NE(text.find("gpuassay_source_up{source=\"nvml\",hostname=\"node1\"} 0\n"),
            std::string::npos);
}

TEST(LiveMetrics, AgeIsNeverNegative) {
  const std::string text =
      RenderLiveMetrics(WithSource(), WallTime(seconds(1'600'000'000)), TextFormat::kPrometheus);
  EXPECT_NE(text.find("gpuassay_source_age_seconds{source=\"nvml\",hostname=\"node1\"} 0\n"),
            std::string::npos);
}

TEST(LiveMetrics, EndOfOpenMetrics) {
  const std::string text = RenderLiveMetrics(Snapshot(), WallTime(), TextFormat::kOpenMetrics);
  EXPECT_EQ(text, "# EOF\n");
}

TEST(LiveMetrics, ReadinessRequestsAndOwnUse) {
  const std::array<RequestCount, 2> requests = {
      RequestCount{.path = "/metrics", .code = 200, .count = 7},
      RequestCount{.path = "other", .code = 404, .count = 1}};
  const LiveDetails details{.ready = false,
                            .usage = ProcessUsage{.cpu_seconds = 1.25,
                                                  .resident_bytes = 8192,
                                                  .start_time_seconds = 1'700'000'000.5},
                            .requests = requests};
  EXPECT_EQ(RenderLiveMetrics(Snapshot(), WallTime(), TextFormat::kPrometheus, details),
            "# HELP gpuassay_ready 1 while every source is fresh, as /readyz tells.\n"
            "# TYPE gpuassay_ready gauge\n"
            "gpuassay_ready 0\n"
            "# HELP gpuassay_http_requests_total Requests answered, by path and status code.\n"
            "# TYPE gpuassay_http_requests_total counter\n"
            "gpuassay_http_requests_total{path=\"/metrics\",code=\"200\"} 7\n"
            "gpuassay_http_requests_total{path=\"other\",code=\"404\"} 1\n"
            "# HELP process_cpu_seconds_total CPU time of the serving process.\n"
            "# TYPE process_cpu_seconds_total counter\n"
            "process_cpu_seconds_total 1.25\n"
            "# HELP process_resident_memory_bytes Resident memory of the serving process.\n"
            "# TYPE process_resident_memory_bytes gauge\n"
            "process_resident_memory_bytes 8192\n"
            "# HELP process_start_time_seconds When the serving process was started, since 1970.\n"
            "# TYPE process_start_time_seconds gauge\n"
            "process_start_time_seconds 1700000000.5\n");
}

// proc(5): pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime
// stime cutime cstime priority nice threads itrealvalue starttime vsize rss
constexpr std::string_view kSelfStat =
    "42 (a) b (c) S 1 42 42 0 -1 4194304 10 0 0 0 150 50 0 0 20 0 3 0 200 1000000 300 18446744 1";
constexpr std::string_view kStat = "cpu 1 2 3\nbtime 1700000000\nprocesses 9\n";

TEST(ProcessUsage, IsReadFromProc) {
  const Result<ProcessUsage> usage = ParseProcessUsage(kSelfStat, kStat, 100, 4096);
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->cpu_seconds, 2.0);
  EXPECT_EQ(usage->resident_bytes, 300.0 * 4096);
  EXPECT_EQ(usage->start_time_seconds, 1'700'000'002.0);
}

TEST(ProcessUsage, SaysWhatIsWrongWithBadInput) {
  EXPECT_EQ(ParseProcessUsage("", kStat, 100, 4096).error().what, "self/stat: no name in brackets");
  EXPECT_EQ(ParseProcessUsage("42 (a) S 1", kStat, 100, 4096).error().what,
            "self/stat: too few numbers");
  EXPECT_EQ(ParseProcessUsage(kSelfStat, "cpu 1\n", 100, 4096).error().what, "stat: no btime");
}

TEST(ProcessUsage, OfThisProcessIsPlausible) {
  const Result<RootFs> root = RootFs::Open("/");
  ASSERT_TRUE(root.has_value());
  const Result<ProcessUsage> usage = ReadProcessUsage(*root);
  ASSERT_TRUE(usage.has_value()) << usage.error().what;
  EXPECT_GT(usage->resident_bytes, 100'000.0);
  EXPECT_GT(usage->start_time_seconds, 1'600'000'000.0);
}

}  // namespace
}  // namespace gpuassay
