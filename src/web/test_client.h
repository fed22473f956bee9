// A client for the tests of the server: plain sockets, so that it can also behave badly.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace gpuassay {

class TestClient {
 public:
  explicit TestClient(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    // Far more than any answer takes: a test that hangs fails instead.
    const timeval limit = {.tv_sec = 30, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    connected_ = connect(socket_, generic, sizeof address) == 0;
  }
  ~TestClient() {
    if (socket_ >= 0) close(socket_);
  }
  TestClient(TestClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }

  void Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server has had enough
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Until the server closes.
  std::string ReadAll() {
    std::string all;
    while (ReadSome(all)) {
    }
    return all;
  }

  // One answer with Content-Length; the connection stays open.
  std::string ReadAnswer() {
    std::string all;
    for (;;) {
      const std::size_t head_end = all.find("\r\n\r\n");
      if (head_end != std::string::npos) {
        constexpr std::string_view kKey = "Content-Length: ";
        const std::size_t at = all.find(kKey);
        if (at == std::string::npos) return all;
        std::size_t length = 0;
        std::from_chars(all.data() + at + kKey.size(), all.data() + all.size(), length);
        if (all.size() >= head_end + 4 + length) return all;
      }
      if (!ReadSome(all)) return all;
    }
  }

 private:
  bool ReadSome(std::string& all) {
    std::array<char, 65536> chunk;
    const ssize_t got = recv(socket_, chunk.data(), chunk.size(), 0);
    if (got <= 0) return false;
    all.append(chunk.data(), static_cast<std::size_t>(got));
    return true;
  }

  int socket_;
  bool connected_ = false;
};

// One request on a connection of its own; the whole answer, head and body.
inline std::string Fetch(std::uint16_t port, std::string_view method, std::string_view path,
                         std::string_view headers = "") {
  TestClient client(port);
  EXPECT_TRUE(client.connected());
  client.Send(std::string(method) + " " + std::string(path) +
              " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + std::string(headers) +
              "\r\n");
  return client.ReadAll();
}

inline std::string BodyOf(const std::string& answer) {
  const std::size_t head_end = answer.find("\r\n\r\n");
  return head_end == std::string::npos ? "" : answer.substr(head_end + 4);
}

}  // namespace gpuassay
