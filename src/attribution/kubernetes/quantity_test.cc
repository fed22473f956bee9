#include "attribution/kubernetes/quantity.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(ParseQuantity, ReadsEverySuffixExactly) {
  EXPECT_EQ(ParseQuantity("1"), 1.0);
  EXPECT_EQ(ParseQuantity("8192"), 8192.0);
  EXPECT_EQ(ParseQuantity("8Gi"), 8589934592.0);
  EXPECT_EQ(ParseQuantity("1k"), 1000.0);
  EXPECT_EQ(ParseQuantity("3000M"), 3000000000.0);
  EXPECT_EQ(ParseQuantity("500m"), 0.5);
  EXPECT_EQ(ParseQuantity("3m"), 0.003);
  EXPECT_EQ(ParseQuantity("0.5"), 0.5);
  EXPECT_EQ(ParseQuantity("12e3"), 12000.0);
  EXPECT_EQ(ParseQuantity("1E3"), 1000.0);
  EXPECT_EQ(ParseQuantity("1E"), 1e18);
  EXPECT_EQ(ParseQuantity("1Ei"), 1152921504606846976.0);
  EXPECT_EQ(ParseQuantity("+2"), 2.0);
  EXPECT_EQ(ParseQuantity("0"), 0.0);
}

TEST(ParseQuantity, RefusesWhatIsNone) {
  for (const char* text : {"", "-1", "x", "1x", "1 ", " 1", "Gi", "1GiB", "1K", "e3", "1e", "1e999",
                           "nan", "inf", "1.2.3", "--1", "0x10", "+"}) {
    EXPECT_EQ(ParseQuantity(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseQuantity(std::string(65, '0')), std::nullopt);
}

}  // namespace
}  // namespace gpuassay
