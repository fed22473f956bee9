#include "web/accept.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuassay {
namespace {

constexpr TextFormat kText = TextFormat::kPrometheus;
constexpr TextFormat kOpen = TextFormat::kOpenMetrics;

TEST(Accept, NothingAskedIsText) {
  EXPECT_EQ(ChooseFormat(""), kText);
  EXPECT_EQ(ChooseFormat("*/*"), kText);
  EXPECT_EQ(ChooseFormat("text/html,application/xhtml+xml,*/*;q=0.8"), kText);
}

TEST(Accept, WhatPrometheus2AsksFor) {
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;version=1.0.0,"
                         "application/openmetrics-text;version=0.0.1;q=0.75,"
                         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            kOpen);
}

TEST(Accept, WhatPrometheus3AsksFor) {
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                         "application/openmetrics-text;version=0.0.1;q=0.5,"
                         "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
                         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
            kOpen);
}

TEST(Accept, AnOldPrometheusGetsText) {
  EXPECT_EQ(ChooseFormat("application/openmetrics-text; version=0.0.1,"
                         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            kText);
}

TEST(Accept, TheWeightDecides) {
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;q=0.4, text/plain;q=0.5"), kText);
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;q=0.5, text/plain;q=0.5"), kOpen);
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;q=0.6, text/plain;q=0.5"), kOpen);
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;q=0, */*"), kText);
}

TEST(Accept, TheMostSpecificRangeSaysHowMuchTextIsWanted) {
  EXPECT_EQ(ChooseFormat("text/plain;q=0.2, */*, application/openmetrics-text;q=0.5"), kOpen);
  EXPECT_EQ(ChooseFormat("*/*;q=0.9, application/openmetrics-text;q=0.5"), kText);
}

TEST(Accept, LettersSpacesAndQuotesDoNotMatter) {
  EXPECT_EQ(ChooseFormat(" Application/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=1 "), kOpen);
}

TEST(Accept, NonsenseIsText) {
  EXPECT_EQ(ChooseFormat(",,;;==\"\\"), kText);
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;q=lots"), kText);
  EXPECT_EQ(ChooseFormat("application/openmetrics-text;q=7"), kText);
  EXPECT_EQ(ChooseFormat(std::string(100'000, ',')), kText);
}

}  // namespace
}  // namespace gpuassay
