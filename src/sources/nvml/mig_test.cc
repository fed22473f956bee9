#include "sources/nvml/mig.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

constexpr unsigned long long kMib = 1048576;

nvmlDeviceAttributes_t Attributes(unsigned int gpu_slices, unsigned int compute_slices,
                                  unsigned long long mib) {
  nvmlDeviceAttributes_t attributes = {};
  attributes.gpuInstanceSliceCount = gpu_slices;
  attributes.computeInstanceSliceCount = compute_slices;
  attributes.memorySizeMB = mib;
  return attributes;
}

TEST(MigProfile, StandsInTheName) {
  EXPECT_EQ(MigProfileFromName("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), "1g.10gb");
  EXPECT_EQ(MigProfileFromName("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb"), "1c.3g.20gb");
  EXPECT_EQ(MigProfileFromName("NVIDIA H100 80GB HBM3"), "");
}

TEST(MigProfile, FollowsFromTheSlices) {
  // Memory sizes as the driver tells them (MiB), of the instance and of the GPU.
  EXPECT_EQ(MigProfileFromAttributes(Attributes(1, 1, 9984), 81559), "1g.10gb");
  EXPECT_EQ(MigProfileFromAttributes(Attributes(2, 2, 20096), 81559), "2g.20gb");
  EXPECT_EQ(MigProfileFromAttributes(Attributes(3, 3, 40448), 81559), "3g.40gb");
  EXPECT_EQ(MigProfileFromAttributes(Attributes(1, 1, 4864), 40960), "1g.5gb");
  EXPECT_EQ(MigProfileFromAttributes(Attributes(1, 1, 16384), 143771), "1g.18gb");
  EXPECT_EQ(MigProfileFromAttributes(Attributes(3, 3, 71168), 143771), "3g.71gb");
  EXPECT_EQ(MigProfileFromAttributes(Attributes(3, 1, 19968), 40960), "1c.3g.20gb");
  EXPECT_EQ(MigProfileFromAttributes(Attributes(1, 1, 9984), 0), "1g.10gb");
}

// A GPU whose MIG devices are at indices 0 and 2 of 7. Handles: 1000 * (layout + 1) + index.
class MigTest : public testing::Test {
 protected:
  MigTest() {
    driver_.nvmlDeviceGetMigMode = [](nvmlDevice_t, unsigned int* current, unsigned int* pending) {
      *current = *pending = 1;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetMaxMigDeviceCount = [](nvmlDevice_t, unsigned int* count) {
      *count = 7;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetMigDeviceHandleByIndex = [this](nvmlDevice_t, unsigned int index,
                                                         nvmlDevice_t* mig) -> nvmlReturn_t {
      if (index != 0 && index != 2) return NVML_ERROR_NOT_FOUND;
      *mig = FakeDriver::Handle(1000 * (layout_ + 1) + index);
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetUUID = [](nvmlDevice_t device, char* uuid, unsigned int length) {
      const unsigned int number = FakeDriver::IndexOf(device);
      PutText(uuid, length, (number < 1000 ? "GPU-" : "MIG-") + std::to_string(number));
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetGpuInstanceId = [](nvmlDevice_t mig, unsigned int* id) {
      *id = 7 + FakeDriver::IndexOf(mig) % 1000;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetComputeInstanceId = [](nvmlDevice_t, unsigned int* id) {
      *id = 0;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetAttributes_v2 = [](nvmlDevice_t, nvmlDeviceAttributes_t* attributes) {
      *attributes = Attributes(1, 1, 9984);
      attributes->multiprocessorCount = 16;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetMemoryInfo_v2 = [this](nvmlDevice_t device,
                                                nvmlMemory_v2_t* memory) -> nvmlReturn_t {
      const unsigned int number = FakeDriver::IndexOf(device);
      if (number >= 1000 && number / 1000 != layout_ + 1) return NVML_ERROR_INVALID_ARGUMENT;
      memory->total = (number < 1000 ? 81559 : 9984) * kMib;
      memory->used = 17 * kMib;
      memory->free = memory->total - memory->used;
      return NVML_SUCCESS;
    };
  }
  Snapshot Read() {
    if (!source_) source_ = driver_.Open(clock_);
    Snapshot snapshot = source_->Read();
    clock_.Advance(seconds(1));
    return snapshot;
  }

  VirtualClock clock_{WallTime(seconds(1'700'000'000))};
  FakeDriver driver_;
  std::unique_ptr<Source> source_;
  unsigned int layout_ = 0;
};

TEST_F(MigTest, FindsInstancesBehindHoles) {
  const Gpu gpu = Read().gpus[0];
  EXPECT_EQ(gpu.readings.mig_enabled, Reading(1));
  ASSERT_EQ(gpu.mig.size(), 2U);
  EXPECT_EQ(gpu.mig[1].identity.index, 2U);
  EXPECT_EQ(gpu.mig[1].identity.uuid, "MIG-1002");
  EXPECT_EQ(gpu.mig[1].identity.gpu_instance_id, 9U);
  EXPECT_EQ(gpu.mig[1].identity.profile, "1g.10gb");
  EXPECT_EQ(gpu.mig[1].readings.multiprocessors, Reading(16));
  EXPECT_EQ(gpu.mig[1].readings.memory_total_bytes, Reading(9984.0 * kMib));
  EXPECT_EQ(gpu.mig[1].readings.memory_used_bytes, Reading(17.0 * kMib));
  EXPECT_EQ(gpu.mig[1].readings.sm_active_ratio, Reading(Missing::kNotSupported));
}

TEST_F(MigTest, SeesANewLayoutInTheSameCycle) {
  Read();
  layout_ = 1;
  const Gpu gpu = Read().gpus[0];
  ASSERT_EQ(gpu.mig.size(), 2U);
  EXPECT_EQ(gpu.mig[0].identity.uuid, "MIG-2000");
  EXPECT_EQ(gpu.mig[0].readings.memory_used_bytes, Reading(17.0 * kMib));
}

TEST_F(MigTest, SamplesEachGpuInstance) {
  driver_.nvmlGpmQueryDeviceSupport = [](nvmlDevice_t, nvmlGpmSupport_t* support) {
    support->isSupportedDevice = 1;
    return NVML_SUCCESS;
  };
  driver_.nvmlGpmSampleAlloc = [number = std::uintptr_t{0}](nvmlGpmSample_t* sample) mutable {
    *sample = reinterpret_cast<nvmlGpmSample_t>(++number);
    return NVML_SUCCESS;
  };
  std::map<nvmlGpmSample_t, unsigned int> instances;
  driver_.nvmlGpmMigSampleGet = [&](nvmlDevice_t, unsigned int instance, nvmlGpmSample_t sample) {
    instances[sample] = instance;
    return NVML_SUCCESS;
  };
  driver_.nvmlGpmMetricsGet = [&](nvmlGpmMetricsGet_t* request) {
    EXPECT_EQ(instances[request->sample1], instances[request->sample2]);
    for (unsigned int i = 0; i < request->numMetrics; ++i) {
      request->metrics[i].nvmlReturn = NVML_SUCCESS;
      request->metrics[i].value = instances[request->sample2] == 7 ? 15 : 99;
    }
    return NVML_SUCCESS;
  };
  EXPECT_EQ(Read().gpus[0].mig[0].readings.sm_active_ratio, Reading(Missing::kNeverSampled));
  Gpu gpu = Read().gpus[0];
  EXPECT_EQ(gpu.mig[0].readings.sm_active_ratio, Reading(0.15));
  EXPECT_EQ(gpu.mig[1].readings.sm_active_ratio, Reading(0.99));
  EXPECT_EQ(gpu.readings.sm_active_ratio, Reading(Missing::kNotSupported));
  // The instances of a new layout have the same numbers and nothing else in common.
  layout_ = 1;
  EXPECT_EQ(Read().gpus[0].mig[0].readings.sm_active_ratio, Reading(Missing::kNeverSampled));
}

TEST_F(MigTest, AsksTheInstancesForProcessesWhenTheGpuRefuses) {
  driver_.nvmlDeviceGetComputeRunningProcesses_v3 = [](nvmlDevice_t device, unsigned int* count,
                                                       nvmlProcessInfo_t* out) -> nvmlReturn_t {
    const unsigned int number = FakeDriver::IndexOf(device);
    if (number < 1000) return NVML_ERROR_NO_PERMISSION;
    *count = 1;
    *out = {number, kMib, 0xFFFFFFFF, 0xFFFFFFFF};
    return NVML_SUCCESS;
  };
  const Gpu gpu = Read().gpus[0];
  ASSERT_EQ(gpu.processes.size(), 2U);
  EXPECT_EQ(gpu.processes[1].pid, 1002U);
  EXPECT_EQ(gpu.processes[1].gpu_instance_id, 9U);
  EXPECT_EQ(gpu.processes[1].compute_instance_id, 0U);
  EXPECT_EQ(gpu.readings.process_count, Reading(2));
  EXPECT_EQ(gpu.mig[1].readings.process_count, Reading(1));
}

TEST_F(MigTest, EnumeratesAgainAfterAnEvent) {
  driver_.nvmlEventSetCreate = [](nvmlEventSet_t* set) {
    *set = reinterpret_cast<nvmlEventSet_t>(std::uintptr_t{1});
    return NVML_SUCCESS;
  };
  bool changed = false;
  driver_.nvmlEventSetWait_v2 = [&](nvmlEventSet_t, nvmlEventData_t* data,
                                    unsigned int) -> nvmlReturn_t {
    if (!changed) return NVML_ERROR_TIMEOUT;
    changed = false;
    *data = {FakeDriver::Handle(0), nvmlEventMigConfigChange, 0, 0xFFFFFFFF, 0xFFFFFFFF};
    return NVML_SUCCESS;
  };
  Read();
  // One instance more: the handles that are known stay good.
  driver_.nvmlDeviceGetMigDeviceHandleByIndex = [](nvmlDevice_t, unsigned int index,
                                                   nvmlDevice_t* mig) {
    *mig = FakeDriver::Handle(1000 + index);
    return index < 3 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
  };
  EXPECT_EQ(Read().gpus[0].mig.size(), 2U);
  changed = true;
  const Snapshot snapshot = Read();
  EXPECT_EQ(snapshot.gpus[0].mig.size(), 3U);
  ASSERT_EQ(snapshot.events.size(), 1U);
  EXPECT_EQ(snapshot.events[0].kind, EventKind::kMigConfigChange);
}

}  // namespace
}  // namespace gpuassay
