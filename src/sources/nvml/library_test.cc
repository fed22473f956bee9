#include "sources/nvml/library.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

TEST(NvmlLibrary, SaysThatTheFileIsNotThere) {
  const auto library = NvmlLibrary::Open("/nowhere/libnvidia-ml.so.1", nullptr);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(library.error().what,
            "/nowhere/libnvidia-ml.so.1: not found; the NVIDIA driver brings it");
}

TEST(NvmlLibrary, SaysWhichFunctionAnotherLibraryLacks) {
  const auto library = NvmlLibrary::Open("libm.so.6", nullptr);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(library.error().what, "libm.so.6: not an NVML library: nvmlInit_v2 is missing");
}

TEST(NvmlLibrary, SaysThatATextIsNoLibrary) {
  const std::string path = testing::TempDir() + "/not-a-library.so";
  std::ofstream(path) << std::string(4096, '#');
  const auto library = NvmlLibrary::Open(path, nullptr);
  std::remove(path.c_str());
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(library.error().what, path + ": not an NVML library: invalid ELF header");
}

TEST(NvmlLibrary, ListsWhatItLacksAndAnswersForIt) {
  FakeDriver driver;
  driver.missing = {"nvmlGpmSampleGet", "nvmlDeviceGetMemoryInfo_v2"};
  auto library = NvmlLibrary::FromResolver(driver.Resolve(), "fake", nullptr);
  ASSERT_TRUE(library);
  EXPECT_EQ(library->missing(),
            (std::vector<std::string>{"nvmlDeviceGetMemoryInfo_v2", "nvmlGpmSampleGet"}));
  EXPECT_EQ(library->Call<NvmlFunction::nvmlGpmSampleGet>(0, nullptr, nullptr),
            NVML_ERROR_FUNCTION_NOT_FOUND);
}

TEST(NvmlLibrary, MarksTheCallThatIsUnderWay) {
  FakeDriver driver;
  CallWatch watch;
  auto library = NvmlLibrary::FromResolver(driver.Resolve(), "fake", &watch);
  ASSERT_TRUE(library);
  std::string during;
  std::uint32_t gpu = 0;
  driver.nvmlDeviceGetPowerUsage = [&](nvmlDevice_t, unsigned int*) {
    during = NvmlFunctionName(watch.function());
    gpu = watch.gpu();
    return NVML_SUCCESS;
  };
  library->Call<NvmlFunction::nvmlDeviceGetPowerUsage>(5, nullptr, nullptr);
  EXPECT_EQ(during, "nvmlDeviceGetPowerUsage");
  EXPECT_EQ(gpu, 5U);
  EXPECT_EQ(watch.function(), CallWatch::kIdle);
  EXPECT_EQ(watch.calls(), 1U);
  EXPECT_STREQ(NvmlFunctionName(CallWatch::kIdle), "?");
}

TEST(NvmlLibrary, GivesEachErrorItsReason) {
  EXPECT_EQ(MissingFor(3), Missing::kNotSupported);
  EXPECT_EQ(MissingFor(4), Missing::kNoPermission);
  EXPECT_EQ(MissingFor(10), Missing::kTimedOut);
  EXPECT_EQ(MissingFor(13), Missing::kDriverTooOld);
  EXPECT_EQ(MissingFor(15), Missing::kGpuLost);
  EXPECT_EQ(MissingFor(16), Missing::kResetRequired);
  EXPECT_EQ(MissingFor(18), Missing::kVersionMismatch);
  EXPECT_EQ(MissingFor(21), Missing::kNeverSampled);
  EXPECT_EQ(MissingFor(25), Missing::kDriverTooOld);
  EXPECT_EQ(MissingFor(26), Missing::kNotSupported);
  EXPECT_EQ(MissingFor(28), Missing::kGpuLost);
  EXPECT_EQ(MissingFor(999), Missing::kDriverError);
  EXPECT_EQ(NvmlErrorLine(NvmlFunction::nvmlInit_v2, 9), "nvmlInit_v2: driver not loaded (9)");
  EXPECT_EQ(NvmlErrorText(777), "unknown error (777)");
}

}  // namespace
}  // namespace gpuassay
