#include "attribution/join/pools.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

constexpr std::size_t kOneDevice = 1;
constexpr std::size_t kTwoDevices = 2;

Gpu MakeGpu() {
  Gpu gpu;
  gpu.identity.uuid = "GPU-1";
  gpu.processes.emplace_back().pid = 42;
  MigInstance& mig = gpu.mig.emplace_back();
  mig.identity.gpu_instance_id = 3;
  mig.identity.compute_instance_id = 0;
  mig.identity.uuid = "MIG-3";
  return gpu;
}

Reading Reserved(const std::vector<MemoryReport>& reports, std::size_t devices,
                 std::optional<std::uint32_t> gpu_instance = std::nullopt) {
  Gpu gpu = MakeGpu();
  gpu.processes[0].gpu_instance_id = gpu_instance;
  FillPool(reports, gpu, devices, gpu.processes[0]);
  return gpu.processes[0].readings.memory_pool_reserved_bytes;
}

TEST(Pools, AUuidSaysWhichGpuIsMeant) {
  Gpu gpu = MakeGpu();
  FillPool({{"GPU-2", 9, 8}, {"GPU-1", 7, 6}}, gpu, kTwoDevices, gpu.processes[0]);
  EXPECT_EQ(gpu.processes[0].readings.memory_pool_reserved_bytes, Reading(7));
  EXPECT_EQ(gpu.processes[0].readings.memory_pool_allocated_bytes, Reading(6));
}

TEST(Pools, WithoutAUuidOnlyAProcessOnOneDeviceIsUnderstood) {
  EXPECT_EQ(Reserved({{"", 7, 6}}, kOneDevice), Reading(7));
  EXPECT_EQ(Reserved({{"0", 7, 6}}, kOneDevice), Reading(7));
  EXPECT_EQ(Reserved({{"", 7, 6}}, kTwoDevices), Reading(Missing::kNotReported));
  EXPECT_EQ(Reserved({{"0", 7, 6}}, kTwoDevices), Reading(Missing::kNotReported));
  EXPECT_EQ(Reserved({{"0", 7, 6}, {"1", 5, 4}}, kOneDevice), Reading(Missing::kNotReported));
}

TEST(Pools, AMigInstanceIsMeantByItsOwnUuid) {
  EXPECT_EQ(Reserved({{"MIG-3", 7, 6}}, kTwoDevices, 3), Reading(7));
  EXPECT_EQ(Reserved({{"MIG-4", 7, 6}}, kTwoDevices, 3), Reading(Missing::kNotReported));
  EXPECT_EQ(Reserved({{"GPU-1", 7, 6}}, kTwoDevices, 3), Reading(Missing::kNotReported));
  EXPECT_EQ(Reserved({{"MIG-3", 7, 6}}, kTwoDevices, 4), Reading(Missing::kNotReported));
}

TEST(Pools, NobodyHasReported) {
  EXPECT_EQ(Reserved({}, kOneDevice), Reading(Missing::kNotReported));
}

}  // namespace
}  // namespace gpuassay
