// Cuts off clients that keep a connection busy for too long. The inactivity timeout of the HTTP
// library starts anew with each byte, so a client that sends one now and then would hold its place
// for ever.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/clock.h"

namespace gpuassay {

class ConnectionWatch {
 public:
  // `clock` outlives the watch. A connection is shut down when `request_max` has passed since it
  // was opened or since its last answer was complete.
  ConnectionWatch(const Clock& clock, Duration request_max);

  // Called by the HTTP thread. Closed() comes before the socket is closed, so that a number that
  // has been given to another connection is never shut down. Thread-safe.
  void Opened(int socket);
  void Answered(int socket);
  void Closed(int socket);

  // Shuts overdue connections down, each once. Its own thread does so every second while there are
  // connections, and sleeps while there are none.
  void ShutDownOverdue();

 private:
  void Run(const std::stop_token& stop);

  const Clock& clock_;
  const Duration request_max_;
  std::mutex mutex_;  // guards since_
  std::map<int, SteadyTime> since_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace gpuassay
