// A thread for calls that may never come back: reading another process's environment waits for a
// lock that a process which hangs in a driver may hold for ever. Such a thread is left alone.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/clock.h"

namespace gpuassay {

// `work` must own, or share, all that it touches: it can outlive this object, not the program.
class LeavableThread {
 public:
  // How long the destructor waits for `work` to return after it has been asked to.
  static constexpr Duration kPatience = std::chrono::milliseconds(500);

  explicit LeavableThread(std::function<void(const std::stop_token&)> work);
  ~LeavableThread();
  LeavableThread(const LeavableThread&) = delete;
  LeavableThread& operator=(const LeavableThread&) = delete;

  bool ended() const;
  // Asks it to end and does not wait for it.
  void Leave();

 private:
  struct State {
    std::mutex mutex;  // guards ended
    std::condition_variable changed;
    bool ended = false;
  };

  std::shared_ptr<State> state_;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace gpuassay
