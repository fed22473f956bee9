#include "sim/device_plugin/device_plugin.h"

#include <fmt/format.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "device_plugin.grpc.pb.h"
#include "sim/device_plugin/advertised.h"

namespace gpuassay::sim {
namespace {

constexpr std::chrono::milliseconds kLookEvery(100);
constexpr int kRegisterSecondsMax = 10;
constexpr char kApiVersion[] = "v1beta1";

// One resource on one socket.
class ResourceService final : public v1beta1::DevicePlugin::Service {
 public:
  explicit ResourceService(AdvertisedResource resource) : resource_(std::move(resource)) {}
  ~ResourceService() override { Stop(); }

  const AdvertisedResource& resource() const { return resource_; }

  Result<void> Serve(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    stopping_ = false;
    server_ = builder.BuildAndStart();
    if (!server_) return Fail(ErrorCode::kIo, fmt::format("cannot listen on {}", socket));
    return {};
  }

  void Stop() {
    if (!server_) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
    server_->Wait();
    server_.reset();
  }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* /*context*/,
                                      const v1beta1::Empty* /*request*/,
                                      v1beta1::DevicePluginOptions* /*response*/) override {
    return grpc::Status::OK;  // all options off
  }

  // One list, then the stream stays open: its end would tell the kubelet that the devices are gone.
  grpc::Status ListAndWatch(grpc::ServerContext* /*context*/, const v1beta1::Empty* /*request*/,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    v1beta1::ListAndWatchResponse response;
    for (const std::string& id : resource_.ids) {
      v1beta1::Device& device = *response.add_devices();
      device.set_id(id);
      device.set_health("Healthy");
    }
    writer->Write(response);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_; });
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext* /*context*/, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
      const std::vector<std::string> ids(container.devices_ids().begin(),
                                         container.devices_ids().end());
      (*response->add_container_responses()->mutable_envs())["NVIDIA_VISIBLE_DEVICES"] =
          VisibleDevices(resource_, ids);
    }
    return grpc::Status::OK;
  }

 private:
  AdvertisedResource resource_;
  std::mutex mutex_;  // guards stopping_
  std::condition_variable changed_;
  bool stopping_ = false;
  std::unique_ptr<grpc::Server> server_;
};

// Which file that is: a kubelet that starts makes its socket anew. nullopt: there is none.
struct FileIdentity {
  ino_t number = 0;
  time_t seconds = 0;
  long nanoseconds = 0;
  bool operator==(const FileIdentity&) const = default;
};

std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

}  // namespace

class DevicePlugin::Impl {
 public:
  Impl(const Scenario& scenario, std::string directory) : directory_(std::move(directory)) {
    for (AdvertisedResource& resource : Advertised(scenario)) {
      services_.push_back(std::make_unique<ResourceService>(std::move(resource)));
    }
  }

  Result<void> Run(const std::stop_token& stop, const std::function<void()>& registered) {
    const std::string kubelet = directory_ + "/kubelet.sock";
    std::optional<FileIdentity> known;
    while (!stop.stop_requested()) {
      const std::optional<FileIdentity> made = IdentityOf(kubelet);
      if (made && made != known) {
        const Result<bool> done = ServeAndRegister(kubelet);
        if (!done) return std::unexpected(done.error());
        if (*done) {
          known = made;
          registered();
        }
      }
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, kLookEvery, [] { return false; });
    }
    return {};
  }

 private:
  // False: nobody answers on the kubelet's socket yet.
  Result<bool> ServeAndRegister(const std::string& kubelet) {
    const std::shared_ptr<grpc::Channel> channel =
        grpc::CreateChannel("unix:" + kubelet, grpc::InsecureChannelCredentials());
    for (const auto& service : services_) {
      service->Stop();
      const std::string socket = directory_ + '/' + service->resource().socket;
      unlink(socket.c_str());
      if (const Result<void> served = service->Serve(socket); !served) {
        return std::unexpected(served.error());
      }
      const grpc::Status status = Register(channel, service->resource());
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
        return false;
      }
      if (!status.ok()) {
        return Fail(ErrorCode::kMalformed,
                    fmt::format("the kubelet refuses {}: {}", service->resource().name,
                                status.error_message()));
      }
    }
    return true;
  }

  static grpc::Status Register(const std::shared_ptr<grpc::Channel>& channel,
                               const AdvertisedResource& resource) {
    grpc::ClientContext context;
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_seconds(kRegisterSecondsMax, GPR_TIMESPAN)));
    v1beta1::RegisterRequest request;
    request.set_version(kApiVersion);
    request.set_endpoint(resource.socket);
    request.set_resource_name(resource.name);
    v1beta1::Empty response;
    return v1beta1::Registration::NewStub(channel)->Register(&context, request, &response);
  }

  std::string directory_;
  std::vector<std::unique_ptr<ResourceService>> services_;
  std::mutex mutex_;  // only for the wait
  std::condition_variable_any changed_;
};

DevicePlugin::DevicePlugin(const Scenario& scenario, std::string directory)
    : impl_(std::make_unique<Impl>(scenario, std::move(directory))) {}
DevicePlugin::~DevicePlugin() = default;

Result<void> DevicePlugin::Run(std::stop_token stop, const std::function<void()>& registered) {
  return impl_->Run(stop, registered);
}

}  // namespace gpuassay::sim
