// Not tests: what the tests of this folder share (see test_driver.h).
#include <gtest/gtest.h>

#include "sim/driver/test_driver.h"

namespace gpuassay::sim {
namespace {

constexpr WallTime kStart{std::chrono::seconds(1'700'000'000)};

}  // namespace

TestDriver::TestDriver(std::string_view yaml, bool initialize)
    : clock_(kStart), time_(MakeVirtualTime(clock_)) {
  Result<Scenario> scenario = ParseScenario(yaml, "test.yaml");
  if (!scenario) {
    ADD_FAILURE() << scenario.error().what;
    std::abort();
  }
  Install(Engine(std::move(*scenario)), *time_);
  if (initialize) {
    EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  }
}

TestDriver::~TestDriver() { Uninstall(); }

nvmlDevice_t TestDriver::Gpu(unsigned int index) const {
  nvmlDevice_t handle = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &handle), NVML_SUCCESS);
  return handle;
}

nvmlDevice_t TestDriver::Mig(unsigned int gpu, unsigned int index) const {
  nvmlDevice_t handle = nullptr;
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(Gpu(gpu), index, &handle), NVML_SUCCESS);
  return handle;
}

}  // namespace gpuassay::sim
