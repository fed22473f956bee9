#include "sources/nvml/nvlink.h"

#include <gtest/gtest.h>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

class NvLinkTest : public testing::Test {
 protected:
  Gpu Read() {
    if (!source_) source_ = driver_.Open(clock_);
    Snapshot snapshot = source_->Read();
    clock_.Advance(seconds(1));
    return snapshot.gpus.at(0);
  }
  // Two links by field values: link 1 is down.
  void HaveTwoLinks() {
    driver_.AnswerFields();
    Put(NVML_FI_DEV_NVLINK_LINK_COUNT, 0, 2);
    Put(NVML_FI_DEV_NVLINK_GET_STATE, 0, 1);
    Put(NVML_FI_DEV_NVLINK_GET_STATE, 1, 0);
    Put(NVML_FI_DEV_NVLINK_GET_SPEED, 0, 26'562);
  }
  void Put(unsigned int field, unsigned int scope, unsigned long long value) {
    driver_.fields[{field, scope}].value = value;
  }

  VirtualClock clock_{WallTime(seconds(1'700'000'000))};
  FakeDriver driver_;
  std::unique_ptr<Source> source_;
};

TEST_F(NvLinkTest, TellsStateSpeedAndErrorsOfEachLink) {
  HaveTwoLinks();
  driver_.nvmlDeviceGetNvLinkErrorCounter = [](nvmlDevice_t, unsigned int link,
                                               unsigned int counter, unsigned long long* count) {
    *count = 10 * link + counter;
    return NVML_SUCCESS;
  };
  const Gpu gpu = Read();
  ASSERT_EQ(gpu.links.size(), 2U);
  EXPECT_EQ(gpu.readings.nvlink_links, Reading(2));
  EXPECT_EQ(gpu.readings.nvlink_links_active, Reading(1));
  EXPECT_EQ(gpu.links[0].readings.active, Reading(1));
  EXPECT_EQ(gpu.links[1].readings.active, Reading(0));
  EXPECT_EQ(gpu.links[0].readings.speed_bytes_per_second, Reading(26.562e9));
  EXPECT_EQ(gpu.links[1].readings.speed_bytes_per_second, Reading(Missing::kNotSupported));
  EXPECT_EQ(gpu.links[1].readings.replay_errors_total, Reading(10));
  EXPECT_EQ(gpu.links[1].readings.recovery_errors_total, Reading(11));
  EXPECT_EQ(gpu.links[1].readings.crc_errors_total, Reading(12));
}

TEST_F(NvLinkTest, TakesRatesFromCountersWhereGpmDoesNotTellThem) {
  HaveTwoLinks();
  const auto count = [&](unsigned long long transmit, unsigned long long receive) {
    Put(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0, transmit);
    Put(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 0, receive);
  };
  count(1000, 5000);
  Read();  // shows that GPM has none
  EXPECT_EQ(Read().links[0].readings.transmit_bytes_per_second, Reading(Missing::kNeverSampled));
  count(1100, 5200);
  Gpu gpu = Read();
  EXPECT_EQ(gpu.links[0].readings.transmit_bytes_per_second, Reading(102'400));
  EXPECT_EQ(gpu.links[0].readings.receive_bytes_per_second, Reading(204'800));
  // The link that is down carries nothing and does not hide the sum.
  EXPECT_EQ(gpu.links[1].readings.transmit_bytes_per_second, Reading(Missing::kNotSupported));
  EXPECT_EQ(gpu.readings.nvlink_transmit_bytes_per_second, Reading(102'400));
  EXPECT_EQ(gpu.readings.nvlink_receive_bytes_per_second, Reading(204'800));
  count(50, 60);  // the driver was loaded again
  gpu = Read();
  EXPECT_EQ(gpu.links[0].readings.transmit_bytes_per_second, Reading(Missing::kNeverSampled));
}

TEST_F(NvLinkTest, CountsLinksOneByOneOnOldDrivers) {
  driver_.missing = {"nvmlDeviceGetFieldValues"};
  driver_.nvmlDeviceGetNvLinkState = [](nvmlDevice_t, unsigned int link, unsigned int* active) {
    *active = 1;
    return link < 6 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
  };
  const Gpu gpu = Read();
  EXPECT_EQ(gpu.readings.nvlink_links, Reading(6));
  EXPECT_EQ(gpu.readings.nvlink_links_active, Reading(6));
  EXPECT_EQ(gpu.links.size(), 6U);
}

TEST_F(NvLinkTest, KeepsItsLinksWhenTheirNumberCannotBeRead) {
  HaveTwoLinks();
  Read();
  driver_.fields[{NVML_FI_DEV_NVLINK_LINK_COUNT, 0}].result = NVML_ERROR_UNKNOWN;
  clock_.Advance(seconds(60));
  const Gpu gpu = Read();
  EXPECT_EQ(gpu.readings.nvlink_links, Reading(Missing::kDriverError));
  ASSERT_EQ(gpu.links.size(), 2U);
  EXPECT_EQ(gpu.links[0].readings.active, Reading(1));
}

TEST_F(NvLinkTest, HasNoneWhereTheGpuHasNone) {
  const Gpu gpu = Read();
  EXPECT_TRUE(gpu.links.empty());
  EXPECT_EQ(gpu.readings.nvlink_links, Reading(Missing::kNotSupported));
  EXPECT_EQ(gpu.readings.nvlink_links_active, Reading(Missing::kNotSupported));
  EXPECT_EQ(gpu.readings.nvlink_transmit_bytes_per_second, Reading(Missing::kNotSupported));
}

TEST_F(NvLinkTest, TakesPcieRatesFromCountersThatWrap) {
  driver_.AnswerFields();
  const auto count = [&](unsigned int bytes) {
    driver_.fields[{NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0}] = {NVML_SUCCESS, bytes,
                                                            NVML_VALUE_TYPE_UNSIGNED_INT};
    driver_.fields[{NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0}] = {NVML_SUCCESS, bytes,
                                                            NVML_VALUE_TYPE_UNSIGNED_INT};
  };
  count(4'294'967'000U);
  Read();
  EXPECT_EQ(Read().readings.pcie_transmit_bytes_per_second, Reading(Missing::kNeverSampled));
  count(704);
  EXPECT_EQ(Read().readings.pcie_transmit_bytes_per_second, Reading(1000));
  EXPECT_EQ(driver_.calls["nvmlDeviceGetPcieThroughput"], 0);
}

TEST_F(NvLinkTest, AsksForTheBlockingPcieRateOnlyAtTheSlowPace) {
  driver_.nvmlDeviceGetPcieThroughput = [](nvmlDevice_t, unsigned int counter, unsigned int* kb) {
    *kb = counter == NVML_PCIE_UTIL_TX_BYTES ? 5 : 7;
    return NVML_SUCCESS;
  };
  Read();
  Gpu gpu = Read();
  EXPECT_EQ(gpu.readings.pcie_transmit_bytes_per_second, Reading(5000));
  EXPECT_EQ(gpu.readings.pcie_receive_bytes_per_second, Reading(7000));
  for (int second = 2; second < 60; ++second) gpu = Read();
  EXPECT_EQ(gpu.readings.pcie_receive_bytes_per_second, Reading(7000));
  EXPECT_EQ(driver_.calls["nvmlDeviceGetPcieThroughput"], 2);
  Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceGetPcieThroughput"], 4);
}

}  // namespace
}  // namespace gpuassay
