#include "attribution/kubernetes/pod_resources.h"

#include <fmt/format.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/duration.h"
#include "base/plain_text.h"
#include "pod_resources.grpc.pb.h"

namespace gpuassay {
namespace {

Result<int> ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Fail(ErrorCode::kMalformed, fmt::format("{}: a socket's path has at most {} bytes", path,
                                                   sizeof(address.sun_path) - 1));
  }
  std::ranges::copy(path, address.sun_path);
  // Non-blocking: a kubelet that does not accept must not hold us up.
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) {
    return Fail(ErrorCode::kIo, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return socket;
  }
  const int error = errno;
  close(socket);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Fail(
          ErrorCode::kNotFound,
          fmt::format("no socket {}: is the kubelet running and its folder mounted?", path));
    case ECONNREFUSED:
      return Fail(ErrorCode::kIo, fmt::format("nobody listens on {}: is the kubelet down?", path));
    case EACCES:
    case EPERM:
      return Fail(ErrorCode::kPermission,
                  fmt::format("no permission for {}: the kubelet lets only root connect", path));
    case EAGAIN:
      return Fail(ErrorCode::kTimeout,
                  fmt::format("the kubelet accepts no connection on {}", path));
    default:
      return Fail(ErrorCode::kIo,
                  fmt::format("cannot connect to {}: {}", path, std::strerror(error)));
  }
}

std::string ShortLine(std::string text) {
  constexpr std::size_t kTextBytesMax = 300;
  if (text.size() > kTextBytesMax) text.resize(kTextBytesMax);
  return OneLine(std::move(text));
}

Error ErrorOf(const grpc::Status& status, std::string_view method, Duration timeout) {
  const std::string message = ShortLine(status.error_message());
  const grpc::StatusCode code = status.error_code();
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return {ErrorCode::kTimeout, fmt::format("the kubelet has not answered {} within {}", method,
                                             FormatDuration(timeout))};
  }
  if (code == grpc::StatusCode::UNIMPLEMENTED) {
    return {ErrorCode::kUnsupported,
            fmt::format("the kubelet has no {} in its pod-resources API v1: {}", method, message)};
  }
  if (code == grpc::StatusCode::PERMISSION_DENIED || code == grpc::StatusCode::UNAUTHENTICATED) {
    return {ErrorCode::kPermission, fmt::format("the kubelet refuses {}: {}", method, message)};
  }
  if (code == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return {ErrorCode::kMalformed, fmt::format("{}: {}", method, message)};
  }
  if (code == grpc::StatusCode::UNAVAILABLE) {
    return {ErrorCode::kIo, fmt::format("the connection to the kubelet broke: {}", message)};
  }
  return {ErrorCode::kIo, fmt::format("the kubelet failed in {}: {} (code {})", method, message,
                                      static_cast<int>(code))};
}

template <class Devices>
std::vector<KubeletDevices> DevicesOf(const Devices& devices) {
  std::vector<KubeletDevices> result;
  for (const v1::ContainerDevices& entry : devices) {
    result.push_back(
        {entry.resource_name(), {entry.device_ids().begin(), entry.device_ids().end()}});
  }
  return result;
}

KubeletContainer ContainerOf(const v1::ContainerResources& container) {
  KubeletContainer result;
  result.name = container.name();
  result.devices = DevicesOf(container.devices());
  for (const v1::DynamicResource& claim : container.dynamic_resources()) {
    for (const v1::ClaimResource& device : claim.claim_resources()) {
      result.claim_devices.push_back(
          {claim.claim_name(), device.driver_name(), device.pool_name(), device.device_name()});
    }
  }
  return result;
}

std::vector<KubeletPod> PodsOf(const v1::ListPodResourcesResponse& response) {
  std::vector<KubeletPod> pods;
  for (const v1::PodResources& pod : response.pod_resources()) {
    KubeletPod& result = pods.emplace_back();
    result.namespace_name = pod.namespace_();
    result.name = pod.name();
    for (const v1::ContainerResources& container : pod.containers()) {
      result.containers.push_back(ContainerOf(container));
    }
  }
  return pods;
}

}  // namespace

struct PodResourcesClient::Call {
  grpc::ClientContext list;
  grpc::ClientContext allocatable;
};

PodResourcesClient::PodResourcesClient(std::string socket) : socket_(std::move(socket)) {}
PodResourcesClient::~PodResourcesClient() = default;

Result<KubeletAnswer> PodResourcesClient::Ask(Duration timeout) {
  const Result<int> socket = ConnectTo(socket_);
  if (!socket) return std::unexpected(socket.error());
  return AskOver(*socket, timeout);
}

Result<KubeletAnswer> PodResourcesClient::AskOver(int socket, Duration timeout) {
  Call call;
  const gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                             gpr_time_from_micros(timeout.count(), GPR_TIMESPAN));
  call.list.set_deadline(deadline);
  call.allocatable.set_deadline(deadline);
  {
    const std::lock_guard lock(mutex_);
    call_ = &call;
    if (cancelled_) call.list.TryCancel();
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kPodResourcesBytesMax));
  const std::unique_ptr<v1::PodResourcesLister::Stub> kubelet = v1::PodResourcesLister::NewStub(
      grpc::CreateCustomInsecureChannelFromFd("localhost", socket, arguments));

  v1::ListPodResourcesResponse pods;
  const grpc::Status listed = kubelet->List(&call.list, {}, &pods);
  v1::AllocatableResourcesResponse allocatable;
  grpc::Status told = listed;
  if (listed.ok()) told = kubelet->GetAllocatableResources(&call.allocatable, {}, &allocatable);
  {
    const std::lock_guard lock(mutex_);
    call_ = nullptr;
  }
  if (!listed.ok()) return std::unexpected(ErrorOf(listed, "List", timeout));
  KubeletAnswer answer;
  answer.pods = PodsOf(pods);
  if (told.ok()) {
    answer.allocatable = DevicesOf(allocatable.devices());
  } else {
    answer.allocatable_error = ErrorOf(told, "GetAllocatableResources", timeout).what;
  }
  return answer;
}

void PodResourcesClient::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (call_ == nullptr) return;
  call_->list.TryCancel();
  call_->allocatable.TryCancel();
}

}  // namespace gpuassay
