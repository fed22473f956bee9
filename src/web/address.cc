#include "web/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace gpuassay {
namespace {

constexpr int kBacklog = 128;
constexpr std::size_t kHostBytesMax = 253;  // RFC 1035

std::unexpected<Error> Unreadable(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kMalformed,
              fmt::format("address \"{}\": {}; give [HOST]:PORT, as in :9400, 127.0.0.1:9400 or "
                          "[::1]:9400",
                          text, why));
}

std::optional<std::uint16_t> ParsePort(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

std::unexpected<Error> CannotListen(std::string_view text, int error_number) {
  if (error_number == EADDRINUSE) {
    return Fail(ErrorCode::kIo, fmt::format("address {} is in use by another program; choose "
                                            "another with --address",
                                            text));
  }
  if (error_number == EACCES || error_number == EPERM) {
    return Fail(ErrorCode::kPermission,
                fmt::format("address {} may not be used by this user (ports below 1024 need a "
                            "privilege); choose another with --address",
                            text));
  }
  if (error_number == EADDRNOTAVAIL) {
    return Fail(ErrorCode::kIo, fmt::format("address {} is not one of this machine; choose another "
                                            "with --address",
                                            text));
  }
  return Fail(ErrorCode::kIo,
              fmt::format("address {} cannot be used: {}", text, std::strerror(error_number)));
}

// The socket, or the errno that says why not.
std::expected<int, int> TryListen(int family, const sockaddr* address, socklen_t bytes,
                                  bool dual_stack) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::unexpected(errno);
  const int on = 1;
  const int v6_only = dual_stack ? 0 : 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  if (bind(fd, address, bytes) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error_number = errno;
  close(fd);
  return std::unexpected(error_number);
}

template <class SocketAddress>
const sockaddr* Generic(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

std::expected<int, int> ListenEverywhere(std::uint16_t port) {
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  any6.sin6_port = htons(port);
  const auto both = TryListen(AF_INET6, Generic(any6), sizeof any6, true);
  // Machines without IPv6 say either of these.
  if (both || (both.error() != EAFNOSUPPORT && both.error() != EADDRNOTAVAIL)) return both;
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_addr.s_addr = htonl(INADDR_ANY);
  any4.sin_port = htons(port);
  return TryListen(AF_INET, Generic(any4), sizeof any4, false);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

Result<int> ListenOnHost(const Address& address, std::string_view text) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  if (failure != 0) {
    return Fail(ErrorCode::kMalformed, fmt::format("address {}: host \"{}\" is not known ({})",
                                                   text, address.host, gai_strerror(failure)));
  }
  std::vector<const addrinfo*> candidates;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    candidates.push_back(entry);
  }
  std::stable_partition(candidates.begin(), candidates.end(),
                        [](const addrinfo* entry) { return entry->ai_family == AF_INET; });
  int error_number = EADDRNOTAVAIL;
  for (const addrinfo* entry : candidates) {
    const auto fd = TryListen(entry->ai_family, entry->ai_addr, entry->ai_addrlen, false);
    if (fd) return *fd;
    error_number = fd.error();
    if (error_number == EADDRINUSE) break;  // the same port of another family is no substitute
  }
  return CannotListen(text, error_number);
}

}  // namespace

Result<Address> ParseAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Unreadable(text, "no port");
  const std::optional<std::uint16_t> port = ParsePort(text.substr(colon + 1));
  if (!port) return Unreadable(text, "the port is no number from 0 to 65535");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') != host.ends_with(']')) return Unreadable(text, "unpaired bracket");
  if (host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
    in6_addr parsed = {};
    if (inet_pton(AF_INET6, std::string(host).c_str(), &parsed) != 1) {
      return Unreadable(text, "no IPv6 address in the brackets");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return Unreadable(text, "an IPv6 address needs brackets");
  }
  if (host == "*") host = "";
  if (host.size() > kHostBytesMax) return Unreadable("...", "the host is too long");
  return Address{.host = std::string(host), .port = *port};
}

Result<int> Listen(const Address& address, std::string_view text) {
  if (!address.host.empty()) return ListenOnHost(address, text);
  const auto fd = ListenEverywhere(address.port);
  if (!fd) return CannotListen(text, fd.error());
  return *fd;
}

Result<std::uint16_t> PortOf(int socket) {
  sockaddr_storage bound = {};
  socklen_t bytes = sizeof bound;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
    return Fail(ErrorCode::kIo, fmt::format("port of the server: {}", std::strerror(errno)));
  }
  if (bound.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

}  // namespace gpuassay
