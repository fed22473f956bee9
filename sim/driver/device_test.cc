// Readings of a GPU: memory, processes, power, temperature, links, fields, samples.
#include <gtest/gtest.h>

#include <array>

#include "sim/driver/test_driver.h"

namespace gpuassay::sim {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr unsigned long long kStartUs = 1'700'000'000'000'000;

constexpr std::string_view kBusy = R"(
noise: 0
gpus:
  - {model: h100-sxm5-80gb}
  - {model: t4}
processes:
  - {pid: 100, name: /usr/bin/train, gpus: 0, memory: 60000 MiB,
     activity: {kernel: 1ms, launches: 1000/s, regular: true, sm_active: 80%, tensor: 40%,
                dram: 25%, pcie_transmit: 2 GB/s, nvlink_transmit: 18 GB/s, nvlink_receive: 9 GB/s}}
  - {pid: 101, name: Xorg, gpus: 0, type: graphics, memory: 200 MiB}
  - {pid: 102, name: mps-client, gpus: 0, type: mps, memory: 300 MiB}
  - {pid: 103, name: serve, gpus: 1, memory: 4234 MiB}
)";

nvmlFieldValue_t Field(nvmlDevice_t device, unsigned int id, unsigned int scope = 0) {
  nvmlFieldValue_t field = {};
  field.fieldId = id;
  field.scopeId = scope;
  EXPECT_EQ(nvmlDeviceGetFieldValues(device, 1, &field), NVML_SUCCESS);
  return field;
}

TEST(DriverMemory, TheFirstVersionCountsTheReserveAsUsedTheSecondDoesNot) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  nvmlMemory_t first;
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(driver.Gpu(0), &first), NVML_SUCCESS);
  nvmlMemory_v2_t second;
  second.version = NVML_STRUCT_VERSION_OF(nvmlMemory_v2_t, 2U);
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(driver.Gpu(0), &second), NVML_SUCCESS);
  EXPECT_EQ(first.total, 81559 * kMiB);
  EXPECT_EQ(first.used, (60000 + 200 + 300 + 479) * kMiB);
  EXPECT_EQ(second.used, (60000 + 200 + 300) * kMiB);
  EXPECT_EQ(second.reserved, 479 * kMiB);
  EXPECT_EQ(first.free, second.free);
  EXPECT_EQ(second.total, second.used + second.reserved + second.free);
}

TEST(DriverMemory, AWrongVersionWordIsRefused) {
  const TestDriver driver(kBusy);
  nvmlMemory_v2_t memory = {};
  memory.version = 2;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(driver.Gpu(0), &memory),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  nvmlMarginTemperature_v1_t margin = {};
  EXPECT_EQ(nvmlDeviceGetMarginTemperature(driver.Gpu(0), &margin),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

TEST(DriverProcesses, ListsTellTheirSizeWhenTheRoomIsTooSmall) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  unsigned int count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(driver.Gpu(0), &count, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 1U);
  std::array<nvmlProcessInfo_t, 4> infos{};
  count = 4;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(driver.Gpu(0), &count, infos.data()),
            NVML_SUCCESS);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(infos[0].pid, 100U);
  EXPECT_EQ(infos[0].usedGpuMemory, 60000 * kMiB);
  EXPECT_EQ(infos[0].gpuInstanceId, 0xFFFFFFFFU);
}

TEST(DriverProcesses, EachKindHasItsListAndAnEmptyListNeedsNoRoom) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  nvmlProcessInfo_v1_t info = {};
  unsigned int count = 1;
  EXPECT_EQ(nvmlDeviceGetGraphicsRunningProcesses(driver.Gpu(0), &count, &info), NVML_SUCCESS);
  EXPECT_EQ(info.pid, 101U);
  count = 1;
  EXPECT_EQ(nvmlDeviceGetMPSComputeRunningProcesses(driver.Gpu(0), &count, &info), NVML_SUCCESS);
  EXPECT_EQ(info.pid, 102U);
  count = 0;
  EXPECT_EQ(nvmlDeviceGetGraphicsRunningProcesses_v3(driver.Gpu(1), &count, nullptr), NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
}

TEST(DriverProcesses, TheDetailListHasAllKinds) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  std::array<nvmlProcessDetail_v1_t, 4> details{};
  nvmlProcessDetailList_v1_t list = {};
  list.version = NVML_STRUCT_VERSION_OF(nvmlProcessDetailList_v1_t, 1U);
  list.mode = NVML_PROCESS_MODE_ALL;
  list.numProcArrayEntries = 4;
  list.procArray = details.data();
  EXPECT_EQ(nvmlDeviceGetRunningProcessDetailList(driver.Gpu(0), &list), NVML_SUCCESS);
  EXPECT_EQ(list.numProcArrayEntries, 3U);
  EXPECT_EQ(details[2].pid, 102U);
}

TEST(DriverProcesses, NamesAreCutToFit) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  char name[9];
  EXPECT_EQ(nvmlSystemGetProcessName(100, name, sizeof(name)), NVML_SUCCESS);
  EXPECT_STREQ(name, "/usr/bin");
  EXPECT_EQ(nvmlSystemGetProcessName(1, name, sizeof(name)), NVML_ERROR_NOT_FOUND);
}

TEST(DriverUtilization, AlwaysAKernelIsFullyBusy) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  nvmlUtilization_t utilization = {};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(driver.Gpu(0), &utilization), NVML_SUCCESS);
  EXPECT_EQ(utilization.gpu, 100U);
  EXPECT_EQ(utilization.memory, 25U);
}

TEST(DriverUtilization, ProcessSamplesComeOnceEach) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  unsigned int count = 0;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(driver.Gpu(0), nullptr, &count, 0),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 100U);
  std::array<nvmlProcessUtilizationSample_t, 100> samples{};
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(driver.Gpu(0), samples.data(), &count, 0),
            NVML_SUCCESS);
  EXPECT_EQ(count, 1U);  // only those that did something
  EXPECT_EQ(samples[0].pid, 100U);
  EXPECT_EQ(samples[0].smUtil, 100U);
  EXPECT_EQ(samples[0].timeStamp, kStartUs + 5'000'000);
  const unsigned long long seen = samples[0].timeStamp;
  count = 100;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(driver.Gpu(0), samples.data(), &count, seen),
            NVML_ERROR_NOT_FOUND);
  driver.AdvanceTo(seconds(6));
  count = 100;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(driver.Gpu(0), samples.data(), &count, seen),
            NVML_SUCCESS);
  EXPECT_EQ(samples[0].timeStamp, kStartUs + 6'000'000);
}

TEST(DriverUtilization, SamplesAreThoseAfterTheLastSeenOne) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  unsigned int type = 0;
  unsigned int count = 0;
  EXPECT_EQ(
      nvmlDeviceGetSamples(driver.Gpu(0), NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, nullptr),
      NVML_SUCCESS);
  EXPECT_EQ(count, 120U);
  std::array<nvmlSample_t, 120> samples{};
  EXPECT_EQ(nvmlDeviceGetSamples(driver.Gpu(0), NVML_GPU_UTILIZATION_SAMPLES, kStartUs + 4'000'000,
                                 &type, &count, samples.data()),
            NVML_SUCCESS);
  EXPECT_EQ(count, 6U);
  EXPECT_EQ(type, 1U);
  EXPECT_EQ(samples[5].timeStamp, kStartUs + 5'000'000);
  EXPECT_EQ(samples[5].sampleValue.uiVal, 100U);
  count = 120;
  EXPECT_EQ(nvmlDeviceGetSamples(driver.Gpu(0), NVML_GPU_UTILIZATION_SAMPLES, kStartUs + 5'000'000,
                                 &type, &count, samples.data()),
            NVML_ERROR_NOT_FOUND);
}

TEST(DriverTemperature, MarginModelsTellMarginsAndOthersThresholds) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  unsigned int celsius = 0;
  nvmlMarginTemperature_v1_t margin = {};
  margin.version = NVML_STRUCT_VERSION_OF(nvmlMarginTemperature_v1_t, 1U);
  // H100: a maximum of 87, a slowdown at 89, a shutdown at 95 Celsius.
  ASSERT_EQ(nvmlDeviceGetTemperature(driver.Gpu(0), 0, &celsius), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetMarginTemperature(driver.Gpu(0), &margin), NVML_SUCCESS);
  EXPECT_EQ(margin.marginTemperature, 87 - static_cast<int>(celsius));
  EXPECT_EQ(nvmlDeviceGetTemperatureThreshold(driver.Gpu(0), 1, &celsius),
            NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Field(driver.Gpu(0), NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT).value.siVal, -8);
  EXPECT_EQ(Field(driver.Gpu(0), NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT).value.siVal, -2);
  // T4: 85, 93, 96.
  EXPECT_EQ(nvmlDeviceGetTemperatureThreshold(driver.Gpu(1), 0, &celsius), NVML_SUCCESS);
  EXPECT_EQ(celsius, 96U);
  EXPECT_EQ(nvmlDeviceGetTemperatureThreshold(driver.Gpu(1), 1, &celsius), NVML_SUCCESS);
  EXPECT_EQ(celsius, 93U);
  EXPECT_EQ(nvmlDeviceGetMarginTemperature(driver.Gpu(1), &margin), NVML_ERROR_NOT_SUPPORTED);
}

TEST(DriverLinks, RatesAreThoseOfTheLastTick) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  unsigned int kb = 0;
  EXPECT_EQ(nvmlDeviceGetPcieThroughput(driver.Gpu(0), NVML_PCIE_UTIL_TX_BYTES, &kb), NVML_SUCCESS);
  EXPECT_NEAR(kb, 2'000'000, 20);
  EXPECT_EQ(nvmlDeviceGetPcieThroughput(driver.Gpu(0), NVML_PCIE_UTIL_RX_BYTES, &kb), NVML_SUCCESS);
  EXPECT_EQ(kb, 0U);
  EXPECT_EQ(nvmlDeviceGetPcieThroughput(driver.Gpu(0), 2, &kb), NVML_ERROR_INVALID_ARGUMENT);
}

TEST(DriverLinks, NvlinkFieldsAreByLinkOrOfAllLinks) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(10));
  const nvmlFieldValue_t all =
      Field(driver.Gpu(0), NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0xFFFFFFFF);
  const nvmlFieldValue_t one = Field(driver.Gpu(0), NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 3);
  EXPECT_EQ(all.valueType, static_cast<unsigned>(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG));
  EXPECT_NEAR(static_cast<double>(all.value.ullVal), 18e9 * 10 / 1024, 18e9 / 1024 * 0.01);
  EXPECT_NEAR(static_cast<double>(one.value.ullVal), 1e9 * 10 / 1024, 1e9 / 1024 * 0.01);
  EXPECT_EQ(Field(driver.Gpu(0), NVML_FI_DEV_NVLINK_GET_STATE, 18).nvmlReturn,
            NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Field(driver.Gpu(1), NVML_FI_DEV_NVLINK_LINK_COUNT).nvmlReturn,
            NVML_ERROR_NOT_SUPPORTED);
  unsigned int active = 0;
  EXPECT_EQ(nvmlDeviceGetNvLinkState(driver.Gpu(0), 17, &active), NVML_SUCCESS);
  EXPECT_EQ(active, 1U);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(driver.Gpu(0), 18, &active), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(driver.Gpu(1), 0, &active), NVML_ERROR_NOT_SUPPORTED);
}

TEST(DriverFields, EachIdAnswersForItself) {
  TestDriver driver(kBusy);
  driver.AdvanceTo(seconds(5));
  std::array<nvmlFieldValue_t, 4> fields{};
  fields[0].fieldId = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION;
  fields[1].fieldId = NVML_FI_DEV_RETIRED_SBE;  // an H100 remaps rows instead
  fields[2].fieldId = 9999;
  fields[3].fieldId = NVML_FI_DEV_POWER_INSTANT;
  EXPECT_EQ(nvmlDeviceGetFieldValues(driver.Gpu(0), 4, fields.data()), NVML_SUCCESS);
  EXPECT_EQ(fields[0].nvmlReturn, NVML_SUCCESS);
  EXPECT_EQ(fields[0].valueType, static_cast<unsigned>(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG));
  EXPECT_EQ(fields[0].timestamp, static_cast<long long>(kStartUs + 5'000'000));
  EXPECT_EQ(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(fields[2].nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fields[3].valueType, static_cast<unsigned>(NVML_VALUE_TYPE_UNSIGNED_INT));
  unsigned long long mj = 0;
  EXPECT_EQ(nvmlDeviceGetTotalEnergyConsumption(driver.Gpu(0), &mj), NVML_SUCCESS);
  EXPECT_EQ(mj, fields[0].value.ullVal);
  EXPECT_EQ(nvmlDeviceGetFieldValues(driver.Gpu(0), 0, fields.data()), NVML_ERROR_INVALID_ARGUMENT);
}

TEST(DriverFields, AnOldDriverDoesNotKnowNewIds) {
  TestDriver driver(R"(
driver: 450.80.02
gpus: [{model: a100-sxm4-40gb}]
)");
  driver.AdvanceTo(seconds(2));
  EXPECT_EQ(Field(driver.Gpu(0), NVML_FI_DEV_POWER_INSTANT).nvmlReturn,
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(Field(driver.Gpu(0), NVML_FI_DEV_REMAPPED_COR).nvmlReturn, NVML_SUCCESS);
}

TEST(DriverFeatures, AModelAnswersOnlyWhatItHas) {
  TestDriver driver(R"(
driver: 470.256.02
gpus: [{model: tesla-k80}]
)");
  driver.AdvanceTo(seconds(5));
  unsigned long long mj = 0;
  unsigned int count = 10;
  std::array<nvmlProcessUtilizationSample_t, 10> samples{};
  EXPECT_EQ(nvmlDeviceGetTotalEnergyConsumption(driver.Gpu(0), &mj), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(driver.Gpu(0), samples.data(), &count, 0),
            NVML_ERROR_NOT_SUPPORTED);
  unsigned int multi = 0;
  EXPECT_EQ(nvmlDeviceGetMultiGpuBoard(driver.Gpu(0), &multi), NVML_SUCCESS);
  EXPECT_EQ(multi, 1U);
  EXPECT_EQ(nvmlDeviceGetDriverModel(), NVML_ERROR_NOT_SUPPORTED);
}

TEST(DriverEcc, ErrorsAreCountedWhereTheyHappen) {
  TestDriver driver(R"(
gpus: [{model: a100-sxm4-80gb, count: 2}]
faults:
  - {kind: ecc_uncorrected, at: 5s, gpu: 1, value: 3}
)");
  driver.AdvanceTo(seconds(6));
  unsigned long long count = 99;
  EXPECT_EQ(nvmlDeviceGetTotalEccErrors(driver.Gpu(0), 1, 0, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(nvmlDeviceGetTotalEccErrors(driver.Gpu(1), 1, 0, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(nvmlDeviceGetMemoryErrorCounter(driver.Gpu(1), 1, 0, 2, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(nvmlDeviceGetMemoryErrorCounter(driver.Gpu(1), 1, 0, 1, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(nvmlDeviceGetTotalEccErrors(driver.Gpu(1), 2, 0, &count), NVML_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gpuassay::sim
