#include "web/address.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace gpuassay {
namespace {

std::string Parsed(std::string_view text) {
  const Result<Address> address = ParseAddress(text);
  if (!address) return address.error().what;
  return address->host + "|" + std::to_string(address->port);
}

TEST(Address, EveryForm) {
  EXPECT_EQ(Parsed(":9400"), "|9400");
  EXPECT_EQ(Parsed("*:9400"), "|9400");
  EXPECT_EQ(Parsed("127.0.0.1:9400"), "127.0.0.1|9400");
  EXPECT_EQ(Parsed("[::1]:9400"), "::1|9400");
  EXPECT_EQ(Parsed("[::]:0"), "::|0");
  EXPECT_EQ(Parsed("localhost:65535"), "localhost|65535");
}

TEST(Address, BadOnesGetOneClearLine) {
  constexpr std::string_view kHint =
      "; give [HOST]:PORT, as in :9400, 127.0.0.1:9400 or [::1]:9400";
  EXPECT_EQ(Parsed("9400"), "address \"9400\": no port" + std::string(kHint));
  EXPECT_EQ(Parsed(""), "address \"\": no port" + std::string(kHint));
  EXPECT_EQ(Parsed(":65536"),
            "address \":65536\": the port is no number from 0 to 65535" + std::string(kHint));
  EXPECT_EQ(Parsed(":http"),
            "address \":http\": the port is no number from 0 to 65535" + std::string(kHint));
  EXPECT_EQ(Parsed("::1:9400"),
            "address \"::1:9400\": an IPv6 address needs brackets" + std::string(kHint));
  EXPECT_EQ(Parsed("[::1:9400"), "address \"[::1:9400\": unpaired bracket" + std::string(kHint));
  EXPECT_EQ(Parsed("[x]:9400"),
            "address \"[x]:9400\": no IPv6 address in the brackets" + std::string(kHint));
  EXPECT_EQ(Parsed(std::string(300, 'x') + ":1"),
            "address \"...\": the host is too long" + std::string(kHint));
  EXPECT_EQ(ParseAddress("x").error().code, ErrorCode::kMalformed);
}

TEST(Address, PortZeroTakesAFreeOne) {
  const Result<int> socket = Listen({.host = "127.0.0.1", .port = 0}, "127.0.0.1:0");
  ASSERT_TRUE(socket.has_value()) << socket.error().what;
  EXPECT_GT(*PortOf(*socket), 0);
  close(*socket);
}

TEST(Address, APortInUseSaysSo) {
  const Result<int> first = Listen({.host = "127.0.0.1", .port = 0}, "127.0.0.1:0");
  ASSERT_TRUE(first.has_value());
  const std::uint16_t port = *PortOf(*first);
  const std::string text = "127.0.0.1:" + std::to_string(port);
  const Result<int> second = Listen({.host = "127.0.0.1", .port = port}, text);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().what, "address " + text +
                                     " is in use by another program; choose another with "
                                     "--address");
  // Everywhere includes the address in use.
  EXPECT_FALSE(Listen({.host = "", .port = port}, ":x").has_value());
  close(*first);
}

TEST(Address, AnAddressOfAnotherMachineSaysSo) {
  const Result<int> socket = Listen({.host = "192.0.2.1", .port = 0}, "192.0.2.1:0");
  ASSERT_FALSE(socket.has_value());
  EXPECT_EQ(socket.error().what,
            "address 192.0.2.1:0 is not one of this machine; choose another with --address");
}

}  // namespace
}  // namespace gpuassay
