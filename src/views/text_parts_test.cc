#include "views/text_parts.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(TextParts, SmallNumbersDoNotBecomeZero) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.00046), "0.00046");
  EXPECT_EQ(NumberText(9.99), "9.99");
  EXPECT_EQ(NumberText(12.34), "12.3");
  EXPECT_EQ(NumberText(12345.6), "12346");
}

TEST(TextParts, AMissingNumberIsItsReason) {
  EXPECT_EQ(PercentText(0.452), "45.2 %");
  EXPECT_EQ(PercentText(Missing::kNotSeparable), "not_separable");
  EXPECT_EQ(MebibytesText(Reading(1048576.0)), "1 MiB");
  EXPECT_EQ(MebibytesText(Reading(Missing::kNotSupported)), "not_supported");
  EXPECT_EQ(WattsText(320.4), "320 W");
  EXPECT_EQ(JoulesText(Missing::kNeverSampled), "never_sampled");
  EXPECT_EQ(SecondsText(1.5), "1.5 s");
}

TEST(TextParts, ColumnsAreAsWideAsTheirWidestCellInCharacters) {
  EXPECT_EQ(ColumnsText({{"a", "b"}, {"Zürich", "c", "d"}, {"x"}}, "  "),
            "  a       b\n  Zürich  c  d\n  x\n");
}

TEST(TextParts, ANameFromOutsideCannotSteerTheTerminal) {
  EXPECT_EQ(ColumnsText({{"a\x1b[2J\n"}}, ""), "a?[2J?\n");
}

TEST(TextParts, OneIsSingular) {
  EXPECT_EQ(CountText(1, "device"), "1 device");
  EXPECT_EQ(CountText(0, "device"), "0 devices");
}

}  // namespace
}  // namespace gpuassay
