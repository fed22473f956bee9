#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "sim/driver/test_driver.h"

namespace gpuassay::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1024 * 1024;

constexpr std::string_view kMig = R"(
noise: 0
gpus:
  - {model: h100-sxm5-80gb, mig: [3g.40gb, 1g.10gb]}
  - {model: h100-sxm5-80gb}
  - {model: t4}
processes:
  - {pid: 200, name: big, gpus: 0, mig: 0, memory: 20000 MiB,
     activity: {sm_active: 50%, tensor: 20%, dram: 30%}}
  - {pid: 201, name: small, gpus: 0, mig: 1, memory: 4000 MiB}
faults:
  - {kind: mig_reconfigure, at: 60s, gpu: 0, layout: [2g.20gb, 1g.10gb]}
)";

TEST(DriverMig, DevicesAreFoundByIndexAndHolesAreNotFound) {
  const TestDriver driver(kMig);
  unsigned int count = 0;
  EXPECT_EQ(nvmlDeviceGetMaxMigDeviceCount(driver.Gpu(0), &count), NVML_SUCCESS);
  EXPECT_EQ(count, 7U);
  nvmlDevice_t mig = nullptr;
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(driver.Gpu(0), 0, &mig), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(driver.Gpu(0), 6, &mig), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(driver.Gpu(0), 7, &mig),
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetMaxMigDeviceCount(driver.Gpu(1), &count), NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
  unsigned int mode = 0;
  unsigned int pending = 0;
  EXPECT_EQ(nvmlDeviceGetMigMode(driver.Gpu(2), &mode, &pending), NVML_ERROR_NOT_SUPPORTED);
}

TEST(DriverMig, ADeviceIsNamedAndSizedByItsProfile) {
  TestDriver driver(kMig);
  driver.AdvanceTo(seconds(5));
  nvmlDevice_t mig = driver.Mig(0, 0);
  char text[96];
  EXPECT_EQ(nvmlDeviceGetName(mig, text, sizeof(text)), NVML_SUCCESS);
  EXPECT_STREQ(text, "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
  EXPECT_EQ(nvmlDeviceGetUUID(mig, text, sizeof(text)), NVML_SUCCESS);
  EXPECT_EQ(std::string_view(text).substr(0, 4), "MIG-");
  nvmlDevice_t again = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(text, &again), NVML_SUCCESS);
  EXPECT_EQ(again, mig);
  nvmlMemory_v2_t memory;
  memory.version = NVML_STRUCT_VERSION_OF(nvmlMemory_v2_t, 2U);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(mig, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 40448 * kMiB);
  EXPECT_EQ(memory.used, 20000 * kMiB);
  nvmlDeviceAttributes_t attributes;
  EXPECT_EQ(nvmlDeviceGetAttributes_v2(mig, &attributes), NVML_SUCCESS);
  EXPECT_EQ(attributes.multiprocessorCount, 60U);
  EXPECT_EQ(attributes.gpuInstanceSliceCount, 3U);
  EXPECT_EQ(attributes.memorySizeMB, 40448U);
  unsigned int is_mig = 0;
  EXPECT_EQ(nvmlDeviceIsMigDeviceHandle(mig, &is_mig), NVML_SUCCESS);
  EXPECT_EQ(is_mig, 1U);
  nvmlDevice_t parent = nullptr;
  EXPECT_EQ(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &parent), NVML_SUCCESS);
  EXPECT_EQ(parent, driver.Gpu(0));
}

TEST(DriverMig, BeforeBranch470TheUuidIsMadeOfTheParents) {
  const TestDriver driver(R"(
driver: 450.80.02
gpus: [{model: a100-sxm4-40gb, uuid: GPU-cccccccc-0000-0000-0000-000000000000, mig: [1g.5gb]}]
)");
  char text[96];
  unsigned int instance = 0;
  EXPECT_EQ(nvmlDeviceGetGpuInstanceId(driver.Mig(0, 0), &instance), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetUUID(driver.Mig(0, 0), text, sizeof(text)), NVML_SUCCESS);
  EXPECT_EQ(std::string(text),
            "MIG-GPU-cccccccc-0000-0000-0000-000000000000/" + std::to_string(instance) + "/0");
}

TEST(DriverMig, UtilizationIsNotToldOnParentsAndInstances) {
  TestDriver driver(kMig);
  driver.AdvanceTo(seconds(5));
  nvmlUtilization_t utilization = {};
  unsigned int count = 10;
  std::array<nvmlProcessUtilizationSample_t, 10> samples{};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(driver.Gpu(0), &utilization), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(driver.Mig(0, 0), &utilization),
            NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(driver.Gpu(0), samples.data(), &count, 0),
            NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(driver.Gpu(1), &utilization), NVML_SUCCESS);
}

TEST(DriverMig, ProcessesAreListedByInstanceAndOnTheParentWithTheirInstance) {
  TestDriver driver(kMig);
  driver.AdvanceTo(seconds(5));
  std::array<nvmlProcessInfo_t, 4> infos{};
  unsigned int count = 4;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(driver.Mig(0, 1), &count, infos.data()),
            NVML_SUCCESS);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(infos[0].pid, 201U);
  unsigned int instance = 0;
  EXPECT_EQ(nvmlDeviceGetGpuInstanceId(driver.Mig(0, 1), &instance), NVML_SUCCESS);
  count = 4;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(driver.Gpu(0), &count, infos.data()),
            NVML_SUCCESS);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(infos[0].pid, 200U);
  EXPECT_EQ(infos[1].gpuInstanceId, instance);
  EXPECT_EQ(infos[1].computeInstanceId, 0U);
}

TEST(DriverMig, HandlesOfAnOldLayoutAreDead) {
  TestDriver driver(kMig);
  nvmlDevice_t old = driver.Mig(0, 0);
  nvmlMemory_t memory;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(old, &memory), NVML_SUCCESS);
  driver.AdvanceTo(seconds(61));
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(old, &memory), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(driver.Mig(0, 0), &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 20096 * kMiB);
}

TEST(DriverMig, ProfilesAreNumberedByTheirSlices) {
  const TestDriver driver(kMig);
  nvmlGpuInstanceProfileInfo_t info = {};
  EXPECT_EQ(nvmlDeviceGetGpuInstanceProfileInfo(driver.Gpu(0), 2, &info), NVML_SUCCESS);
  EXPECT_EQ(info.sliceCount, 3U);
  EXPECT_EQ(info.memorySizeMB, 40448U);
  EXPECT_EQ(nvmlDeviceGetGpuInstanceProfileInfo(driver.Gpu(0), 5, &info), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetGpuInstanceProfileInfo(driver.Gpu(2), 0, &info), NVML_ERROR_NOT_SUPPORTED);
  nvmlGpuInstanceProfileInfo_v2_t named = {};
  named.version = NVML_STRUCT_VERSION_OF(nvmlGpuInstanceProfileInfo_v2_t, 2U);
  EXPECT_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(driver.Gpu(0), 0, &named), NVML_SUCCESS);
  EXPECT_STREQ(named.name, "MIG 1g.10gb");
}

class Gpm : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(nvmlGpmSampleAlloc(&from_), NVML_SUCCESS);
    ASSERT_EQ(nvmlGpmSampleAlloc(&to_), NVML_SUCCESS);
  }

  nvmlGpmMetric_t Get(unsigned int id) {
    nvmlGpmMetricsGet_t get = {};
    get.version = 1;
    get.numMetrics = 1;
    get.sample1 = from_;
    get.sample2 = to_;
    get.metrics[0].metricId = id;
    EXPECT_EQ(nvmlGpmMetricsGet(&get), NVML_SUCCESS);
    return get.metrics[0];
  }

  TestDriver driver_{R"(
noise: 0
gpus:
  - {model: h100-sxm5-80gb}
  - {model: h100-sxm5-80gb, mig: [3g.40gb]}
  - {model: a100-sxm4-80gb}
processes:
  - {pid: 300, name: train, gpus: 0, memory: 1 GiB,
     activity: {kernel: 1ms, launches: 1000/s, regular: true, sm_active: 80%, tensor: 40%,
                dram: 25%, pcie_receive: 1048576000 B/s, nvlink_transmit: 18874368000 B/s}}
  - {pid: 301, name: part, gpus: 1, mig: 0, memory: 1 GiB, activity: {sm_active: 50%}}
)"};
  nvmlGpmSample_t from_ = nullptr;
  nvmlGpmSample_t to_ = nullptr;
};

TEST_F(Gpm, TwoSamplesGiveTheMeanBetweenThem) {
  driver_.AdvanceTo(seconds(2));
  ASSERT_EQ(nvmlGpmSampleGet(driver_.Gpu(0), from_), NVML_SUCCESS);
  driver_.AdvanceTo(seconds(4));
  ASSERT_EQ(nvmlGpmSampleGet(driver_.Gpu(0), to_), NVML_SUCCESS);
  EXPECT_NEAR(Get(NVML_GPM_METRIC_SM_UTIL).value, 80, 0.8);
  EXPECT_NEAR(Get(NVML_GPM_METRIC_ANY_TENSOR_UTIL).value, 40, 0.8);
  EXPECT_NEAR(Get(NVML_GPM_METRIC_DRAM_BW_UTIL).value, 25, 0.8);
  EXPECT_NEAR(Get(NVML_GPM_METRIC_PCIE_RX_PER_SEC).value, 1000, 10);
  EXPECT_NEAR(Get(NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC).value, 18000, 180);
  EXPECT_NEAR(Get(NVML_GPM_METRIC_NVLINK_L0_TX_PER_SEC + 2 * 5).value, 1000, 10);
  EXPECT_STREQ(Get(NVML_GPM_METRIC_SM_UTIL).metricInfo.unit, "%");
  const nvmlGpmMetric_t unknown = Get(30);
  EXPECT_EQ(unknown.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(std::isnan(unknown.value));
}

TEST_F(Gpm, SamplesOfOneTickHaveNoData) {
  driver_.AdvanceTo(seconds(2));
  ASSERT_EQ(nvmlGpmSampleGet(driver_.Gpu(0), from_), NVML_SUCCESS);
  driver_.AdvanceTo(seconds(2) + milliseconds(100));
  ASSERT_EQ(nvmlGpmSampleGet(driver_.Gpu(0), to_), NVML_SUCCESS);
  EXPECT_EQ(Get(NVML_GPM_METRIC_SM_UTIL).nvmlReturn, NVML_ERROR_NO_DATA);
  EXPECT_TRUE(std::isnan(Get(NVML_GPM_METRIC_SM_UTIL).value));
}

TEST_F(Gpm, AnInstanceIsMeasuredByItself) {
  unsigned int instance = 0;
  ASSERT_EQ(nvmlDeviceGetGpuInstanceId(driver_.Mig(1, 0), &instance), NVML_SUCCESS);
  driver_.AdvanceTo(seconds(2));
  ASSERT_EQ(nvmlGpmMigSampleGet(driver_.Gpu(1), instance, from_), NVML_SUCCESS);
  driver_.AdvanceTo(seconds(4));
  ASSERT_EQ(nvmlGpmMigSampleGet(driver_.Gpu(1), instance, to_), NVML_SUCCESS);
  EXPECT_NEAR(Get(NVML_GPM_METRIC_SM_UTIL).value, 50, 0.5);
  EXPECT_EQ(Get(NVML_GPM_METRIC_PCIE_TX_PER_SEC).nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlGpmMigSampleGet(driver_.Gpu(1), 99, to_), NVML_ERROR_NOT_FOUND);
}

TEST_F(Gpm, OnlyHopperAndNewerHaveIt) {
  nvmlGpmSupport_t support = {.version = 1, .isSupportedDevice = 9};
  EXPECT_EQ(nvmlGpmQueryDeviceSupport(driver_.Gpu(2), &support), NVML_SUCCESS);
  EXPECT_EQ(support.isSupportedDevice, 0U);
  EXPECT_EQ(nvmlGpmSampleGet(driver_.Gpu(2), from_), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlGpmQueryDeviceSupport(driver_.Gpu(0), &support), NVML_SUCCESS);
  EXPECT_EQ(support.isSupportedDevice, 1U);
}

TEST_F(Gpm, SamplesThatDoNotBelongTogetherAreRefused) {
  nvmlGpmMetricsGet_t get = {};
  get.version = 1;
  get.sample1 = from_;
  get.sample2 = to_;
  EXPECT_EQ(nvmlGpmMetricsGet(&get), NVML_ERROR_INVALID_ARGUMENT);  // never taken
  get.version = 2;
  EXPECT_EQ(nvmlGpmMetricsGet(&get), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  EXPECT_EQ(nvmlGpmSampleFree(from_), NVML_SUCCESS);
  EXPECT_EQ(nvmlGpmSampleFree(from_), NVML_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gpuassay::sim
