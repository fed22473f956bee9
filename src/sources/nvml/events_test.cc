#include "sources/nvml/events.h"

#include <gtest/gtest.h>

#include <deque>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

class EventsTest : public testing::Test {
 protected:
  EventsTest() {
    driver_.nvmlEventSetCreate = [this](nvmlEventSet_t* set) {
      *set = reinterpret_cast<nvmlEventSet_t>(std::uintptr_t{++sets_});
      registered_.clear();
      return NVML_SUCCESS;
    };
    driver_.nvmlEventSetFree = [this](nvmlEventSet_t) {
      ++freed_;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetSupportedEventTypes = [](nvmlDevice_t, unsigned long long* types) {
      *types = 0x8 | 0x10 | 0x1;
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceRegisterEvents = [this](nvmlDevice_t device, unsigned long long types,
                                              nvmlEventSet_t) {
      registered_[FakeDriver::IndexOf(device)] = types;
      return NVML_SUCCESS;
    };
    driver_.nvmlEventSetWait_v2 = [this](nvmlEventSet_t, nvmlEventData_t* data,
                                         unsigned int timeout) -> nvmlReturn_t {
      EXPECT_EQ(timeout, 0U);
      if (lost_gpu_ < 2 && registered_.contains(lost_gpu_)) return NVML_ERROR_GPU_IS_LOST;
      if (queue_.empty()) return NVML_ERROR_TIMEOUT;
      *data = queue_.front();
      queue_.pop_front();
      return NVML_SUCCESS;
    };
    driver_.nvmlDeviceGetUtilizationRates = [this](nvmlDevice_t device, nvmlUtilization_t*) {
      return FakeDriver::IndexOf(device) == lost_gpu_ ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
    };
  }
  Snapshot Read() {
    if (!source_) source_ = driver_.Open(clock_);
    Snapshot snapshot = source_->Read();
    clock_.Advance(seconds(1));
    return snapshot;
  }
  void Arrive(unsigned int gpu, unsigned long long type, unsigned long long data) {
    queue_.push_back({FakeDriver::Handle(gpu), type, data, 0xFFFFFFFF, 0xFFFFFFFF});
  }

  VirtualClock clock_{WallTime(seconds(1'700'000'000))};
  FakeDriver driver_{2};
  std::unique_ptr<Source> source_;
  unsigned int sets_ = 0;
  int freed_ = 0;
  unsigned int lost_gpu_ = 99;
  std::map<unsigned int, unsigned long long> registered_;
  std::deque<nvmlEventData_t> queue_;
};

TEST_F(EventsTest, ListensOnlyToWhatTheGpuHas) {
  Read();
  EXPECT_EQ(registered_, (std::map<unsigned int, unsigned long long>{{0, 0x9}, {1, 0x9}}));
  Read();
  EXPECT_EQ(driver_.calls["nvmlDeviceRegisterEvents"], 2);
}

TEST_F(EventsTest, TellsEachEventOnceWithItsGpu) {
  Read();
  Arrive(1, nvmlEventTypeXidCriticalError, 79);
  queue_.push_back({FakeDriver::Handle(0), nvmlEventTypeXidCriticalError, 31, 4, 0});
  Arrive(0, 0x10, 0);  // a clock change, which nobody asked for
  Arrive(0, nvmlEventTypeDoubleBitEccError, 0);
  Snapshot snapshot = Read();
  ASSERT_EQ(snapshot.events.size(), 3U);
  EXPECT_EQ(snapshot.events[0].kind, EventKind::kXid);
  EXPECT_EQ(snapshot.events[0].gpu_uuid, "GPU-1");
  EXPECT_EQ(snapshot.events[0].data, 79U);
  EXPECT_EQ(snapshot.events[0].time, WallTime(seconds(1'700'000'001)));
  EXPECT_FALSE(snapshot.events[0].gpu_instance_id);
  EXPECT_EQ(snapshot.events[1].gpu_instance_id, 4U);
  EXPECT_EQ(snapshot.events[2].kind, EventKind::kDoubleBitEcc);
  EXPECT_TRUE(Read().events.empty());
}

TEST_F(EventsTest, LeavesWhatExceedsTheBoundForTheNextCycle) {
  Read();
  for (unsigned int i = 0; i < 300; ++i) Arrive(0, nvmlEventTypeXidCriticalError, i);
  EXPECT_EQ(Read().events.size(), 256U);
  const Snapshot snapshot = Read();
  ASSERT_EQ(snapshot.events.size(), 44U);
  EXPECT_EQ(snapshot.events[0].data, 256U);
}

TEST_F(EventsTest, MakesTheSetAnewWithoutALostGpu) {
  Read();
  lost_gpu_ = 0;
  Arrive(1, nvmlEventTypeXidCriticalError, 31);
  const Snapshot snapshot = Read();
  EXPECT_EQ(sets_, 2U);
  EXPECT_EQ(freed_, 1);
  EXPECT_EQ(registered_, (std::map<unsigned int, unsigned long long>{{1, 0x9}}));
  ASSERT_EQ(snapshot.events.size(), 1U);  // of the other GPU, in the same cycle
  EXPECT_EQ(snapshot.events[0].gpu_uuid, "GPU-1");
  Read();
  EXPECT_EQ(sets_, 2U);
  lost_gpu_ = 99;
  Read();  // GPU 0 answers again
  Read();
  EXPECT_EQ(registered_.size(), 2U);
}

TEST_F(EventsTest, DoesWithoutEventsWhereTheLibraryHasNone) {
  driver_.missing = {"nvmlEventSetCreate", "nvmlEventSetWait_v2"};
  EXPECT_TRUE(Read().events.empty());
  EXPECT_EQ(Read().sources[0].error, "");
}

TEST_F(EventsTest, FreesItsSet) {
  Read();
  source_.reset();
  EXPECT_EQ(freed_, 1);
}

}  // namespace
}  // namespace gpuassay
