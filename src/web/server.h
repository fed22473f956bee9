// The HTTP server of the agent (libmicrohttpd, epoll): /metrics /healthz /readyz /api/v1/snapshot.
// It only ever looks at what is already there and never waits for the driver. One thread answers
// everything; a second one only ends connections that take too long.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/root_fs.h"
#include "exposition/exposition.h"
#include "model/snapshot.h"

namespace gpuassay {

// What the server looks at. Thread-safe.
class LiveState {
 public:
  virtual ~LiveState() = default;
  // The newest state, its sources as they are now (an old success, a driver that hangs). Never
  // null. What is rendered from a snapshot is kept as long as the same pointer comes back.
  virtual SnapshotPtr Latest() const = 0;
  // Empty when every source is fresh; else one line per reason.
  virtual std::string NotReadyReason() const = 0;
};

struct ServerOptions {
  std::string address = ":9400";  // [HOST]:PORT; port 0 takes a free one
  ExpositionOptions exposition;   // its format is what a request does not say
  std::uint32_t connections_max = 64;
  // Without progress; a whole request, answer included, may take kRequestTimeouts as long.
  std::uint32_t request_timeout_s = 10;
  // Where /proc/self is the serving process; without it there are no process_* metrics.
  std::optional<RootFs> root;
};

class Server {
 public:
  // A client that sends or takes one byte at a time is cut off after this many request timeouts.
  static constexpr std::uint32_t kRequestTimeouts = 3;
  // Request line and headers; a longer request is answered with 431 (414 for its first line).
  static constexpr std::size_t kRequestBytesMax = 16 * 1024;

  // kMalformed: the address cannot be read; kPermission, kIo: it cannot be bound (says why, "in use
  // by another program"). `state` and `clock` outlive the server.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, const LiveState& state,
                                               const Clock& clock);
  virtual ~Server() = default;
  virtual std::uint16_t port() const = 0;
};

}  // namespace gpuassay
