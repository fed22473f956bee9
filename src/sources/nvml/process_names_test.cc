#include "sources/nvml/process_names.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

class ProcessNamesTest : public testing::Test {
 protected:
  ProcessNamesTest() {
    driver_.nvmlSystemGetProcessName = [](unsigned int pid, char* name, unsigned int length) {
      PutText(name, length, "p" + std::to_string(pid));
      return NVML_SUCCESS;
    };
  }
  FakeDriver driver_;
  NvmlLibrary library_ = *NvmlLibrary::FromResolver(driver_.Resolve(), "fake", nullptr);
  ProcessNames names_{library_};
};

TEST_F(ProcessNamesTest, ForgetsWhatNobodyAskedForInACycle) {
  names_.BeginCycle({});
  EXPECT_EQ(names_.Find(1), "p1");
  EXPECT_EQ(names_.Find(2), "p2");
  EXPECT_EQ(names_.Find(1), "p1");
  names_.EndCycle();
  EXPECT_EQ(names_.size(), 2U);
  names_.BeginCycle({});
  names_.Find(2);
  names_.EndCycle();
  EXPECT_EQ(names_.size(), 1U);
  EXPECT_EQ(driver_.calls["nvmlSystemGetProcessName"], 2);
}

TEST_F(ProcessNamesTest, IsBoundedAndStillAnswers) {
  names_.BeginCycle({});
  for (std::uint32_t pid = 1; pid <= ProcessNames::kNamesMax; ++pid) names_.Find(pid);
  EXPECT_EQ(names_.Find(70'000), "p70000");
  EXPECT_EQ(names_.size(), ProcessNames::kNamesMax);
}

}  // namespace
}  // namespace gpuassay
