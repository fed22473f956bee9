#include "sources/nvml/readings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sources/nvml/fake_driver.h"
#include "sources/nvml/mig.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

constexpr double kMib = 1048576;

class ReadingsTest : public testing::Test {
 protected:
  GpuReadings Read() {
    if (!source_) source_ = driver_.Open(clock_);
    const Snapshot snapshot = source_->Read();
    clock_.Advance(seconds(1));
    return snapshot.gpus.at(0).readings;
  }

  VirtualClock clock_{WallTime(seconds(1'700'000'000))};
  FakeDriver driver_;
  std::unique_ptr<Source> source_;
};

TEST_F(ReadingsTest, ConvertsToBaseUnits) {
  driver_.nvmlDeviceGetClockInfo = [](nvmlDevice_t, unsigned int type, unsigned int* mhz) {
    *mhz = type == NVML_CLOCK_SM ? 1980 : 2619;
    return type == NVML_CLOCK_VIDEO ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
  };
  driver_.nvmlDeviceGetPowerUsage = [](nvmlDevice_t, unsigned int* mw) {
    *mw = 320'500;
    return NVML_SUCCESS;
  };
  driver_.nvmlDeviceGetUtilizationRates = [](nvmlDevice_t, nvmlUtilization_t* utilization) {
    *utilization = {96, 30};
    return NVML_SUCCESS;
  };
  driver_.AnswerFields();
  driver_.fields[{NVML_FI_DEV_PERF_POLICY_POWER, 0}].value = 2'500'000'000;
  driver_.fields[{NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0}].value = 1'234'567;
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.sm_clock_hertz, Reading(1.98e9));
  EXPECT_EQ(readings.memory_clock_hertz, Reading(2.619e9));
  EXPECT_EQ(readings.video_clock_hertz, Reading(Missing::kNotSupported));
  EXPECT_EQ(readings.power_watts, Reading(320.5));
  EXPECT_EQ(readings.utilization_ratio, Reading(0.96));
  EXPECT_EQ(readings.memory_copy_utilization_ratio, Reading(0.3));
  EXPECT_EQ(readings.driver_throttled_power_seconds, Reading(2.5));
  EXPECT_NEAR(*readings.driver_energy_joules, 1234.567, 1e-9);
}

TEST_F(ReadingsTest, RejectsMoreThanAHundredPercent) {
  driver_.nvmlDeviceGetUtilizationRates = [](nvmlDevice_t, nvmlUtilization_t* utilization) {
    *utilization = {101, 4294967295U};
    return NVML_SUCCESS;
  };
  driver_.nvmlDeviceGetEncoderUtilization = [](nvmlDevice_t, unsigned int* percent,
                                               unsigned int* period) {
    *percent = 100;
    *period = 166'667;
    return NVML_SUCCESS;
  };
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.utilization_ratio, Reading(Missing::kImplausible));
  EXPECT_EQ(readings.memory_copy_utilization_ratio, Reading(Missing::kImplausible));
  EXPECT_EQ(readings.encoder_utilization_ratio, Reading(1));
}

TEST_F(ReadingsTest, TellsTheReserveApartWhereTheDriverDoes) {
  driver_.nvmlDeviceGetMemoryInfo_v2 = [](nvmlDevice_t, nvmlMemory_v2_t* memory) {
    EXPECT_EQ(memory->version, 0x02000028U);
    memory->total = 15360ULL << 20;
    memory->reserved = 386ULL << 20;
    memory->used = 8234ULL << 20;
    memory->free = 6740ULL << 20;
    return NVML_SUCCESS;
  };
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.memory_total_bytes, Reading(15360 * kMib));
  EXPECT_EQ(readings.memory_used_bytes, Reading(8234 * kMib));
  EXPECT_EQ(readings.memory_reserved_bytes, Reading(386 * kMib));
  EXPECT_EQ(readings.memory_free_bytes, Reading(6740 * kMib));
}

TEST_F(ReadingsTest, SaysThatAnOldDriverDoesNotTellTheReserve) {
  driver_.missing = {"nvmlDeviceGetMemoryInfo_v2"};
  driver_.nvmlDeviceGetMemoryInfo = [](nvmlDevice_t, nvmlMemory_t* memory) {
    *memory = {11178ULL << 20, 11000ULL << 20, 178ULL << 20};
    return NVML_SUCCESS;
  };
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.memory_total_bytes, Reading(11178 * kMib));
  EXPECT_EQ(readings.memory_used_bytes, Reading(178 * kMib));
  EXPECT_EQ(readings.memory_free_bytes, Reading(11000 * kMib));
  EXPECT_EQ(readings.memory_reserved_bytes, Reading(Missing::kDriverTooOld));
}

TEST_F(ReadingsTest, RejectsMoreMemoryThanThereIs) {
  driver_.nvmlDeviceGetMemoryInfo_v2 = [](nvmlDevice_t, nvmlMemory_v2_t* memory) {
    memory->total = 100;
    memory->used = 101;
    return NVML_SUCCESS;
  };
  EXPECT_EQ(Read().memory_used_bytes, Reading(Missing::kImplausible));
}

TEST_F(ReadingsTest, GivesEachCodeOfACallItsReason) {
  nvmlReturn_t code = NVML_SUCCESS;
  driver_.nvmlDeviceGetPowerUsage = [&code](nvmlDevice_t, unsigned int*) { return code; };
  const auto reason = [&](nvmlReturn_t answer) {
    code = answer;
    return Read().power_watts;
  };
  EXPECT_EQ(reason(NVML_ERROR_NO_PERMISSION), Reading(Missing::kNoPermission));
  EXPECT_EQ(reason(NVML_ERROR_RESET_REQUIRED), Reading(Missing::kResetRequired));
  EXPECT_EQ(reason(NVML_ERROR_UNKNOWN), Reading(Missing::kDriverError));
  EXPECT_EQ(reason(NVML_ERROR_TIMEOUT), Reading(Missing::kTimedOut));
  EXPECT_EQ(reason(NVML_ERROR_GPU_IS_LOST), Reading(Missing::kGpuLost));
  EXPECT_EQ(reason(NVML_ERROR_NOT_SUPPORTED), Reading(Missing::kNotSupported));
}

TEST_F(ReadingsTest, SaysThatTheDriverIsTooOldForAFunction) {
  driver_.missing = {"nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues"};
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.power_watts, Reading(Missing::kDriverTooOld));
  EXPECT_EQ(readings.power_instant_watts, Reading(Missing::kDriverTooOld));
}

TEST_F(ReadingsTest, UsesSingleFunctionsWhereThereIsNoBatch) {
  driver_.missing = {"nvmlDeviceGetFieldValues"};
  driver_.nvmlDeviceGetTotalEnergyConsumption = [](nvmlDevice_t, unsigned long long* mj) {
    *mj = 5'000;
    return NVML_SUCCESS;
  };
  driver_.nvmlDeviceGetPcieReplayCounter = [](nvmlDevice_t, unsigned int* count) {
    *count = 7;
    return NVML_SUCCESS;
  };
  driver_.nvmlDeviceGetRemappedRows = [](nvmlDevice_t, unsigned int* correctable,
                                         unsigned int* uncorrectable, unsigned int* pending,
                                         unsigned int* failed) {
    *correctable = 1;
    *uncorrectable = 2;
    *pending = 1;
    *failed = 0;
    return NVML_SUCCESS;
  };
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.driver_energy_joules, Reading(5));
  EXPECT_EQ(readings.pcie_replays_total, Reading(7));
  EXPECT_EQ(readings.remapped_rows_correctable, Reading(1));
  EXPECT_EQ(readings.remapped_rows_uncorrectable, Reading(2));
  EXPECT_EQ(readings.row_remap_pending, Reading(1));
  EXPECT_EQ(readings.row_remap_failed, Reading(0));
}

TEST_F(ReadingsTest, ReadsEachTypeOfAFieldAndItsOwnError) {
  driver_.AnswerFields();
  driver_.fields[{NVML_FI_DEV_POWER_INSTANT, 0}] = {NVML_SUCCESS, 400'000,
                                                    NVML_VALUE_TYPE_UNSIGNED_INT};
  driver_.fields[{NVML_FI_DEV_MEMORY_TEMP, 0}] = {NVML_SUCCESS, 0xFFFFFFFF,
                                                  NVML_VALUE_TYPE_UNSIGNED_INT};
  driver_.fields[{NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0}] = {NVML_ERROR_INVALID_ARGUMENT, 0, 1};
  driver_.fields[{NVML_FI_DEV_PERF_POLICY_THERMAL, 0}] = {NVML_ERROR_NO_PERMISSION, 0, 1};
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.power_instant_watts, Reading(400));
  EXPECT_EQ(readings.memory_temperature_celsius, Reading(Missing::kImplausible));
  // An id that this driver does not know yet.
  EXPECT_EQ(readings.recovery_action, Reading(Missing::kDriverTooOld));
  EXPECT_EQ(readings.driver_throttled_thermal_seconds, Reading(Missing::kNoPermission));
  EXPECT_EQ(readings.driver_throttled_power_seconds, Reading(Missing::kNotSupported));
}

TEST_F(ReadingsTest, LeavesRefusedFieldsOutOfTheNextBatch) {
  std::vector<int> counts;
  driver_.nvmlDeviceGetFieldValues = [&counts](nvmlDevice_t, int count, nvmlFieldValue_t* values) {
    counts.push_back(count);
    for (int i = 0; i < count; ++i) {
      const bool known = values[i].fieldId == NVML_FI_DEV_POWER_INSTANT;
      values[i].nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
      values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
      values[i].value.uiVal = 250'000;
    }
    return NVML_SUCCESS;
  };
  Read();
  counts.clear();
  Read();  // now with the PCIe counters, since no one tells the rates
  Read();
  EXPECT_EQ(counts, (std::vector<int>{20, 1}));
  EXPECT_EQ(Read().power_instant_watts, Reading(250));
}

TEST_F(ReadingsTest, UnfoldsTheClockEventReasons) {
  driver_.missing = {"nvmlDeviceGetCurrentClocksEventReasons"};
  driver_.nvmlDeviceGetCurrentClocksThrottleReasons = [](nvmlDevice_t,
                                                         unsigned long long* reasons) {
    *reasons = 0x4 | 0x80;
    return NVML_SUCCESS;
  };
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.clock_event_software_power_cap, Reading(1));
  EXPECT_EQ(readings.clock_event_power_brake, Reading(1));
  EXPECT_EQ(readings.clock_event_hardware_thermal, Reading(0));
  EXPECT_EQ(readings.clock_event_idle, Reading(0));
}

TEST_F(ReadingsTest, ComputesThresholdsWhereTheModelReportsMargins) {
  driver_.nvmlDeviceGetTemperature = [](nvmlDevice_t, unsigned int, unsigned int* celsius) {
    *celsius = 28;
    return NVML_SUCCESS;
  };
  driver_.nvmlDeviceGetMarginTemperature = [](nvmlDevice_t, nvmlMarginTemperature_v1_t* margin) {
    EXPECT_EQ(margin->version, 0x01000008U);
    margin->marginTemperature = 59;
    return NVML_SUCCESS;
  };
  driver_.AnswerFields();
  const auto tlimit = [&](unsigned int field, int value) {
    driver_.fields[{field, 0}] = {NVML_SUCCESS,
                                  static_cast<unsigned long long>(static_cast<unsigned int>(value)),
                                  NVML_VALUE_TYPE_SIGNED_INT};
  };
  tlimit(NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, -8);
  tlimit(NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, -2);
  tlimit(NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, 0);
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.temperature_margin_celsius, Reading(59));
  EXPECT_EQ(readings.temperature_max_operating_celsius, Reading(87));
  EXPECT_EQ(readings.temperature_slowdown_celsius, Reading(89));
  EXPECT_EQ(readings.temperature_shutdown_celsius, Reading(95));
  EXPECT_EQ(readings.memory_temperature_max_operating_celsius, Reading(Missing::kNotSupported));
}

TEST_F(ReadingsTest, PrefersClassicThresholds) {
  driver_.nvmlDeviceGetTemperatureThreshold = [](nvmlDevice_t, unsigned int threshold,
                                                 unsigned int* celsius) {
    *celsius = threshold == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN   ? 96
               : threshold == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN ? 93
                                                                  : 85;
    return threshold == NVML_TEMPERATURE_THRESHOLD_MEM_MAX ? NVML_ERROR_NOT_SUPPORTED
                                                           : NVML_SUCCESS;
  };
  const GpuReadings readings = Read();
  EXPECT_EQ(readings.temperature_max_operating_celsius, Reading(85));
  EXPECT_EQ(readings.temperature_slowdown_celsius, Reading(93));
  EXPECT_EQ(readings.temperature_shutdown_celsius, Reading(96));
  EXPECT_EQ(readings.memory_temperature_max_operating_celsius, Reading(Missing::kNotSupported));
}

TEST(Thresholds, NeedAllParts) {
  EXPECT_EQ(ThresholdFromMargin(52, 35, -2), Reading(89));
  EXPECT_EQ(ThresholdFromMargin(52, Missing::kDriverTooOld, -2), Reading(Missing::kDriverTooOld));
  EXPECT_EQ(ThresholdFromMargin(Missing::kDriverError, 35, -2), Reading(Missing::kDriverError));
}

TEST(Thresholds, DoNotWobbleByADegree) {
  EXPECT_EQ(SteadyThreshold(87, 88), Reading(87));
  EXPECT_EQ(SteadyThreshold(87, 89), Reading(89));
  EXPECT_EQ(SteadyThreshold(Missing::kNeverSampled, 88), Reading(88));
  EXPECT_EQ(SteadyThreshold(87, Missing::kTimedOut), Reading(Missing::kTimedOut));
}

}  // namespace
}  // namespace gpuassay
