// The HTTP server of the agent (libmicrohttpd, epoll): /metrics /healthz /readyz /api/v1/snapshot.
// It only ever looks at what is already there and never waits for the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "exposition/exposition.h"
#include "model/snapshot.h"

namespace gpuassay {

// What the server looks at. Thread-safe.
class LiveState {
 public:
  virtual ~LiveState() = default;
  // The newest state, its sources as they are now (an old success, a driver that hangs). Never
  // null.
  virtual SnapshotPtr Latest() const = 0;
  // Empty when every source is fresh; else one line per reason.
  virtual std::string NotReadyReason() const = 0;
};

struct ServerOptions {
  std::string address = ":9400";  // [HOST]:PORT; port 0 takes a free one
  ExpositionOptions exposition;
  std::uint32_t connections_max = 64;
  std::uint32_t request_timeout_s = 10;
};

class Server {
 public:
  // kMalformed: the address cannot be read; kIo: it cannot be bound (says why, "address in use").
  // `state` and `clock` outlive the server.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, const LiveState& state,
                                               const Clock& clock);
  virtual ~Server() = default;
  virtual std::uint16_t port() const = 0;
};

}  // namespace gpuassay
