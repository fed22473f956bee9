// The serving process's side of the driver worker: starts and replaces it, turns its readings into
// published snapshots (completion.h), and knows at any moment what is fresh, what hangs and
// where.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "agent/completion.h"
#include "agent/worker_policy.h"
#include "agent/worker_process.h"
#include "base/clock.h"
#include "model/snapshot.h"
#include "web/server.h"

namespace gpuassay {

struct SupervisorOptions {
  std::string program;  // this executable
  WorkerOptions worker;
  WorkerPolicyOptions policy;
  // While nothing can be read the last values stay visible, with their age, for this long; then
  // they are missing. Long enough for one lost scrape of 30 s, short enough not to be mistaken for
  // news.
  Duration stale_after = std::chrono::seconds(60);
  const Clock* clock = nullptr;  // outlives the supervisor
  // Called once when the source cannot be opened at all at the first try: wrong file, no NVML
  // library.
  std::function<void(const Error&)> on_bad_input;
};

// The newest snapshot; thread-safe. Not std::atomic<std::shared_ptr>: in libstdc++ 12 its load()
// gives the lock back without ordering, a race that ThreadSanitizer reports.
class NewestSnapshot {
 public:
  SnapshotPtr Get() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
  }
  void Set(SnapshotPtr snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_.swap(snapshot);  // the former one is freed after the lock, with the parameter
  }

 private:
  mutable std::mutex mutex_;  // guards snapshot_
  SnapshotPtr snapshot_;
};

// Thread-safe. One thread of its own does all the work.
class Supervisor final : public LiveState {
 public:
  // `completion`: null for one without a node around the source.
  explicit Supervisor(SupervisorOptions options, std::unique_ptr<Completion> completion = nullptr);
  ~Supervisor() override;  // asks the worker to end and kills it when it does not

  void Start();
  // Lets go of the devices: no worker until Resume(). Both return at once.
  void Release();
  void Resume();

  SnapshotPtr Latest() const override { return latest_.Get(); }
  std::string NotReadyReason() const override;

 private:
  enum class Request { kNone, kRelease, kResume };

  void Run(const std::stop_token& stop);
  void TakeRequest(SteadyTime now);
  void Act(SteadyTime now);
  void Wait(SteadyTime now);
  void StartWorker(SteadyTime now);
  void TakeFrames();
  void TakeSnapshot(std::string_view payload);
  void WorkerEnded(int exit_code);
  void LetGoOfWorker();
  void ReapAbandoned();
  void EndWorker();
  // Publishes the last reading with what is wrong with it, when that has changed.
  void PublishTrouble(SteadyTime now);
  std::string Trouble(SteadyTime now) const;
  Missing TroubleReason(SteadyTime now) const;
  std::string CallUnderWay() const;

  SupervisorOptions options_;
  NewestSnapshot latest_;
  std::atomic<Request> request_ = Request::kNone;
  int wake_fd_ = -1;

  // Only the thread touches what follows.
  WorkerPolicy policy_;
  std::unique_ptr<WorkerProcess> worker_;
  std::vector<std::unique_ptr<WorkerProcess>> abandoned_;
  FrameReader frames_;
  std::unique_ptr<Completion> completion_;
  SnapshotPtr last_reading_;  // null before the first
  SteadyTime last_reading_at_;
  std::string failure_;     // why the last worker ended; empty after a reading
  std::string last_words_;  // what a worker said before it ended
  Missing failure_reason_ = Missing::kNeverSampled;
  bool recording_ended_ = false;
  std::string published_trouble_;
  bool published_stale_ = false;
  std::uint64_t starts_ = 0;
  std::uint64_t published_starts_ = 0;

  std::jthread thread_;
};

}  // namespace gpuassay
