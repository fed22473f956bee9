#include "sim/driver/core.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/driver/test_driver.h"

namespace gpuassay::sim {
namespace {

TEST(DriverCore, ReadsPciAddressesInEveryForm) {
  EXPECT_EQ(ParsePciAddress("00000000:1B:00.0"), (PciAddress{0, 0x1B, 0}));
  EXPECT_EQ(ParsePciAddress("0001:af:1f.0"), (PciAddress{1, 0xAF, 0x1F}));
  EXPECT_EQ(ParsePciAddress("af:00"), (PciAddress{0, 0xAF, 0}));
  for (const char* bad : {"", "af", "af:00.1", "x:00:00.0", "1:2:3:4.0", "1::3.0"}) {
    EXPECT_EQ(ParsePciAddress(bad), std::nullopt) << bad;
  }
}

TEST(DriverCore, TheTickIsTheLastThatHasEnded) {
  for (std::uint64_t tick : {0U, 1U, 2U, 3U, 6U, 7U, 1000001U}) {
    EXPECT_EQ(TickAt(TickTime(tick)), tick);
    EXPECT_EQ(TickAt(TickTime(tick + 1) - Duration(1)), tick);
  }
  EXPECT_EQ(TickAt(Duration(-5)), 0U);
}

TEST(DriverCore, TextsNeedRoomForTheirEnd) {
  char out[4] = {'x', 'x', 'x', 'x'};
  EXPECT_EQ(GiveText("abcd", out, 4), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(out[0], 'x');
  EXPECT_EQ(GiveText("abc", out, 4), NVML_SUCCESS);
  EXPECT_STREQ(out, "abc");
  CopyText("wxyz", out);
  EXPECT_STREQ(out, "wxy");
}

TEST(DriverCore, NumbersAreRoundedAndNeverNegative) {
  EXPECT_EQ(Rounded(1.5), 2U);
  EXPECT_EQ(Rounded(1.4), 1U);
  EXPECT_EQ(Rounded(-3), 0U);
  EXPECT_EQ(Rounded(std::nan("")), 0U);
}

TEST(DriverCore, HandlesOfManyLayoutsAreReusedInTheEnd) {
  TestDriver driver(R"(
gpus: [{model: a100-sxm4-80gb, mig: [1g.10gb]}]
)");
  const std::scoped_lock lock(DriverMutex());
  Driver& state = *InstalledDriver();
  MigState mig = state.Gpu(0).mig[0];
  nvmlDevice_t first = state.MigHandle(state.Gpu(0), mig);
  EXPECT_EQ(state.MigHandle(state.Gpu(0), mig), first);
  for (mig.generation = 2; mig.generation < 10'000; ++mig.generation) {
    EXPECT_NE(state.FindHandle(state.MigHandle(state.Gpu(0), mig)), nullptr);
  }
  EXPECT_LE(state.handles.size(), 4096U);
}

}  // namespace
}  // namespace gpuassay::sim
