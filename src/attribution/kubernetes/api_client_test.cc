#include "attribution/kubernetes/api_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attribution/kubernetes/test_api_server.h"
#include "attribution/kubernetes/test_certificates.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const SystemClock kClock;

ApiAccess At(std::string server) {
  ApiAccess access;
  access.server = std::move(server);
  return access;
}

TestReply Whole(int status, std::string body) {
  return {TestReply::Kind::kWhole, status, std::move(body), 0};
}
TestReply Stream(std::string body = "") {
  return {TestReply::Kind::kStream, 200, std::move(body), 0};
}

// Error of a GET, with the port taken out.
std::string GetError(const ApiAccess& access, Duration timeout = seconds(5)) {
  ApiClient client(kClock);
  const Result<ApiResponse> response = client.Get(access, "/x", timeout, 1000);
  if (response) return "";
  std::string what = response.error().what;
  if (const std::size_t at = what.find(access.server); at != std::string::npos) {
    what.replace(at, access.server.size(), "SERVER");
  }
  return what;
}

// A listening socket of 127.0.0.1 that nothing accepts from; closed by the caller.
int Listen(std::string& address) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(any);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&any), size), 0);
  EXPECT_EQ(listen(listener, 4), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&any), &size);
  address = fmt::format("http://127.0.0.1:{}", ntohs(any.sin_port));
  return listener;
}

TEST(ApiClientGet, SendsTheTokenAndReturnsWhatCame) {
  TestApiServer server([](const TestRequest& request) {
    return Whole(200, request.path + " " + request.query.at("a") + " " + request.authorization);
  });
  ApiAccess access = At(server.address());
  access.token = "secret";
  ApiClient client(kClock);
  const Result<ApiResponse> response = client.Get(access, "/p?a=b%3Dc", seconds(5), 1000);
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "/p b=c Bearer secret");
}

TEST(ApiClientGet, ReturnsTheBodyOfAnErrorAndWhenToComeAgain) {
  TestApiServer server([](const TestRequest&) {
    return TestReply{TestReply::Kind::kWhole, 429, "too many", 7};
  });
  ApiClient client(kClock);
  const Result<ApiResponse> response = client.Get(At(server.address()), "/", seconds(5), 10);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 429);
  EXPECT_EQ(response->body, "too many");
  EXPECT_EQ(response->retry_after, seconds(7));
}

TEST(ApiClientGet, TrustsTheClustersAuthorityAlone) {
  TestApiServer server([](const TestRequest&) { return Whole(200, "ok"); }, /*tls=*/true);
  ApiAccess access = At(server.address());
  access.ca_pem = kTestCa;
  EXPECT_EQ(GetError(access), "");
  access.ca_pem = kOtherCa;
  EXPECT_EQ(GetError(access).substr(0, 44), "the certificate of SERVER is not trusted: SS");
  access.insecure = true;
  EXPECT_EQ(GetError(access), "");
  access.insecure = false;
  access.ca_pem.clear();  // the authorities of the system have not signed it
  EXPECT_EQ(GetError(access).substr(0, 44), "the certificate of SERVER is not trusted: SS");
}

TEST(ApiClientGet, ShowsItsCertificate) {
  TestApiServer server(
      [](const TestRequest& request) { return Whole(request.client_certificate ? 200 : 401, ""); },
      /*tls=*/true);
  ApiAccess access = At(server.address());
  access.ca_pem = kTestCa;
  ApiClient client(kClock);
  EXPECT_EQ(client.Get(access, "/", seconds(5), 10).value().status, 401);
  access.certificate_pem = kClientCertificate;
  access.key_pem = kClientKey;
  EXPECT_EQ(client.Get(access, "/", seconds(5), 10).value().status, 200);
  access.key_pem = "no key";
  EXPECT_EQ(client.Get(access, "/", seconds(5), 10).error().code, ErrorCode::kPermission);
}

TEST(ApiClientGet, SaysWhatIsWrongWithTheConnection) {
  std::string address;
  close(Listen(address));
  EXPECT_EQ(GetError(At(address)).substr(0, 24), "SERVER: Failed to connec");
  const int silent = Listen(address);
  EXPECT_EQ(GetError(At(address), milliseconds(50)), "SERVER has not answered within 50ms");
  close(silent);
}

TEST(ApiClientGet, SaysThatAnAnswerIsNotHttp) {
  std::string address;
  const int listener = Listen(address);
  std::jthread peer([listener] {
    const int connection = accept(listener, nullptr, nullptr);
    char request[1000];
    EXPECT_GT(recv(connection, request, sizeof(request), 0), 0);
    EXPECT_GT(send(connection, "SSH-2.0-x\r\n", 11, 0), 0);
    close(connection);
  });
  EXPECT_EQ(GetError(At(address)), "SERVER: Received HTTP/0.9 when not allowed");
  close(listener);
}

TEST(ApiClientGet, RefusesALongAnswer) {
  TestApiServer server([](const TestRequest&) { return Whole(200, std::string(1001, 'x')); });
  EXPECT_EQ(GetError(At(server.address())), "SERVER has sent more than 1000 bytes in one answer");
}

TEST(ApiClientGet, KeepsOnlyTheBeginningOfALongError) {
  TestApiServer server([](const TestRequest&) { return Whole(500, std::string(1 << 20, 'x')); });
  ApiClient client(kClock);
  const Result<ApiResponse> response = client.Get(At(server.address()), "/", seconds(5), 10);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 500);
  EXPECT_LE(response->body.size(), 65536u);
}

class ApiClientStream : public testing::Test {
 protected:
  Result<ApiResponse> Run(Duration timeout = seconds(5), Duration length_max = seconds(20)) {
    return client_.Stream(At(server_.address()), "/w?watch=1", timeout, length_max, 100,
                          [this](std::string_view line) {
                            lines_.emplace_back(line);
                            return line != "enough";
                          });
  }

  void Reply(TestReply reply) {
    const std::lock_guard lock(mutex_);
    reply_ = std::move(reply);
  }

  std::vector<std::string> lines_;
  std::mutex mutex_;
  TestReply reply_ = Stream();
  ApiClient client_{kClock};
  TestApiServer server_{[this](const TestRequest&) {
    const std::lock_guard lock(mutex_);
    return reply_;
  }};
};

TEST_F(ApiClientStream, GivesLinesAsTheyCome) {
  Reply(Stream("one\n\ntw"));
  std::jthread sender([this] {
    server_.WaitForStreams(1);
    server_.Send("o\nthree\n");
    server_.EndStreams();
  });
  const Result<ApiResponse> response = Run();
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(lines_, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_FALSE(response->half_line);
  EXPECT_FALSE(response->interrupted);
}

TEST_F(ApiClientStream, SaysThatTheLastLineHasNoEnd) {
  Reply(Stream("one\ntw"));
  std::jthread sender([this] {
    server_.WaitForStreams(1);
    server_.EndStreams();
  });
  const Result<ApiResponse> response = Run();
  ASSERT_TRUE(response);
  EXPECT_EQ(lines_, std::vector<std::string>{"one"});
  EXPECT_TRUE(response->half_line);
}

TEST_F(ApiClientStream, FailsWhenItIsCutInTheMiddle) {
  Reply(Stream("one\ntw"));
  std::jthread sender([this] {
    server_.WaitForStreams(1);
    server_.CutStreams();
  });
  EXPECT_EQ(Run().error().code, ErrorCode::kIo);
  EXPECT_EQ(lines_, std::vector<std::string>{"one"});
}

TEST_F(ApiClientStream, RefusesALongLine) {
  Reply(Stream(std::string(10 << 20, 'x')));
  EXPECT_EQ(Run().error().code, ErrorCode::kMalformed);
}

TEST_F(ApiClientStream, EndsWhenTheLinesAreEnough) {
  Reply(Stream("enough\nmore\n"));
  EXPECT_TRUE(Run().value().interrupted);
  EXPECT_EQ(lines_, std::vector<std::string>{"enough"});
}

TEST_F(ApiClientStream, ReturnsTheBodyOfAnError) {
  Reply(Whole(410, "gone"));
  const Result<ApiResponse> response = Run();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 410);
  EXPECT_EQ(response->body, "gone");
}

TEST_F(ApiClientStream, GivesUpOnAServerThatHangs) {
  Reply({.kind = TestReply::Kind::kHang, .body = ""});
  EXPECT_EQ(Run(milliseconds(50)).error().code, ErrorCode::kTimeout);
  Reply(Stream("one\n"));
  EXPECT_EQ(Run(seconds(5), milliseconds(50)).error().code, ErrorCode::kTimeout);
}

TEST_F(ApiClientStream, EndsAtOnceWhenInterruptedOrStopped) {
  const SteadyTime start = kClock.Steady();
  std::jthread other([this] {
    server_.WaitForStreams(1);
    client_.Interrupt();
    server_.WaitForStreams(2);
    client_.Stop();
  });
  EXPECT_TRUE(Run().value().interrupted);
  EXPECT_TRUE(Run().value().interrupted);
  EXPECT_TRUE(client_.Get(At(server_.address()), "/", seconds(5), 10).value().interrupted);
  EXPECT_LT(kClock.Steady() - start, seconds(2));
}

TEST(PercentEncode, LeavesOnlyWhatAQueryMayHave) {
  EXPECT_EQ(PercentEncode("spec.nodeName=node-1_~"), "spec.nodeName%3Dnode-1_~");
  EXPECT_EQ(PercentEncode("a b/c&d\xC3"), "a%20b%2Fc%26d%C3");
}

}  // namespace
}  // namespace gpuassay
