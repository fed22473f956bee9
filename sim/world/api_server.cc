#include "sim/world/api_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "sim/world/kube_json.h"
#include "sim/world/names.h"

namespace gpuassay::sim {
namespace {

constexpr std::string_view kPodsPath = "/api/v1/pods";
constexpr std::string_view kSlices = "/resourceslices";
constexpr std::string_view kUser = "system:serviceaccount:gpuassay:gpuassay";
// How late it may be seen that the client of a watch has gone.
constexpr auto kLookForClient = std::chrono::milliseconds(250);

using Query = std::map<std::string, std::string>;

struct Answer {
  int code = 200;
  std::string body;
};

Answer Failure(int code, std::string_view reason, std::string_view message) {
  return {code, StatusJson(code, reason, message)};
}

std::optional<std::uint64_t> NumberOf(const Query& query, const std::string& key) {
  const auto found = query.find(key);
  std::uint64_t number = 0;
  if (found == query.end() ||
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), number)
              .ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

// "resource.k8s.io/v1" of a path of ResourceSlices; empty for another path.
std::string_view GroupOfSlices(std::string_view path) {
  for (const std::string_view group : {"resource.k8s.io/v1", "resource.k8s.io/v1beta1"}) {
    if (path == fmt::format("/apis/{}{}", group, kSlices)) {
      return group;
    }
  }
  return "";
}

bool Is(const Query& query, const std::string& key) {
  const auto found = query.find(key);
  return found != query.end() && found->second != "0" && found->second != "false";
}

// The node that the selector names; nullopt for a selector that pods and slices do not have here.
std::optional<std::string> SelectedNode(const Query& query) {
  const auto found = query.find("fieldSelector");
  if (found == query.end() || found->second.empty()) {
    return "";
  }
  constexpr std::string_view kField = "spec.nodeName=";
  std::string_view selector = found->second;
  if (!selector.starts_with(kField) || selector.find(',') != std::string_view::npos) {
    return std::nullopt;
  }
  selector.remove_prefix(kField.size());
  selector.remove_prefix(selector.starts_with('=') ? 1 : 0);
  return std::string(selector);
}

struct Event {
  std::uint64_t version = 0;
  std::string line;
};

// The pods as the API has them, with the changes that watches are told. Not thread-safe.
class PodStore {
 public:
  explicit PodStore(const Scenario& scenario)
      : scenario_(scenario), versions_(scenario.world.pods.size()) {}

  // First those that go: a name can be used again.
  void MoveTo(Duration t) {
    for (const bool there : {false, true}) {
      for (std::size_t i = 0; i < versions_.size(); ++i) {
        const ScenarioPod& pod = scenario_.world.pods[i];
        if ((pod.start <= t && t < pod.end) == there && versions_[i].has_value() != there) {
          Put(i, there);
        }
      }
    }
  }

  std::uint64_t version() const { return version_; }
  std::vector<std::string> Objects() const {
    std::vector<std::string> objects;
    for (std::size_t i = 0; i < versions_.size(); ++i) {
      if (versions_[i]) {
        objects.push_back(PodJson(scenario_, scenario_.world.pods[i], *versions_[i]));
      }
    }
    return objects;
  }
  // nullopt when some of the changes since then have been forgotten.
  std::optional<std::string> EventsAfter(std::uint64_t version) const {
    if (version < forgotten_) {
      return std::nullopt;
    }
    std::string lines;
    for (const Event& event : events_) {
      lines += event.version > version ? event.line : "";
    }
    return lines;
  }

 private:
  void Put(std::size_t i, bool there) {
    ++version_;
    versions_[i] = there ? std::optional(version_) : std::nullopt;
    events_.push_back({version_, EventJson(there ? "ADDED" : "DELETED",
                                           PodJson(scenario_, scenario_.world.pods[i], version_))});
    if (events_.size() > ApiServer::kEventsMax) {
      forgotten_ = events_.front().version;
      events_.pop_front();
    }
  }

  const Scenario& scenario_;
  std::uint64_t version_ = 1000;
  std::uint64_t forgotten_ = 1000;  // a watch from before it cannot be told everything
  std::vector<std::optional<std::uint64_t>> versions_;  // beside the scenario's pods: those there
  std::deque<Event> events_;
};

class ApiServerImpl final : public ApiServer {
 public:
  explicit ApiServerImpl(const Scenario& scenario)
      : scenario_(scenario), authorization_("Bearer " + ApiToken(scenario)), pods_(scenario) {}
  ~ApiServerImpl() override {
    Stop();
    if (reserved_ >= 0) {
      close(reserved_);
    }
  }

  Result<void> Open() {
    if (const Result<void> reserved = Reserve(); !reserved) {
      return reserved;
    }
    Update({});
    if (daemon_ == nullptr && reserved_ >= 0 && !InOneOf(scenario_.world.api_down, Duration{})) {
      return Fail(ErrorCode::kIo, fmt::format("no server can be started on {}", address()));
    }
    return {};
  }

  void Update(Duration t) override {
    const bool down = InOneOf(scenario_.world.api_down, t);
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t before = pods_.version();
      pods_.MoveTo(t);
      const bool forbids = InOneOf(scenario_.world.api_forbidden, t);
      const std::string lines = pods_.EventsAfter(before).value_or("");
      for (Stream& stream : streams_) {
        stream.waiting += stream.sees_pods ? lines : "";
        stream.ended |= forbids;
      }
      forbids_ = forbids;
      changed_.notify_all();
    }
    if (down && daemon_ != nullptr) {
      Stop();
      static_cast<void>(Reserve());
    } else if (!down && daemon_ == nullptr) {
      Listen();
    }
  }

  std::string address() const override { return fmt::format("http://127.0.0.1:{}", port_); }
  std::string Kubeconfig() const override {
    return fmt::format(
        "apiVersion: v1\nkind: Config\ncurrent-context: simulated\n"
        "clusters: [{{name: simulated, cluster: {{server: \"{}\"}}}}]\n"
        "users: [{{name: agent, user: {{token: \"{}\"}}}}]\n"
        "contexts: [{{name: simulated, context: {{cluster: simulated, user: agent}}}}]\n",
        address(), ApiToken(scenario_));
  }

 private:
  struct Stream {
    ApiServerImpl* server = nullptr;
    int client = -1;  // socket
    std::string waiting;
    bool sees_pods = false;
    bool ended = false;
    std::optional<SteadyTime> until;
  };

  // Takes the port, anew the same, and does not listen: connections are refused.
  Result<void> Reserve() {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    place.sin_port = htons(port_);
    socklen_t size = sizeof(place);
    const int on = 1;
    reserved_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (reserved_ < 0 || setsockopt(reserved_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(reserved_, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0 ||
        getsockname(reserved_, reinterpret_cast<sockaddr*>(&place), &size) != 0) {
      return Fail(ErrorCode::kIo,
                  fmt::format("no port for an API server on 127.0.0.1: {}", std::strerror(errno)));
    }
    port_ = ntohs(place.sin_port);
    return {};
  }

  void Listen() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = false;
    }
    constexpr int kBacklog = 32;
    if (reserved_ < 0 || listen(reserved_, kBacklog) != 0) {
      return;
    }
    daemon_ = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, nullptr,
        nullptr, &ApiServerImpl::OnRequest, this, MHD_OPTION_LISTEN_SOCKET, reserved_,
        MHD_OPTION_END);
    if (daemon_ != nullptr) {
      reserved_ = -1;  // the daemon closes it
    }
  }

  // Cuts all connections.
  void Stop() {
    if (daemon_ == nullptr) {
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    MHD_stop_daemon(daemon_);
    daemon_ = nullptr;
  }

  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                              const char* method, const char* /*version*/, const char* /*data*/,
                              std::size_t* size, void** /*state*/) {
    *size = 0;  // what a request carries is not read
    return static_cast<ApiServerImpl*>(self)->Reply(connection, url, method);
  }

  MHD_Result Reply(MHD_Connection* connection, std::string_view path, std::string_view method) {
    Query query;
    MHD_get_connection_values(
        connection, MHD_GET_ARGUMENT_KIND,
        [](void* values, MHD_ValueKind, const char* key, const char* value) {
          (*static_cast<Query*>(values))[key] = value == nullptr ? "" : value;
          return MHD_YES;
        },
        &query);
    const char* authorization =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    const std::unique_lock lock(mutex_);
    std::optional<Answer> answer =
        Refusal(path, method, authorization == nullptr ? "" : authorization, query);
    MHD_Response* response = nullptr;
    if (!answer && path == kPodsPath && Is(query, "watch")) {
      response = Watch(connection, query);
    } else {
      if (!answer) {
        answer = List(path, query);
      }
      response = MHD_create_response_from_buffer(answer->body.size(), answer->body.data(),
                                                 MHD_RESPMEM_MUST_COPY);
    }
    MHD_add_response_header(response, "Content-Type", "application/json");
    const MHD_Result queued = MHD_queue_response(
        connection, static_cast<unsigned>(answer ? answer->code : 200), response);
    MHD_destroy_response(response);
    return queued;
  }

  // Why there is no answer; nullopt when there is one.
  std::optional<Answer> Refusal(std::string_view path, std::string_view method,
                                std::string_view authorization, const Query& query) const {
    const bool slices = !GroupOfSlices(path).empty();
    const bool known = path == kPodsPath || slices;
    if (authorization != authorization_) {
      return Failure(401, "Unauthorized", "Unauthorized");
    }
    if (forbids_) {
      const std::string_view resource = path.substr(path.rfind('/') + 1);
      return Failure(403, "Forbidden",
                     fmt::format("{} is forbidden: User \"{}\" cannot list resource \"{}\" in API "
                                 "group \"{}\" at the cluster scope",
                                 known ? resource : path, kUser, known ? resource : path,
                                 slices ? "resource.k8s.io" : ""));
    }
    if (!known) {
      return Failure(404, "NotFound", "the server could not find the requested resource");
    }
    if (method != "GET") {
      return Failure(405, "MethodNotAllowed",
                     "the server does not allow this method on the requested resource");
    }
    if (!SelectedNode(query)) {
      return Failure(400, "BadRequest", "field label not supported");
    }
    return std::nullopt;
  }

  bool Selects(const Query& query) const {
    const std::string node = SelectedNode(query).value_or("");
    return node.empty() || node == scenario_.hostname;
  }

  // In pages of `limit`; the token is where the next one begins.
  Answer List(std::string_view path, const Query& query) const {
    if (const std::string_view group = GroupOfSlices(path); !group.empty()) {
      return {200, SliceListJson(scenario_, group, Selects(query))};
    }
    std::vector<std::string> objects = Selects(query) ? pods_.Objects() : Objects();
    const auto first = static_cast<std::ptrdiff_t>(
        std::min<std::uint64_t>(NumberOf(query, "continue").value_or(0), objects.size()));
    objects.erase(objects.begin(), objects.begin() + first);
    const std::uint64_t limit = NumberOf(query, "limit").value_or(0);
    std::size_t remaining = 0;
    if (limit != 0 && limit < objects.size()) {
      remaining = objects.size() - limit;
      objects.resize(limit);
    }
    const std::string token =
        remaining == 0 ? "" : std::to_string(static_cast<std::size_t>(first) + objects.size());
    return {200, PodListJson(objects, pods_.version(), token, remaining)};
  }

  MHD_Response* Watch(MHD_Connection* connection, const Query& query) {
    Stream& stream = streams_.emplace_back();
    stream.server = this;
    stream.client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    stream.sees_pods = Selects(query);
    if (const std::optional<std::uint64_t> length_s = NumberOf(query, "timeoutSeconds")) {
      stream.until = SystemClock().Steady() + std::chrono::seconds(std::min(*length_s, kLongestS));
    }
    const std::uint64_t version = NumberOf(query, "resourceVersion").value_or(0);
    if (version == 0) {  // not said: what is there comes first
      for (const std::string& object : stream.sees_pods ? pods_.Objects() : Objects()) {
        stream.waiting += EventJson("ADDED", object);
      }
    } else if (const std::optional<std::string> events = pods_.EventsAfter(version)) {
      stream.waiting = stream.sees_pods ? *events : "";
    } else {
      stream.waiting = EventJson("ERROR", StatusJson(410, "Expired", "too old resource version"));
      stream.ended = true;
    }
    if (!stream.ended && Is(query, "allowWatchBookmarks")) {
      stream.waiting += BookmarkJson(pods_.version());
    }
    constexpr std::size_t kBlockBytes = 65536;
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, &ApiServerImpl::OnRead,
                                             &stream, &ApiServerImpl::OnFree);
  }

  static bool HasGone(int client) {
    char byte = 0;
    const ssize_t got = recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  }

  // In the connection's own thread.
  static ssize_t OnRead(void* stream_pointer, std::uint64_t /*position*/, char* buffer,
                        std::size_t size) {
    Stream& stream = *static_cast<Stream*>(stream_pointer);
    ApiServerImpl& server = *stream.server;
    std::unique_lock lock(server.mutex_);
    while (stream.waiting.empty() && !server.closing_) {
      if (stream.ended || (stream.until && SystemClock().Steady() >= *stream.until)) {
        return MHD_CONTENT_READER_END_OF_STREAM;
      }
      if (server.changed_.wait_for(lock, kLookForClient) == std::cv_status::timeout &&
          HasGone(stream.client)) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
      }
    }
    if (server.closing_) {
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    const std::size_t sent = stream.waiting.copy(buffer, size);
    stream.waiting.erase(0, sent);
    return static_cast<ssize_t>(sent);
  }
  static void OnFree(void* stream_pointer) {
    ApiServerImpl& server = *static_cast<Stream*>(stream_pointer)->server;
    const std::lock_guard lock(server.mutex_);
    server.streams_.remove_if([&](const Stream& stream) { return &stream == stream_pointer; });
  }

  using Objects = std::vector<std::string>;
  static constexpr std::uint64_t kLongestS = 86'400;

  const Scenario& scenario_;
  const std::string authorization_;
  int reserved_ = -1;  // the socket that keeps the port while nobody listens
  std::uint16_t port_ = 0;
  MHD_Daemon* daemon_ = nullptr;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  PodStore pods_;
  std::list<Stream> streams_;
  bool forbids_ = false;
  bool closing_ = false;
};

}  // namespace

Result<std::unique_ptr<ApiServer>> ApiServer::Start(const Scenario& scenario) {
  auto server = std::make_unique<ApiServerImpl>(scenario);
  if (const Result<void> opened = server->Open(); !opened) {
    return std::unexpected(opened.error());
  }
  return server;
}

}  // namespace gpuassay::sim
