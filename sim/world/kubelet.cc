#include "sim/world/kubelet.h"

#include <fmt/format.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "pod_resources.grpc.pb.h"
#include "sim/engine/identifiers.h"
#include "sim/world/names.h"

namespace gpuassay::sim {
namespace {

const ScenarioResource* ResourceOf(const ScenarioWorld& world, std::string_view name) {
  const auto found = std::ranges::find(world.resources, name, &ScenarioResource::name);
  return found == world.resources.end() ? nullptr : &*found;
}

void FillClaim(const Scenario& scenario, const ScenarioPod& pod, const ScenarioDevice& device,
               v1::ContainerResources& container) {
  v1::DynamicResource* claim = nullptr;
  for (v1::DynamicResource& known : *container.mutable_dynamic_resources()) {
    claim = known.claim_name() == device.claim ? &known : claim;
  }
  if (claim == nullptr) {
    claim = container.add_dynamic_resources();
    claim->set_claim_name(device.claim);
    claim->set_claim_namespace(pod.namespace_name);
  }
  v1::ClaimResource& resource = *claim->add_claim_resources();
  resource.set_driver_name(std::string(kDraDriver));
  resource.set_pool_name(scenario.hostname);
  resource.set_device_name(DraDeviceName(scenario, device.gpu, device.mig_index));
}

void FillContainer(const Scenario& scenario, const ScenarioPod& pod,
                   const ScenarioContainer& container, v1::ContainerResources& out) {
  out.set_name(container.name);
  std::map<std::string, v1::ContainerDevices*> of_resource;
  for (const ScenarioDevice& device : container.devices) {
    if (!device.claim.empty()) {
      FillClaim(scenario, pod, device, out);
      continue;
    }
    const ScenarioResource* const resource = ResourceOf(scenario.world, device.resource);
    if (resource == nullptr) {
      continue;
    }
    v1::ContainerDevices*& devices = of_resource[device.resource];
    if (devices == nullptr) {
      devices = out.add_devices();
      devices->set_resource_name(device.resource);
    }
    devices->add_device_ids(UnitId(scenario, *resource, device));
  }
}

class Service final : public v1::PodResourcesLister::Service {
 public:
  explicit Service(const Scenario& scenario) : scenario_(scenario) {}

  void SetTime(Duration t) {
    const std::lock_guard lock(mutex_);
    time_ = t;
  }

  // All pods of the node, also those without devices, as the kubelet does.
  grpc::Status List(grpc::ServerContext* /*context*/,
                    const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* response) override {
    for (const ScenarioPod* const pod : PodsAt(scenario_.world, Time())) {
      v1::PodResources& entry = *response->add_pod_resources();
      entry.set_name(pod->name);
      entry.set_namespace_(pod->namespace_name);
      for (const ScenarioContainer& container : pod->containers) {
        FillContainer(scenario_, *pod, container, *entry.add_containers());
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status GetAllocatableResources(grpc::ServerContext* /*context*/,
                                       const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* response) override {
    for (const ScenarioResource& resource : scenario_.world.resources) {
      v1::ContainerDevices& devices = *response->add_devices();
      devices.set_resource_name(resource.name);
      for (const ScenarioDevice& unit : UnitsOf(scenario_.gpus, resource)) {
        devices.add_device_ids(UnitId(scenario_, resource, unit));
      }
    }
    return grpc::Status::OK;
  }

 private:
  Duration Time() {
    const std::lock_guard lock(mutex_);
    return time_;
  }

  const Scenario& scenario_;
  std::mutex mutex_;  // guards time_
  Duration time_ = {};
};

// The socket of a kubelet that has ended: its name is there, and connections are refused.
Result<void> LeaveDeadSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = socket >= 0 && bind(socket, reinterpret_cast<const sockaddr*>(&address),
                                         sizeof(address)) == 0;
  const int error = errno;
  if (socket >= 0) {
    close(socket);
  }
  return bound ? Result<void>()
               : Fail(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(error)));
}

class KubeletImpl final : public Kubelet {
 public:
  KubeletImpl(const Scenario& scenario, std::string socket)
      : world_(scenario.world), socket_(std::move(socket)), service_(scenario) {}
  ~KubeletImpl() override { Enter(State::kAbsent); }

  void Update(Duration t) override {
    service_.SetTime(t);
    State state = State::kAnswers;
    if (InOneOf(world_.kubelet_absent, t)) {
      state = State::kAbsent;
    } else if (InOneOf(world_.kubelet_down, t)) {
      state = State::kDown;
    }
    if (state != state_) {
      Enter(state);
    }
  }
  bool answers() const { return server_ != nullptr; }
  bool wants_to_answer() const { return state_ == State::kAnswers; }

 private:
  enum class State { kAbsent, kDown, kAnswers };

  void Enter(State state) {
    state_ = state;
    if (server_) {
      server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
      server_->Wait();
      server_.reset();
    }
    unlink(socket_.c_str());
    if (state == State::kDown) {
      // Without it the socket is absent, which clients take for down as well.
      static_cast<void>(LeaveDeadSocket(socket_));
    }
    if (state == State::kAnswers) {
      grpc::ServerBuilder builder;
      builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
      builder.RegisterService(&service_);
      server_ = builder.BuildAndStart();
    }
  }

  const ScenarioWorld& world_;
  const std::string socket_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  State state_ = State::kAbsent;
};

}  // namespace

Result<std::unique_ptr<Kubelet>> Kubelet::Start(const Scenario& scenario, std::string socket) {
  constexpr std::size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
  if (socket.size() > kPathBytesMax) {
    return Fail(ErrorCode::kIo,
                fmt::format("{}: a socket's path has at most {} bytes", socket, kPathBytesMax));
  }
  auto kubelet = std::make_unique<KubeletImpl>(scenario, socket);
  kubelet->Update({});
  if (kubelet->wants_to_answer() && !kubelet->answers()) {
    return Fail(ErrorCode::kIo, fmt::format("{}: no server can be started there", socket));
  }
  return kubelet;
}

}  // namespace gpuassay::sim
