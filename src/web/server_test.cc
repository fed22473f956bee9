#include "web/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exposition/example_snapshot.h"
#include "model/snapshot_json.h"
#include "views/views_json.h"
#include "web/test_client.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

Snapshot WithSource(double power_watts = 320) {
  Snapshot snapshot = ExampleSnapshot();
  snapshot.gpus[0].readings.power_watts = power_watts;
  SourceStatus source;
  source.name = "nvml";
  source.last_success = snapshot.time;
  source.readings.up = 1;
  snapshot.sources = {source};
  return snapshot;
}

class FakeState final : public LiveState {
 public:
  FakeState() { Set(WithSource()); }
  SnapshotPtr Latest() const override {
    const std::lock_guard lock(mutex_);
    return snapshot_;
  }
  std::string NotReadyReason() const override {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  void Set(Snapshot snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_ = std::make_shared<const Snapshot>(std::move(snapshot));
  }
  void SetReason(std::string reason) {
    const std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
  }

 private:
  mutable std::mutex mutex_;  // guards all
  SnapshotPtr snapshot_;
  std::string reason_;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void Start(ServerOptions options) {
    options.address = "127.0.0.1:0";
    server_.reset();
    Result<std::unique_ptr<Server>> server = Server::Start(std::move(options), state_, clock_);
    ASSERT_TRUE(server.has_value()) << server.error().what;
    server_ = std::move(*server);
  }
  std::string Get(std::string_view path, std::string_view headers = "") {
    return Fetch(server_->port(), "GET", path, headers);
  }

  FakeState state_;
  VirtualClock clock_{WallTime(seconds(1'700'000'002))};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, MetricsAreTextByDefault) {
  const std::string answer = Get("/metrics");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer.substr(0, 200);
  EXPECT_NE(answer.find("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            std::string::npos);
  EXPECT_NE(answer.find("\ngpuassay_source_age_seconds{source=\"nvml\",hostname=\"node1\"} 2\n"),
            std::string::npos);
  EXPECT_NE(answer.find("\nDCGM_FI_DEV_POWER_USAGE{"), std::string::npos);
  EXPECT_NE(answer.find("\ngpuassay_ready 1\n"), std::string::npos);
  EXPECT_EQ(answer.find("# EOF"), std::string::npos);
}

TEST_F(ServerTest, OpenMetricsWhenAskedFor) {
  const std::string answer =
      Get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
  EXPECT_NE(answer.find(
                "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
            std::string::npos);
  EXPECT_TRUE(answer.ends_with("\n# EOF\n"));
}

TEST_F(ServerTest, TheBodyIsTheRenderedSnapshotAndTheLivePart) {
  const std::string body = BodyOf(Get("/metrics"));
  EXPECT_TRUE(body.starts_with(RenderMetrics(*state_.Latest(), {})));
  // The same snapshot again: the kept text.
  EXPECT_TRUE(BodyOf(Get("/metrics")).starts_with(RenderMetrics(*state_.Latest(), {})));
}

TEST_F(ServerTest, ANewSnapshotIsServedAtOnce) {
  Get("/metrics");
  state_.Set(WithSource(111));
  EXPECT_NE(Get("/metrics").find("hostname=\"node1\"} 111\n"), std::string::npos);
}

TEST_F(ServerTest, HeadHasTheHeadersAndNoBody) {
  const std::string answer = Fetch(server_->port(), "HEAD", "/metrics");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(answer.find("\r\nContent-Length: "), std::string::npos);
  EXPECT_EQ(BodyOf(answer), "");
}

TEST_F(ServerTest, OtherMethodsAreRefused) {
  for (const std::string_view method : {"POST", "PUT", "DELETE", "OPTIONS", "BREW"}) {
    const std::string answer = Fetch(server_->port(), method, "/metrics");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << answer;
    EXPECT_NE(answer.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos);
  }
}

TEST_F(ServerTest, ABodyIsNotReadAndDoesNotConfuseTheConnection) {
  const std::string answer =
      Fetch(server_->port(), "POST", "/metrics", "Content-Length: 1000000000\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << answer;
}

TEST_F(ServerTest, UnknownPathsListTheKnownOnesAndEchoNothing) {
  const std::string answer = Get("/<script>alert(1)</script>?x=<b>");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_EQ(
      BodyOf(answer),
      "not found; there are:\n/\n/metrics\n/healthz\n/readyz\n/api/v1/snapshot\n/api/v1/views\n");
  EXPECT_EQ(answer.find("script"), std::string::npos);
}

TEST_F(ServerTest, AQueryIsIgnored) {
  EXPECT_TRUE(Get("/metrics?collect[]=x").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(ServerTest, HealthIsAboutThisProcess) {
  EXPECT_EQ(BodyOf(Get("/healthz")), "ok\nnvml: up, read 2.0 s ago\n");
  Snapshot hanging = WithSource();
  hanging.sources[0].error = "the driver has not answered for 12 s\nsecond line";
  state_.Set(hanging);
  state_.SetReason("nvml: the driver has not answered for 12 s");
  const std::string answer = Get("/health");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(BodyOf(answer),
            "ok\nnvml: the driver has not answered for 12 s second line, read 2.0 s ago\n");
}

TEST_F(ServerTest, ReadyIsAboutTheSources) {
  EXPECT_EQ(BodyOf(Get("/readyz")), "ready\n");
  state_.SetReason("nvml: nothing read yet");
  const std::string answer = Get("/readyz");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_EQ(BodyOf(answer), "nvml: nothing read yet\n");
  EXPECT_NE(Get("/metrics").find("\ngpuassay_ready 0\n"), std::string::npos);
}

TEST_F(ServerTest, TheSnapshotIsJson) {
  const std::string answer = Get("/api/v1/snapshot");
  EXPECT_NE(answer.find("\r\nContent-Type: application/json\r\n"), std::string::npos);
  EXPECT_EQ(BodyOf(answer), SnapshotJson(*state_.Latest()) + "\n");
}

TEST_F(ServerTest, TheViewsAreJsonOfTheNewestSnapshot) {
  const std::string answer = Get("/api/v1/views");
  EXPECT_NE(answer.find("\r\nContent-Type: application/json\r\n"), std::string::npos);
  EXPECT_EQ(BodyOf(answer), ViewsJson(*state_.Latest()) + "\n");
  Snapshot next = WithSource();
  next.node.hostname = "another-node";
  state_.Set(next);
  EXPECT_NE(Get("/api/v1/views").find("\"hostname\":\"another-node\""), std::string::npos);
}

TEST_F(ServerTest, TheIndexLinksToThePages) {
  const std::string answer = Get("/");
  EXPECT_NE(answer.find("\r\nContent-Type: text/html; charset=utf-8\r\n"), std::string::npos);
  EXPECT_NE(answer.find("\r\nX-Content-Type-Options: nosniff\r\n"), std::string::npos);
  EXPECT_NE(answer.find("<a href=\"/metrics\">"), std::string::npos);
}

TEST_F(ServerTest, CountsItsRequestsByKnownPathAndCode) {
  Get("/metrics");
  Get("/a");
  Get("/b");
  Fetch(server_->port(), "POST", "/");
  const std::string body = BodyOf(Get("/metrics"));
  EXPECT_NE(body.find("\ngpuassay_http_requests_total{path=\"/\",code=\"405\"} 1\n"
                      "gpuassay_http_requests_total{path=\"/metrics\",code=\"200\"} 1\n"
                      "gpuassay_http_requests_total{path=\"other\",code=\"404\"} 2\n"),
            std::string::npos);
}

TEST_F(ServerTest, OwnUseWhenToldWhereItsProcIs) {
  EXPECT_EQ(Get("/metrics").find("process_cpu_seconds_total"), std::string::npos);
  ServerOptions options;
  options.root = *RootFs::Open("/");
  Start(std::move(options));
  EXPECT_NE(Get("/metrics").find("\nprocess_resident_memory_bytes "), std::string::npos);
}

TEST_F(ServerTest, OneConnectionServesManyRequests) {
  TestClient client(server_->port());
  for (int i = 0; i < 5; ++i) {
    client.Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(BodyOf(client.ReadAnswer()), "ready\n");
  }
}

TEST_F(ServerTest, NonsenseIsRefused) {
  using std::string_view_literals::operator""sv;
  ServerOptions options;
  options.request_timeout_s = 1;  // some of it looks like the beginning of a request
  Start(std::move(options));
  for (const std::string_view nonsense :
       {"\x16\x03\x01\x02\x00\x01\r\n\r\n"sv, "GET\r\n\r\n"sv, "\0\0\0\0\n\n"sv}) {
    TestClient client(server_->port());
    client.Send(nonsense);
    const std::string answer = client.ReadAll();
    EXPECT_EQ(answer.find(" 200 "), std::string::npos) << answer;
  }
  EXPECT_TRUE(Get("/readyz").starts_with("HTTP/1.1 200"));
}

TEST_F(ServerTest, TooLongHeadersAreRefused) {
  const std::string answer =
      Get("/metrics", "X-Long: " + std::string(Server::kRequestBytesMax, 'x') + "\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 431 ")) << answer.substr(0, 100);
  const std::string long_path = Get("/" + std::string(Server::kRequestBytesMax, 'x'));
  EXPECT_TRUE(long_path.starts_with("HTTP/1.1 414 ")) << long_path.substr(0, 100);
}

TEST_F(ServerTest, ASlowClientIsCutOff) {
  TestClient slow(server_->port());
  slow.Send("GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  TestClient other(server_->port());
  other.Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(other.ReadAnswer()), "ready\n");
  clock_.Advance(seconds(31));
  EXPECT_EQ(slow.ReadAll(), "");  // closed without an answer
}

TEST_F(ServerTest, AsManyClientsAsAllowedAndTheNextWaitsForItsTurn) {
  std::vector<TestClient> clients;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back(server_->port());
    ASSERT_TRUE(clients.back().connected());
  }
  for (TestClient& client : clients) client.Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
  for (TestClient& client : clients) EXPECT_EQ(BodyOf(client.ReadAnswer()), "ready\n");
  TestClient next(server_->port());
  next.Send("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  clients.clear();
  EXPECT_EQ(BodyOf(next.ReadAll()), "ready\n");
}

TEST_F(ServerTest, TheStateMayChangeWhileItIsScraped) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    double watts = 0;
    while (!stop) {
      state_.Set(WithSource(++watts));
      state_.SetReason(static_cast<int>(watts) % 2 == 0 ? "" : "odd");
    }
  });
  std::vector<std::thread> readers;
  std::atomic<int> whole = 0;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      for (int i = 0; i < 50; ++i) {
        const bool open = (i + reader) % 2 == 0;
        const std::string answer =
            Get("/metrics", open ? "Accept: application/openmetrics-text\r\n" : "");
        const bool begins = BodyOf(answer).starts_with("# HELP gpuassay_build");
        const bool ends = answer.ends_with(open ? "\n# EOF\n" : "\n");
        if (begins && ends) ++whole;
        Get("/api/v1/snapshot");
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  stop = true;
  writer.join();
  EXPECT_EQ(whole, 200);
}

TEST_F(ServerTest, APortInUseIsOneClearLine) {
  ServerOptions options;
  options.address = "127.0.0.1:" + std::to_string(server_->port());
  const auto second = Server::Start(options, state_, clock_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().what, "address " + options.address +
                                     " is in use by another program; choose another with "
                                     "--address");
}

TEST_F(ServerTest, AnUnreadableAddressIsBadInput) {
  ServerOptions options;
  options.address = "9400";
  EXPECT_EQ(Server::Start(options, state_, clock_).error().code, ErrorCode::kMalformed);
}

}  // namespace
}  // namespace gpuassay
