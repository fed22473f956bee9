#include "web/server.h"

#include <microhttpd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "model/snapshot_json.h"
#include "views/views_json.h"
#include "web/accept.h"
#include "web/address.h"
#include "web/connection_watch.h"
#include "web/pages.h"

namespace gpuassay {
namespace {

// What a path is counted under; everything unknown is one of them, so that a scan of the server
// makes no series.
constexpr std::array<std::string_view, 8> kPaths = {
    "/",       "/metrics",         "/healthz",      "/health",
    "/readyz", "/api/v1/snapshot", "/api/v1/views", "other"};
constexpr std::array<int, 5> kCodes = {200, 404, 405, 500, 503};
constexpr std::size_t kOtherPath = kPaths.size() - 1;

std::size_t PathIndex(std::string_view path) {
  for (std::size_t i = 0; i < kOtherPath; ++i) {
    if (kPaths[i] == path) return i;
  }
  return kOtherPath;
}

class RequestCounts {
 public:
  void Count(std::size_t path, int code) {
    for (std::size_t i = 0; i < kCodes.size(); ++i) {
      if (kCodes[i] == code) counts_[path][i].fetch_add(1, std::memory_order_relaxed);
    }
  }
  std::vector<RequestCount> Get() const {
    std::vector<RequestCount> counts;
    for (std::size_t path = 0; path < kPaths.size(); ++path) {
      for (std::size_t code = 0; code < kCodes.size(); ++code) {
        const std::uint64_t count = counts_[path][code].load(std::memory_order_relaxed);
        if (count > 0) counts.push_back({kPaths[path], kCodes[code], count});
      }
    }
    return counts;
  }

 private:
  std::array<std::array<std::atomic<std::uint64_t>, kCodes.size()>, kPaths.size()> counts_{};
};

// What was rendered from the newest snapshot. Only the HTTP thread touches it.
struct Kept {
  SnapshotPtr snapshot;
  std::shared_ptr<const std::string> text;

  template <class Render>
  std::shared_ptr<const std::string> Get(const SnapshotPtr& newest, const Render& render) {
    if (snapshot != newest) {
      text = std::make_shared<const std::string>(render(*newest));
      snapshot = newest;
    }
    return text;
  }
};

struct Reply {
  int code = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> kept;  // may be null
  std::string text;                         // comes after `kept`
};

struct DestroyResponse {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
using ResponsePtr = std::unique_ptr<MHD_Response, DestroyResponse>;

void FreeReply(void* reply) { std::unique_ptr<Reply>(static_cast<Reply*>(reply)).reset(); }

// Sends from where the texts lie, without a copy; the library frees the reply when it is done.
ResponsePtr MakeResponse(Reply reply) {
  const std::string_view content_type = reply.content_type;
  auto owned = std::make_unique<Reply>(std::move(reply));
  std::array<MHD_IoVec, 2> parts{};
  unsigned int count = 0;
  if (owned->kept && !owned->kept->empty()) {
    parts[count++] = {owned->kept->data(), owned->kept->size()};
  }
  if (!owned->text.empty()) parts[count++] = {owned->text.data(), owned->text.size()};
  ResponsePtr response(
      MHD_create_response_from_iovec(parts.data(), count, &FreeReply, owned.get()));
  if (!response) return nullptr;
  owned.release();
  const auto add = [&response](const char* name, std::string_view value) {
    MHD_add_response_header(response.get(), name, std::string(value).c_str());
  };
  add("Content-Type", content_type);
  add("X-Content-Type-Options", "nosniff");
  add("Cache-Control", "no-store");
  add("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  return response;
}

// The library's own messages are about single clients: not worth a line of the log by default.
void LogFromLibrary(void*, const char* format, va_list arguments) {
  std::array<char, 256> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string_view text = line.data();
  if (text.ends_with('\n')) text.remove_suffix(1);
  LogDebug("http: " + std::string(text));
}

class MhdServer final : public Server {
 public:
  MhdServer(ServerOptions options, const LiveState& state, const Clock& clock)
      : options_(std::move(options)),
        state_(state),
        clock_(clock),
        watch_(clock, std::chrono::seconds(options_.request_timeout_s * kRequestTimeouts)) {}

  ~MhdServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);  // closes the listening socket as well
  }
  MhdServer(const MhdServer&) = delete;
  MhdServer& operator=(const MhdServer&) = delete;

  // Takes the socket.
  Result<void> Run(int socket) {
    const Result<std::uint16_t> port = PortOf(socket);
    if (port) {
      port_ = *port;
      daemon_ = MHD_start_daemon(
          MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, nullptr, nullptr, &OnRequest, this,
          MHD_OPTION_EXTERNAL_LOGGER, &LogFromLibrary, nullptr, MHD_OPTION_LISTEN_SOCKET, socket,
          MHD_OPTION_CONNECTION_LIMIT, options_.connections_max, MHD_OPTION_CONNECTION_TIMEOUT,
          options_.request_timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestBytesMax,
          MHD_OPTION_NOTIFY_CONNECTION, &OnConnection, this, MHD_OPTION_NOTIFY_COMPLETED,
          &OnCompleted, this, MHD_OPTION_END);
    }
    if (daemon_ != nullptr) return {};
    close(socket);
    return Fail(ErrorCode::kIo, "the HTTP server cannot be started");
  }

  std::uint16_t port() const override { return port_; }

 private:
  static int SocketOf(MHD_Connection* connection) {
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == nullptr ? -1 : info->connect_fd;
  }

  static void OnConnection(void* self, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode code) {
    ConnectionWatch& watch = static_cast<MhdServer*>(self)->watch_;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) watch.Opened(SocketOf(connection));
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) watch.Closed(SocketOf(connection));
  }

  static void OnCompleted(void* self, MHD_Connection* connection, void**,
                          MHD_RequestTerminationCode) {
    static_cast<MhdServer*>(self)->watch_.Answered(SocketOf(connection));
  }

  // An answer at the first call, which comes before the body, makes the library close the
  // connection afterwards: right for a request with a body, which nobody wants to read, but others
  // shall be able to follow.
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                              const char* method, const char*, const char*, std::size_t*,
                              void** seen) {
    if (*seen == nullptr && !HasBody(connection)) {
      *seen = self;
      return MHD_YES;
    }
    return static_cast<MhdServer*>(self)->Answer(connection, url, method);
  }

  static std::string_view Header(MHD_Connection* connection, const char* name) {
    const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value == nullptr ? "" : value;
  }

  static bool HasBody(MHD_Connection* connection) {
    const std::string_view length = Header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (!length.empty() && length != "0") ||
           !Header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING).empty();
  }

  MHD_Result Answer(MHD_Connection* connection, std::string_view path, std::string_view method) {
    const std::size_t path_index = PathIndex(path);
    const bool allowed = method == MHD_HTTP_METHOD_GET || method == MHD_HTTP_METHOD_HEAD;
    Reply reply = allowed ? Respond(path, Header(connection, MHD_HTTP_HEADER_ACCEPT))
                          : Reply{.code = MHD_HTTP_METHOD_NOT_ALLOWED,
                                  .kept = nullptr,
                                  .text = "only GET and HEAD\n"};
    const int code = reply.code;
    counts_.Count(path_index, code);
    const ResponsePtr response = MakeResponse(std::move(reply));
    if (!response) return MHD_NO;
    if (!allowed) MHD_add_response_header(response.get(), MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    return MHD_queue_response(connection, static_cast<unsigned int>(code), response.get());
  }

  Reply Respond(std::string_view path, std::string_view accept) {
    if (path == "/metrics") return Metrics(accept);
    if (path == "/healthz" || path == "/health") {
      return {.kept = nullptr, .text = HealthText(*state_.Latest(), clock_.Wall())};
    }
    if (path == "/readyz") return Ready();
    if (path == "/api/v1/snapshot") {
      return {.content_type = "application/json",
              .kept = json_.Get(state_.Latest(),
                                [](const Snapshot& snapshot) { return SnapshotJson(snapshot); }),
              .text = "\n"};
    }
    if (path == "/api/v1/views") {
      return {.content_type = "application/json",
              .kept = views_.Get(state_.Latest(),
                                 [](const Snapshot& snapshot) { return ViewsJson(snapshot); }),
              .text = "\n"};
    }
    if (path == "/") {
      return {.content_type = "text/html; charset=utf-8",
              .kept = nullptr,
              .text = std::string(IndexHtml())};
    }
    return {.code = MHD_HTTP_NOT_FOUND, .kept = nullptr, .text = std::string(PathsText())};
  }

  Reply Ready() const {
    std::string reason = state_.NotReadyReason();
    if (reason.empty()) return {.kept = nullptr, .text = "ready\n"};
    if (!reason.ends_with('\n')) reason += '\n';
    return {.code = MHD_HTTP_SERVICE_UNAVAILABLE, .kept = nullptr, .text = std::move(reason)};
  }

  Reply Metrics(std::string_view accept) {
    ExpositionOptions exposition = options_.exposition;
    exposition.format = ChooseFormat(accept);
    const SnapshotPtr newest = state_.Latest();
    Kept& kept = exposition.format == TextFormat::kOpenMetrics ? open_metrics_ : prometheus_;
    Reply reply;
    reply.content_type = ContentType(exposition.format);
    reply.kept = kept.Get(newest, [&exposition](const Snapshot& snapshot) {
      return RenderMetrics(snapshot, exposition);
    });
    const std::vector<RequestCount> requests = counts_.Get();
    LiveDetails details;
    details.ready = state_.NotReadyReason().empty();
    details.requests = requests;
    if (options_.root) {
      const Result<ProcessUsage> usage = ReadProcessUsage(*options_.root);
      if (usage) details.usage = *usage;
    }
    reply.text = RenderLiveMetrics(*newest, clock_.Wall(), exposition.format, details);
    return reply;
  }

  const ServerOptions options_;
  const LiveState& state_;
  const Clock& clock_;
  RequestCounts counts_;
  Kept prometheus_;
  Kept open_metrics_;
  Kept json_;
  Kept views_;
  std::uint16_t port_ = 0;
  ConnectionWatch watch_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, const LiveState& state,
                                              const Clock& clock) {
  const Result<Address> address = ParseAddress(options.address);
  if (!address) return std::unexpected(address.error());
  const Result<int> socket = Listen(*address, options.address);
  if (!socket) return std::unexpected(socket.error());
  auto server = std::make_unique<MhdServer>(std::move(options), state, clock);
  const Result<void> running = server->Run(*socket);
  if (!running) return std::unexpected(running.error());
  return server;
}

}  // namespace gpuassay
