#include "agent/supervisor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "agent/script_worker.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <class Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

class SupervisorTest : public testing::Test {
 protected:
  std::unique_ptr<Supervisor> Start(const std::string& script, SourceSpec source = {}) {
    SupervisorOptions options;
    options.program = worker_.Program(script);
    options.clock = &clock_;
    options.worker.source = std::move(source);
    options.policy.hang_after = milliseconds(200);
    options.policy.replace_after = milliseconds(400);
    options.policy.backoff_first = milliseconds(10);
    options.stale_after = milliseconds(300);
    options.on_bad_input = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      bad_input_ = error.what;
    };
    auto supervisor = std::make_unique<Supervisor>(std::move(options));
    supervisor->Start();
    return supervisor;
  }
  std::string BadInput() {
    const std::lock_guard lock(mutex_);
    return bad_input_;
  }
  static bool HasPower(const Supervisor& supervisor, double watts) {
    const SnapshotPtr snapshot = supervisor.Latest();
    return snapshot->gpus.size() == 1 && snapshot->gpus[0].readings.power_watts == Reading(watts);
  }
  static const SourceStatus& Status(const SnapshotPtr& snapshot) { return snapshot->sources.at(0); }

  ScriptWorker worker_;
  SystemClock clock_;
  std::mutex mutex_;  // guards bad_input_
  std::string bad_input_;
};

TEST_F(SupervisorTest, HasAnAnswerBeforeTheFirstReading) {
  const auto supervisor = Start("exec sleep 60");
  ASSERT_NE(supervisor->Latest(), nullptr);
  EXPECT_EQ(supervisor->NotReadyReason().substr(0, 6), "nvml: ");
}

TEST_F(SupervisorTest, PublishesWhatTheWorkerRead) {
  worker_.SnapshotFile("one", 320);
  const auto supervisor = Start("cat one >&3; exec sleep 60");
  EXPECT_TRUE(Eventually([&] { return HasPower(*supervisor, 320); }));
  EXPECT_EQ(Status(supervisor->Latest()).readings.worker_starts_total, Reading(1));
}

TEST_F(SupervisorTest, AHangIsSaidAndThenTheValuesGoAndThenAnotherWorkerComes) {
  worker_.SnapshotFile("one", 320);
  const auto supervisor = Start("cat one >&3; exec sleep 60");
  EXPECT_TRUE(
      Eventually([&] { return Status(supervisor->Latest()).readings.hanging == Reading(1); }));
  EXPECT_EQ(Status(supervisor->Latest()).error, "no reading comes from the driver worker");
  EXPECT_EQ(Status(supervisor->Latest()).missing, Missing::kTimedOut);
  EXPECT_TRUE(Eventually([&] {
    const SnapshotPtr snapshot = supervisor->Latest();
    return snapshot->gpus.size() == 1 &&
           snapshot->gpus[0].readings.power_watts == Reading(Missing::kTimedOut);
  }));
  EXPECT_TRUE(Eventually(
      [&] { return Status(supervisor->Latest()).readings.worker_starts_total == Reading(2); }));
}

TEST_F(SupervisorTest, ACrashIsNamedAndTheWorkerReplaced) {
  worker_.SnapshotFile("one", 320);
  worker_.SnapshotFile("two", 640);
  const auto supervisor = Start(
      "if [ -e again ]; then cat two >&3; exec sleep 60; fi; touch again; cat one >&3; kill -SEGV "
      "$$");
  EXPECT_TRUE(Eventually([&] { return HasPower(*supervisor, 640); }));
}

TEST_F(SupervisorTest, AReadingThatFailedAsAWholeKeepsWhatIsKnown) {
  worker_.SnapshotFile("one", 320);
  worker_.SnapshotFile("failed", 0, "nvmlDeviceGetCount_v2: driver not loaded (9)");
  const auto supervisor = Start("cat one failed >&3; exec sleep 60");
  EXPECT_TRUE(Eventually([&] {
    return Status(supervisor->Latest()).error == "nvmlDeviceGetCount_v2: driver not loaded (9)";
  }));
  EXPECT_EQ(supervisor->Latest()->gpus.size(), 1U);
}

TEST_F(SupervisorTest, GarbageFromTheWorkerEndsItAndNotUs) {
  const auto supervisor = Start("printf 'Xgarbage' >&3; exec sleep 60");
  EXPECT_TRUE(Eventually(
      [&] { return Status(supervisor->Latest()).readings.worker_starts_total == Reading(2); }));
}

TEST_F(SupervisorTest, ASourceThatCannotBeOpenedAtTheFirstTryIsBadInput) {
  const auto supervisor =
      Start("printf 'E\\007\\000\\000\\000no such' >&3; exit 2", {SourceSpec::Kind::kNvml, "x.so"});
  EXPECT_TRUE(Eventually([&] { return BadInput() == "no such"; }));
}

TEST_F(SupervisorTest, TheDefaultLibraryIsWaitedFor) {
  const auto supervisor = Start("printf 'E\\007\\000\\000\\000no such' >&3; exit 3");
  EXPECT_TRUE(Eventually([&] { return Status(supervisor->Latest()).error == "no such"; }));
  EXPECT_EQ(BadInput(), "");
}

TEST_F(SupervisorTest, ReleaseEndsTheWorkerAndResumeStartsAnother) {
  worker_.SnapshotFile("one", 320);
  const auto supervisor = Start("cat one >&3; cat <&3 >/dev/null; exit 0");
  EXPECT_TRUE(Eventually([&] { return HasPower(*supervisor, 320); }));
  supervisor->Release();
  EXPECT_TRUE(Eventually(
      [&] { return Status(supervisor->Latest()).error == "devices released on request"; }));
  EXPECT_EQ(supervisor->Latest()->gpus[0].readings.power_watts, Reading(Missing::kReleased));
  supervisor->Resume();
  EXPECT_TRUE(Eventually([&] { return HasPower(*supervisor, 320); }));
}

}  // namespace
}  // namespace gpuassay
