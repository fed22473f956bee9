#include "agent/node_join.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "agent/simulated_node.h"
#include "attribution/kubernetes/kubeconfig.h"
#include "base/host_paths.h"

namespace gpuassay {
namespace {

// What a person waits for a server that does not answer.
constexpr Duration kOneShotTimeout = std::chrono::seconds(3);
// A simulated kubelet costs nothing to ask, and a scenario may run faster than time.
constexpr Duration kSimulatedPoll = std::chrono::seconds(1);
constexpr std::string_view kOff = "off";

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string ThisNode(const std::string& given) {
  if (!given.empty()) return given;
  if (std::string name = Environment("NODE_NAME"); !name.empty()) return name;
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// The PID of this process as the root's /proc has it: that may be of another namespace.
std::uint32_t SelfPid(const RootFs& root) {
  std::uint32_t pid = 0;
  if (const Result<std::string> link = root.ReadLink("/proc/self")) {
    std::from_chars(link->data(), link->data() + link->size(), pid);
  }
  return pid;
}

// https://HOST:PORT of the variables that every pod has; empty outside one.
std::string ApiServerOfPod() {
  const std::string host = Environment("KUBERNETES_SERVICE_HOST");
  const std::string port = Environment("KUBERNETES_SERVICE_PORT");
  if (host.empty()) return "";
  const bool is_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return fmt::format("https://{}:{}", is_v6 ? "[" + host + "]" : host, port.empty() ? "443" : port);
}

KubernetesOptions BaseOptions(const NodeOptions& node) {
  KubernetesOptions options;
  options.node_name = ThisNode(node.node_name);
  options.resource_names = node.resource_names;
  options.pod_labels = node.pod_labels;
  return options;
}

// Of the machine, or what was named.
Result<KubernetesOptions> RealKubernetes(const RootFs& root, const NodeOptions& node) {
  KubernetesOptions options = BaseOptions(node);
  if (node.pod_resources_socket.empty()) {
    // A machine without a kubelet has no such directory, and nothing to complain about.
    const std::string_view socket = kPodResourcesSocket;
    if (root.Exists(socket.substr(0, socket.rfind('/')))) {
      options.pod_resources_socket = root.Resolve(socket);
    }
  } else if (node.pod_resources_socket != kOff) {
    options.pod_resources_socket = node.pod_resources_socket;
  }
  if (!node.kubeconfig.empty()) {
    const Result<ApiAccess> access = ReadKubeconfig(node.kubeconfig);
    if (!access) return Fail(ErrorCode::kMalformed, access.error().what);
    options.kubeconfig = node.kubeconfig;
    return options;
  }
  options.api_server = ApiServerOfPod();
  options.service_account_directory = std::string(kServiceAccountDirectory);
  options.in_cluster = !options.api_server.empty() &&
                       access((options.service_account_directory + "/token").c_str(), R_OK) == 0;
  return options;
}

}  // namespace

struct NodeJoin::Impl {
  Pace pace = Pace::kLive;
  const Clock* clock = nullptr;
  double speed = 1;
  std::unique_ptr<SimulatedNode> simulated;
  MemoryReports reports;
  std::unique_ptr<ReportSocket> socket;
  KubernetesOptions kubernetes;
  std::optional<SteadyTime> source_start;
  bool refresh = true;
  std::unique_ptr<Join> join;  // last: uses what is above

  bool AsksKubernetes() const {
    return !kubernetes.pod_resources_socket.empty() || !kubernetes.kubeconfig.empty() ||
           kubernetes.in_cluster;
  }
  void MoveWorld(const Snapshot& snapshot);
  void Ask();
};

// Makes the simulated node that of the snapshot's time.
void NodeJoin::Impl::MoveWorld(const Snapshot& snapshot) {
  if (!simulated) return;
  // A live simulation began when its source was opened, which has read at once.
  if (!source_start) source_start = snapshot.steady;
  const Duration t =
      pace == Pace::kOneShot
          ? snapshot.steady.time_since_epoch()
          : std::chrono::duration_cast<Duration>((snapshot.steady - *source_start) * speed);
  if (simulated->MoveTo(t)) refresh = true;
  simulated->Report(clock->Steady(), reports);
}

void NodeJoin::Impl::Ask() {
  refresh = false;
  join->LookForHolders();
  if (!AsksKubernetes()) return;
  join->SetKubernetes(nullptr);
  std::unique_ptr<Kubernetes> asked = Kubernetes::Start(kubernetes, *clock);
  asked->WaitForFirst(kubernetes.timeout);
  join->SetKubernetes(std::move(asked));
}

NodeJoin::NodeJoin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NodeJoin::~NodeJoin() = default;

Result<std::unique_ptr<NodeJoin>> NodeJoin::Open(const SourceSpec& source,
                                                 const NodeOptions& options, Pace pace,
                                                 const Clock& clock, double simulator_speed) {
  if (!options.attribution || source.kind == SourceSpec::Kind::kReplay) return nullptr;
  auto impl = std::make_unique<Impl>();
  impl->pace = pace;
  impl->clock = &clock;
  impl->speed = simulator_speed;
  const bool named =
      !options.root.empty() || !options.pod_resources_socket.empty() || !options.kubeconfig.empty();
  if (source.kind == SourceSpec::Kind::kSimulator && !named) {
    Result<std::unique_ptr<SimulatedNode>> node = SimulatedNode::Start(source.argument);
    if (!node) return std::unexpected(node.error());
    if (!*node) return nullptr;
    impl->simulated = std::move(*node);
  }
  const std::string root_path = impl->simulated        ? impl->simulated->root()
                                : options.root.empty() ? "/"
                                                       : options.root;
  const Result<RootFs> root = RootFs::Open(root_path);
  if (!root) return Fail(ErrorCode::kMalformed, root.error().what);
  if (impl->simulated) {
    impl->kubernetes = BaseOptions(options);
    impl->kubernetes.node_name = impl->simulated->hostname();
    impl->kubernetes.pod_resources_socket = impl->simulated->pod_resources_socket();
    impl->kubernetes.kubeconfig = impl->simulated->kubeconfig();
    impl->kubernetes.poll = kSimulatedPoll;
  } else {
    Result<KubernetesOptions> kubernetes = RealKubernetes(*root, options);
    if (!kubernetes) return std::unexpected(kubernetes.error());
    impl->kubernetes = std::move(*kubernetes);
  }
  if (pace == Pace::kOneShot) impl->kubernetes.timeout = kOneShotTimeout;
  if (!options.report_socket.empty()) {
    Result<std::unique_ptr<ReportSocket>> socket =
        ReportSocket::Listen(options.report_socket, impl->reports, clock);
    if (!socket) return Fail(ErrorCode::kMalformed, socket.error().what);
    impl->socket = std::move(*socket);
  }
  JoinOptions join{.root = *root};
  join.self_pid = impl->simulated ? 0 : SelfPid(*root);
  join.reports = &impl->reports;
  join.clock = &clock;
  join.in_background = pace == Pace::kLive;
  if (pace == Pace::kOneShot) join.wait_for_new = kOneShotTimeout;
  impl->join = std::make_unique<Join>(std::move(join));
  if (pace == Pace::kLive && impl->AsksKubernetes()) {
    impl->join->SetKubernetes(Kubernetes::Start(impl->kubernetes, clock));
  }
  return std::unique_ptr<NodeJoin>(new NodeJoin(std::move(impl)));
}

void NodeJoin::SourceStarts() { impl_->source_start.reset(); }

void NodeJoin::Apply(Snapshot& snapshot) {
  impl_->MoveWorld(snapshot);
  if (impl_->pace == Pace::kOneShot && impl_->refresh) impl_->Ask();
  impl_->join->Apply(snapshot);
  impl_->reports.DropOld(impl_->clock->Steady());
  if (impl_->pace == Pace::kLive) return;
  // The servers have answered for this snapshot, on the machine's clock; it may be of another time.
  for (SourceStatus& status : snapshot.sources) {
    const bool asked = status.name == "pod_resources" || status.name == "kubernetes_api";
    if (asked && status.last_success) status.last_success = snapshot.time;
  }
}

}  // namespace gpuassay
