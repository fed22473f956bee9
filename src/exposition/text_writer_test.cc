#include "exposition/text_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace gpuassay {
namespace {

std::string Escaped(std::string_view value, std::size_t bytes_max = kLabelBytesMax) {
  std::string out;
  AppendEscaped(out, value, bytes_max);
  return out;
}

std::string Number(double value) {
  std::string out;
  AppendNumber(out, value);
  return out;
}

TEST(Escape, QuoteBackslashAndNewline) { EXPECT_EQ(Escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd"); }

TEST(Escape, KeepsValidUtf8) { EXPECT_EQ(Escaped("训练-α-🚀"), "训练-α-🚀"); }

TEST(Escape, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(Escaped("a\xFF"
                    "b"),
            "a\uFFFDb");
  EXPECT_EQ(Escaped("\xC0\xAF"), "\uFFFD\uFFFD");                      // overlong '/'
  EXPECT_EQ(Escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // surrogate
  EXPECT_EQ(Escaped("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
  EXPECT_EQ(Escaped("cut \xE8\xAE"), "cut \uFFFD\uFFFD");
}

TEST(Escape, ReplacesControlCharacters) {
  EXPECT_EQ(Escaped(std::string_view("a\r\0\x7F", 4)), "a\uFFFD\uFFFD\uFFFD");
}

TEST(Escape, CutsAtACharacterNotInsideOne) {
  EXPECT_EQ(Escaped("abcd", 4), "abcd");
  EXPECT_EQ(Escaped("abcde", 4), "abcd");
  EXPECT_EQ(Escaped("abc训", 5), "abc");
  EXPECT_EQ(Escaped("abc训", 6), "abc训");
  EXPECT_EQ(Escaped(std::string(300, 'x')).size(), kLabelBytesMax);
}

TEST(Label, IsSeparatedFromTheOneBefore) {
  std::string labels;
  AppendLabel(labels, "gpu", std::uint64_t{3});
  AppendLabel(labels, "uuid", "GPU-x");
  EXPECT_EQ(labels, R"(gpu="3",uuid="GPU-x")");
}

TEST(Numbers, WholeOnesInFullAndOthersAsShortAsTheyReadBack) {
  EXPECT_EQ(Number(0), "0");
  EXPECT_EQ(Number(-0.0), "0");
  EXPECT_EQ(Number(1980000000), "1980000000");
  EXPECT_EQ(Number(999999999999999), "999999999999999");
  EXPECT_EQ(Number(1e15), "1e+15");
  EXPECT_EQ(Number(0.1), "0.1");
  EXPECT_EQ(Number(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(Number(-2.5), "-2.5");
}

std::string Render(TextFormat format, std::string_view name, MetricType type, std::string_view unit,
                   std::string_view help, double value) {
  std::string out;
  TextWriter writer(format, out);
  writer.Family(name, type, unit, help);
  writer.Sample("a=\"1\"", "b=\"2\"", value);
  return out;
}

TEST(Writer, PrometheusText) {
  EXPECT_EQ(Render(TextFormat::kPrometheus, "x_seconds_total", MetricType::kCounter, "seconds",
                   "Say \"hi\" \\ \n.", 1.5),
            "# HELP x_seconds_total Say \"hi\" \\\\ \\n.\n"
            "# TYPE x_seconds_total counter\n"
            "x_seconds_total{a=\"1\",b=\"2\"} 1.5\n");
}

TEST(Writer, OpenMetricsNamesTheFamilyWithoutTotalAndTellsTheUnit) {
  EXPECT_EQ(Render(TextFormat::kOpenMetrics, "x_seconds_total", MetricType::kCounter, "seconds",
                   "Say \"hi\".", 1.5),
            "# HELP x_seconds Say \\\"hi\\\".\n"
            "# TYPE x_seconds counter\n"
            "# UNIT x_seconds seconds\n"
            "x_seconds_total{a=\"1\",b=\"2\"} 1.5\n");
}

TEST(Writer, OpenMetricsTellsNoUnitThatTheNameDoesNotEndIn) {
  EXPECT_EQ(Render(TextFormat::kOpenMetrics, "xseconds", MetricType::kGauge, "seconds", "H", 1),
            "# HELP xseconds H\n# TYPE xseconds gauge\nxseconds{a=\"1\",b=\"2\"} 1\n");
}

TEST(Writer, OpenMetricsHasNoCounterWithoutTotal) {
  EXPECT_EQ(Render(TextFormat::kOpenMetrics, "DCGM_X", MetricType::kCounter, "", "H", 1),
            "# HELP DCGM_X H\n# TYPE DCGM_X unknown\nDCGM_X{a=\"1\",b=\"2\"} 1\n");
}

TEST(Writer, AnInfoIsAGaugeInPrometheusText) {
  EXPECT_EQ(Render(TextFormat::kPrometheus, "x_info", MetricType::kInfo, "", "H", 1),
            "# HELP x_info H\n# TYPE x_info gauge\nx_info{a=\"1\",b=\"2\"} 1\n");
  EXPECT_EQ(Render(TextFormat::kOpenMetrics, "x_info", MetricType::kInfo, "", "H", 1),
            "# HELP x H\n# TYPE x info\nx_info{a=\"1\",b=\"2\"} 1\n");
}

TEST(Writer, AFamilyWithoutSamplesLeavesNoTrace) {
  std::string out;
  TextWriter writer(TextFormat::kPrometheus, out);
  writer.Family("x", MetricType::kGauge, "", "H");
  writer.Sample("", "", std::numeric_limits<double>::quiet_NaN());
  writer.Sample("", "", std::numeric_limits<double>::infinity());
  EXPECT_EQ(out, "");
  writer.Family("y", MetricType::kGauge, "", "H");
  writer.Sample("", "", 1);
  EXPECT_EQ(out, "# HELP y H\n# TYPE y gauge\ny 1\n");
}

}  // namespace
}  // namespace gpuassay
