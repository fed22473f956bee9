#include "cli/explain_utilization.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

// M27: the numbers come out of the simulated driver, read by the client that the agent uses.
TEST(ExplainUtilization, ATinyKernelEachMillisecondReadsAsBusyAndIsAThousandthOfTheWork) {
  const auto cases = MeasureTinyKernels();
  ASSERT_TRUE(cases) << cases.error().what;
  ASSERT_EQ(cases->size(), 3u);
  const UtilizationCase& tiny = (*cases)[0];
  EXPECT_EQ(tiny.program, "tiny-kernels");
  ASSERT_TRUE(tiny.utilization_ratio);
  EXPECT_NEAR(*tiny.utilization_ratio, 0.87, 0.015);
  ASSERT_TRUE(tiny.sm_active_ratio);
  EXPECT_NEAR(*tiny.sm_active_ratio, 0.001, 0.0001);
  EXPECT_EQ(tiny.tensor_active_ratio, Reading(0.0));
  const UtilizationCase& work = (*cases)[2];
  ASSERT_TRUE(work.utilization_ratio && work.sm_active_ratio);
  EXPECT_NEAR(*work.utilization_ratio, 1, 0.01);
  EXPECT_NEAR(*work.sm_active_ratio, 0.95, 0.02);
}

TEST(ExplainUtilization, KernelsOf50And2And100MicrosecondsAreTwoActiveWindowsAnd152Microseconds) {
  const auto trace = MeasureKernelTrace();
  ASSERT_TRUE(trace) << trace.error().what;
  EXPECT_EQ(trace->kernel_seconds, (std::vector<double>{50e-6, 2e-6, 100e-6}));
  EXPECT_EQ(trace->windows, 2u);
  EXPECT_EQ(trace->windows_active, 2u);
  EXPECT_DOUBLE_EQ(trace->window_seconds, 0.166);
  EXPECT_DOUBLE_EQ(trace->busy_seconds, 0.000152);
  EXPECT_NEAR(trace->busy_ratio * 100, 0.046, 0.0005);
  ASSERT_TRUE(trace->sm_active_seconds);
  EXPECT_NEAR(*trace->sm_active_seconds, 0.000152, 1e-6);
}

TEST(ExplainUtilization, SaysTheNumbersAndWhatToLookAtInstead) {
  const auto text = ExplainUtilization();
  ASSERT_TRUE(text) << text.error().what;
  EXPECT_NE(text->find("0.152 ms of 332 ms = 0.046 %\n"), std::string::npos) << *text;
  EXPECT_NE(text->find("windows with a kernel        2 of 2"), std::string::npos) << *text;
  EXPECT_NE(text->find("gpuassay_gpu_sm_active_ratio"), std::string::npos);
  EXPECT_NE(text->find("gpuassay_gpu_tensor_active_ratio"), std::string::npos);
  EXPECT_NE(text->find("power against its limit"), std::string::npos);
}

}  // namespace
}  // namespace gpuassay
