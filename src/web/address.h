// The address a server listens on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuassay {

struct Address {
  std::string host;  // empty: every address of this machine; without the brackets of IPv6
  std::uint16_t port = 0;
};

// ":9400", "127.0.0.1:9400", "[::1]:9400", "localhost:9400", "*:9400". kMalformed with what is
// allowed.
Result<Address> ParseAddress(std::string_view text);

// A listening TCP socket, owned by the caller: non-blocking, closed on exec. `text` is what the
// user wrote, for messages. An empty host takes IPv6 and IPv4 where there is IPv6, else IPv4; a
// name takes its first address that works, IPv4 first.
Result<int> Listen(const Address& address, std::string_view text);

// The port of a bound socket.
Result<std::uint16_t> PortOf(int socket);

}  // namespace gpuassay
