#include "attribution/join/leavable_thread.h"

#include <utility>

namespace gpuassay {

LeavableThread::LeavableThread(std::function<void(const std::stop_token&)> work)
    : state_(std::make_shared<State>()),
      thread_([work = std::move(work), stop = stop_.get_token(), state = state_] {
        work(stop);
        const std::lock_guard lock(state->mutex);
        state->ended = true;
        state->changed.notify_all();
      }) {}

LeavableThread::~LeavableThread() {
  if (!thread_.joinable()) return;
  stop_.request_stop();
  bool ended = false;
  {
    std::unique_lock lock(state_->mutex);
    ended = state_->changed.wait_for(lock, kPatience, [this] { return state_->ended; });
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

bool LeavableThread::ended() const {
  const std::lock_guard lock(state_->mutex);
  return state_->ended;
}

void LeavableThread::Leave() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.detach();
}

}  // namespace gpuassay
