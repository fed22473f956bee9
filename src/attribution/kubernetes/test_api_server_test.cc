#include "attribution/kubernetes/test_api_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gnutls/gnutls.h>
#include <gtest/gtest.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

#include "attribution/kubernetes/test_certificates.h"

namespace gpuassay {

class TestApiServer::Server {
 public:
  Server(Handler handler, bool tls) : handler_(std::move(handler)), tls_(tls) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
    if (tls) flags |= MHD_USE_TLS;
    const MHD_OptionItem tls_options[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, const_cast<char*>(kServerCertificate)},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(kServerKey)},
        {MHD_OPTION_HTTPS_MEM_TRUST, 0, const_cast<char*>(kTestCa)},
        {MHD_OPTION_END, 0, nullptr}};
    const MHD_OptionItem no_options[] = {{MHD_OPTION_END, 0, nullptr}};
    daemon_ = MHD_start_daemon(flags, 0, nullptr, nullptr, &Server::OnRequest, this,
                               MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_ARRAY,
                               tls ? tls_options : no_options, MHD_OPTION_END);
    EXPECT_NE(daemon_, nullptr);
  }
  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    MHD_stop_daemon(daemon_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string address() const {
    const MHD_DaemonInfo* info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT);
    return fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", info->port);
  }

  template <class Change>
  void ForStreams(Change change) {
    const std::lock_guard lock(mutex_);
    for (Stream& stream : streams_) change(stream);
    changed_.notify_all();
  }
  bool WaitForStreams(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(5), [&] { return opened_ >= count; });
  }

  struct Stream {
    Server* server = nullptr;
    std::string waiting;  // to be sent
    bool ended = false;
    bool cut = false;
  };

 private:
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                              const char* /*method*/, const char* /*version*/, const char* /*data*/,
                              std::size_t* /*size*/, void** /*state*/) {
    return static_cast<Server*>(self)->Answer(connection, url);
  }

  MHD_Result Answer(MHD_Connection* connection, const char* url) {
    TestRequest request;
    request.path = url;
    MHD_get_connection_values(
        connection, MHD_GET_ARGUMENT_KIND,
        [](void* query, MHD_ValueKind, const char* key, const char* value) {
          (*static_cast<std::map<std::string, std::string>*>(query))[key] = value ? value : "";
          return MHD_YES;
        },
        &request.query);
    const char* authorization =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    if (authorization != nullptr) request.authorization = authorization;
    if (tls_) request.client_certificate = HasCertificate(connection);
    const TestReply reply = handler_(request);
    if (reply.kind == TestReply::Kind::kHang) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closing_; });
      return MHD_NO;
    }
    MHD_Response* response =
        reply.kind == TestReply::Kind::kStream
            ? OpenStream(reply.body)
            : MHD_create_response_from_buffer(
                  reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
    if (reply.retry_after_s > 0) {
      MHD_add_response_header(response, "Retry-After", std::to_string(reply.retry_after_s).c_str());
    }
    const MHD_Result queued =
        MHD_queue_response(connection, static_cast<unsigned>(reply.status), response);
    MHD_destroy_response(response);
    return queued;
  }

  static bool HasCertificate(MHD_Connection* connection) {
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned count = 0;
    return gnutls_certificate_get_peers(static_cast<gnutls_session_t>(info->tls_session), &count) !=
               nullptr &&
           count > 0;
  }

  MHD_Response* OpenStream(const std::string& body) {
    const std::lock_guard lock(mutex_);
    Stream& stream = streams_.emplace_back();
    stream.server = this;
    stream.waiting = body;
    ++opened_;
    changed_.notify_all();
    constexpr std::size_t kBlockBytes = 65536;
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, &Server::OnRead,
                                             &stream, nullptr);
  }

  static ssize_t OnRead(void* stream_pointer, std::uint64_t /*position*/, char* buffer,
                        std::size_t size) {
    Stream& stream = *static_cast<Stream*>(stream_pointer);
    Server& server = *stream.server;
    std::unique_lock lock(server.mutex_);
    server.changed_.wait(lock, [&] {
      return !stream.waiting.empty() || stream.ended || stream.cut || server.closing_;
    });
    if (!stream.waiting.empty()) {
      const std::size_t sent = stream.waiting.copy(buffer, size);
      stream.waiting.erase(0, sent);
      return static_cast<ssize_t>(sent);
    }
    return stream.ended ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
  }

  const Handler handler_;
  const bool tls_;
  std::mutex mutex_;  // guards all below but daemon_
  std::condition_variable changed_;
  std::list<Stream> streams_;
  int opened_ = 0;
  bool closing_ = false;
  MHD_Daemon* daemon_ = nullptr;
};

TestApiServer::TestApiServer(Handler handler, bool tls)
    : server_(std::make_unique<Server>(std::move(handler), tls)) {}
TestApiServer::~TestApiServer() = default;
std::string TestApiServer::address() const { return server_->address(); }
void TestApiServer::Send(std::string_view text) {
  server_->ForStreams([&](Server::Stream& stream) {
    if (!stream.ended && !stream.cut) stream.waiting += text;
  });
}
void TestApiServer::EndStreams() {
  server_->ForStreams([](Server::Stream& stream) { stream.ended = true; });
}
void TestApiServer::CutStreams() {
  server_->ForStreams([](Server::Stream& stream) { stream.cut = true; });
}
bool TestApiServer::WaitForStreams(int count) { return server_->WaitForStreams(count); }

}  // namespace gpuassay
