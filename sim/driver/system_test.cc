#include <gtest/gtest.h>

#include <cstring>

#include "sim/driver/test_driver.h"

namespace gpuassay::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kTwoGpus = R"(
noise: 0
gpus:
  - {model: h100-sxm5-80gb, uuid: GPU-aaaaaaaa-0000-0000-0000-000000000000,
     pci_bus_id: "00000000:1B:00.0"}
  - {model: t4, uuid: GPU-bbbbbbbb-0000-0000-0000-000000000000, pci_bus_id: "00000000:3D:00.0"}
)";

TEST(DriverSystem, NothingWorksBeforeInitAndAfterTheLastShutdown) {
  const TestDriver driver(kTwoGpus, false);
  unsigned int count = 99;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(nvmlInitWithFlags(0), NVML_SUCCESS);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
}

TEST(DriverSystem, WithoutADriverInitSaysSo) {
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_STREQ(nvmlErrorString(9), "Driver Not Loaded");
}

TEST(DriverSystem, BadArgumentsAreRefused) {
  const TestDriver driver(kTwoGpus);
  nvmlDevice_t device = nullptr;
  unsigned int value = 0;
  char text[8];
  EXPECT_EQ(nvmlDeviceGetCount_v2(nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &device), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(nullptr, &value), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(driver.Gpu(0), nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(reinterpret_cast<nvmlDevice_t>(&value), &value),
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetName(driver.Gpu(0), text, sizeof(text)), NVML_ERROR_INSUFFICIENT_SIZE);
}

TEST(DriverSystem, HandlesOfAnEarlierDriverAreDead) {
  nvmlDevice_t old = nullptr;
  {
    const TestDriver driver(kTwoGpus);
    old = driver.Gpu(0);
  }
  const TestDriver driver(kTwoGpus);
  unsigned int value = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(old, &value), NVML_ERROR_INVALID_ARGUMENT);
}

TEST(DriverSystem, FindsGpusByUuidAndByEveryFormOfThePciAddress) {
  const TestDriver driver(kTwoGpus);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-bbbbbbbb-0000-0000-0000-000000000000", &device),
            NVML_SUCCESS);
  EXPECT_EQ(device, driver.Gpu(1));
  for (const char* address : {"00000000:3D:00.0", "0000:3d:00.0", "3D:00.0", "0:3d:0"}) {
    device = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(address, &device), NVML_SUCCESS) << address;
    EXPECT_EQ(device, driver.Gpu(1)) << address;
  }
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:3E:00.0", &device), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("3D", &device), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-none", &device), NVML_ERROR_NOT_FOUND);
}

TEST(DriverSystem, TellsVersionsAndPciInfoAsTheRealOneWritesThem) {
  const TestDriver driver(kTwoGpus);
  char text[80];
  EXPECT_EQ(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
  EXPECT_STREQ(text, "570.86.15");
  EXPECT_EQ(nvmlSystemGetNVMLVersion(text, sizeof(text)), NVML_SUCCESS);
  EXPECT_STREQ(text, "12.570.86.15");
  int cuda = 0;
  EXPECT_EQ(nvmlSystemGetCudaDriverVersion_v2(&cuda), NVML_SUCCESS);
  EXPECT_EQ(cuda, 12080);
  nvmlPciInfo_t pci;
  EXPECT_EQ(nvmlDeviceGetPciInfo_v3(driver.Gpu(0), &pci), NVML_SUCCESS);
  EXPECT_STREQ(pci.busId, "00000000:1B:00.0");
  EXPECT_STREQ(pci.busIdLegacy, "0000:1B:00.0");
  EXPECT_EQ(pci.bus, 0x1BU);
  EXPECT_EQ(pci.pciDeviceId, 0x233010DEU);
}

TEST(DriverSystem, AnOldDriverLacksNewFunctions) {
  const TestDriver driver(R"(
driver: 450.80.02
gpus:
  - {model: v100-sxm2-32gb}
)");
  EXPECT_EQ(Resolve("nvmlDeviceGetMemoryInfo_v2"), nullptr);
  EXPECT_EQ(Resolve("nvmlGpmSampleGet"), nullptr);
  EXPECT_NE(Resolve("nvmlDeviceGetMemoryInfo"), nullptr);
  EXPECT_NE(Resolve("nvmlDeviceGetMigMode"), nullptr);
  EXPECT_EQ(Resolve("nvmlDeviceGetNothing"), nullptr);
  nvmlMemory_v2_t memory = {};
  memory.version = NVML_STRUCT_VERSION_OF(nvmlMemory_v2_t, 2U);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(driver.Gpu(0), &memory), NVML_ERROR_FUNCTION_NOT_FOUND);
}

TEST(DriverSystem, EveryFunctionIsResolvedByItsName) {
  EXPECT_EQ(Resolve("nvmlDeviceGetName"), reinterpret_cast<void*>(&nvmlDeviceGetName));
  EXPECT_EQ(Resolve("nvmlErrorString"), reinterpret_cast<void*>(&nvmlErrorString));
  EXPECT_EQ(IntroducedIn("nvmlDeviceGetMemoryInfo_v2"), 510U);
  EXPECT_EQ(IntroducedIn("nvmlDeviceGetNothing"), std::nullopt);
}

TEST(DriverFaults, ALostGpuIsLostAloneAndStaysCounted) {
  TestDriver driver(R"(
gpus:
  - {model: a100-sxm4-80gb, count: 2}
faults:
  - {kind: gpu_lost, at: 10s, gpu: 1}
)");
  nvmlDevice_t second = driver.Gpu(1);
  unsigned int value = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(second, &value), NVML_SUCCESS);
  driver.AdvanceTo(seconds(11));
  char uuid[96];
  EXPECT_EQ(nvmlDeviceGetPowerUsage(second, &value), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(nvmlDeviceGetUUID(second, uuid, sizeof(uuid)), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(driver.Gpu(0), &value), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&value), NVML_SUCCESS);
  EXPECT_EQ(value, 2U);
  // Who knew it gets its handle, who comes later does not.
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &second), NVML_SUCCESS);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &second), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &second), NVML_SUCCESS);
}

TEST(DriverFaults, AGpuThatNeedsAResetSaysSoAndStillTellsWhatItIs) {
  TestDriver driver(R"(
gpus:
  - {model: a100-sxm4-80gb}
faults:
  - {kind: reset_required, at: 10s, gpu: 0}
)");
  driver.AdvanceTo(seconds(11));
  unsigned int value = 0;
  char name[96];
  EXPECT_EQ(nvmlDeviceGetPowerUsage(driver.Gpu(0), &value), NVML_ERROR_RESET_REQUIRED);
  EXPECT_EQ(nvmlDeviceGetName(driver.Gpu(0), name, sizeof(name)), NVML_SUCCESS);
  nvmlFieldValue_t fields[2] = {};
  fields[0].fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  fields[1].fieldId = NVML_FI_DEV_POWER_INSTANT;
  EXPECT_EQ(nvmlDeviceGetFieldValues(driver.Gpu(0), 2, fields), NVML_SUCCESS);
  EXPECT_EQ(fields[0].nvmlReturn, NVML_SUCCESS);
  EXPECT_EQ(fields[0].value.uiVal, 1U);
  EXPECT_EQ(fields[1].nvmlReturn, NVML_ERROR_RESET_REQUIRED);
}

TEST(DriverFaults, AnUpgradeUnderARunningClientMismatchesUntilItStartsAnew) {
  TestDriver driver(R"(
gpus:
  - {model: a100-sxm4-80gb}
faults:
  - {kind: version_mismatch, at: 20s}
)");
  nvmlDevice_t device = driver.Gpu(0);
  driver.AdvanceTo(seconds(21));
  unsigned int value = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(device, &value), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(device, &value), NVML_SUCCESS);
}

TEST(DriverFaults, OnlyTheNamedFunctionsAreDenied) {
  TestDriver driver(R"(
gpus:
  - {model: a100-sxm4-80gb}
faults:
  - {kind: permission_denied, at: 5s, functions: [nvmlDeviceGetPowerUsage]}
)");
  unsigned int value = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(driver.Gpu(0), &value), NVML_SUCCESS);
  driver.AdvanceTo(seconds(6));
  EXPECT_EQ(nvmlDeviceGetPowerUsage(driver.Gpu(0), &value), NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(nvmlDeviceGetTemperature(driver.Gpu(0), 0, &value), NVML_SUCCESS);
}

TEST(DriverFaults, AHangHoldsEveryCallUntilItEnds) {
  TestDriver driver(R"(
gpus:
  - {model: a100-sxm4-80gb}
faults:
  - {kind: driver_hang, at: 20s, for: 10s}
)");
  driver.AdvanceTo(seconds(22));
  unsigned int value = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&value), NVML_SUCCESS);
  EXPECT_EQ(driver.Now(), seconds(30));
}

TEST(DriverFaults, AHangOfOneGpuLeavesTheOthersAlone) {
  TestDriver driver(R"(
gpus:
  - {model: a100-sxm4-80gb, count: 2}
faults:
  - {kind: driver_hang, at: 20s, gpu: 1}
)");
  driver.AdvanceTo(seconds(22));
  unsigned int value = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&value), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(driver.Gpu(0), &value), NVML_SUCCESS);
  // For ever cannot be waited for in virtual time.
  EXPECT_EQ(nvmlDeviceGetPowerUsage(driver.Gpu(1), &value), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(driver.Now(), seconds(22));
}

}  // namespace
}  // namespace gpuassay::sim
