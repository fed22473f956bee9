#include "web/connection_watch.h"

#include <sys/socket.h>

namespace gpuassay {

ConnectionWatch::ConnectionWatch(const Clock& clock, Duration request_max)
    : clock_(clock),
      request_max_(request_max),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void ConnectionWatch::Opened(int socket) {
  {
    const std::lock_guard lock(mutex_);
    since_[socket] = clock_.Steady();
  }
  wake_.notify_one();
}

void ConnectionWatch::Answered(int socket) {
  const std::lock_guard lock(mutex_);
  const auto found = since_.find(socket);
  if (found != since_.end()) found->second = clock_.Steady();
}

void ConnectionWatch::Closed(int socket) {
  const std::lock_guard lock(mutex_);
  since_.erase(socket);
}

void ConnectionWatch::Run(const std::stop_token& stop) {
  constexpr auto kPause = std::chrono::seconds(1);
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, stop, [this] { return !since_.empty(); });
      wake_.wait_for(lock, stop, kPause, [] { return false; });
    }
    ShutDownOverdue();
  }
}

void ConnectionWatch::ShutDownOverdue() {
  const std::lock_guard lock(mutex_);
  const SteadyTime now = clock_.Steady();
  for (auto& [socket, since] : since_) {
    if (now - since <= request_max_) continue;
    shutdown(socket, SHUT_RDWR);  // the HTTP thread sees the end and closes it
    since = now;
  }
}

}  // namespace gpuassay
