#include "attribution/kubernetes/test_kubelet.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "pod_resources.grpc.pb.h"

namespace gpuassay {

class TestKubelet::Service final : public v1::PodResourcesLister::Service {
 public:
  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* response) override {
    std::unique_lock lock(mutex_);
    ++lists_;
    changed_.wait(lock, [&] { return mood_ != KubeletMood::kHangs || context->IsCancelled(); });
    switch (mood_) {
      case KubeletMood::kOtherApi:
        return {grpc::StatusCode::UNIMPLEMENTED, "unknown service"};
      case KubeletMood::kRefuses:
        return {grpc::StatusCode::PERMISSION_DENIED, "not you"};
      case KubeletMood::kTooLong:
        response->add_pod_resources()->set_name(std::string(kPodResourcesBytesMax, 'x'));
        return grpc::Status::OK;
      case KubeletMood::kAnswers:
      case KubeletMood::kHangs:
      case KubeletMood::kOldOne:
      case KubeletMood::kFailsAllocated:
        break;
    }
    for (const KubeletPod& pod : pods_) FillPod(pod, *response->add_pod_resources());
    return grpc::Status::OK;
  }

  grpc::Status GetAllocatableResources(grpc::ServerContext* /*context*/,
                                       const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* response) override {
    const std::lock_guard lock(mutex_);
    if (mood_ == KubeletMood::kOldOne) return {grpc::StatusCode::UNIMPLEMENTED, "unknown method"};
    if (mood_ == KubeletMood::kFailsAllocated) return {grpc::StatusCode::UNKNOWN, "disabled"};
    for (const KubeletDevices& devices : allocatable_)
      FillDevices(devices, *response->add_devices());
    return grpc::Status::OK;
  }

  static void FillDevices(const KubeletDevices& devices, v1::ContainerDevices& entry) {
    entry.set_resource_name(devices.resource);
    for (const std::string& id : devices.ids) entry.add_device_ids(id);
  }

  static void FillPod(const KubeletPod& pod, v1::PodResources& entry) {
    entry.set_name(pod.name);
    entry.set_namespace_(pod.namespace_name);
    for (const KubeletContainer& container : pod.containers) {
      v1::ContainerResources& resources = *entry.add_containers();
      resources.set_name(container.name);
      for (const KubeletDevices& devices : container.devices) {
        FillDevices(devices, *resources.add_devices());
      }
      for (const KubeletClaimDevice& device : container.claim_devices) {
        v1::DynamicResource& claim = *resources.add_dynamic_resources();
        claim.set_claim_name(device.claim);
        claim.set_claim_namespace(pod.namespace_name);
        v1::ClaimResource& resource = *claim.add_claim_resources();
        resource.set_driver_name(device.driver);
        resource.set_pool_name(device.pool);
        resource.set_device_name(device.device);
      }
    }
  }

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<KubeletPod> pods_;
  std::vector<KubeletDevices> allocatable_;
  KubeletMood mood_ = KubeletMood::kAnswers;
  int lists_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TestKubelet::TestKubelet(std::string socket)
    : socket_(std::move(socket)), service_(std::make_unique<Service>()) {}
TestKubelet::~TestKubelet() { Stop(); }

void TestKubelet::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  builder.SetMaxSendMessageSize(-1);
  service_->server_ = builder.BuildAndStart();
  ASSERT_NE(service_->server_, nullptr) << socket_;
}

void TestKubelet::Stop() {
  if (!service_->server_) return;
  const KubeletMood mood = service_->mood_;
  Set(KubeletMood::kAnswers);  // lets calls that hang go
  service_->server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  service_->server_->Wait();
  service_->server_.reset();
  Set(mood);
  unlink(socket_.c_str());
}

void TestKubelet::Set(std::vector<KubeletPod> pods, std::vector<KubeletDevices> allocatable) {
  const std::lock_guard lock(service_->mutex_);
  service_->pods_ = std::move(pods);
  service_->allocatable_ = std::move(allocatable);
}

void TestKubelet::Set(KubeletMood mood) {
  const std::lock_guard lock(service_->mutex_);
  service_->mood_ = mood;
  service_->changed_.notify_all();
}

int TestKubelet::lists() const {
  const std::lock_guard lock(service_->mutex_);
  return service_->lists_;
}

KubeletPod PodWithGpus(std::string namespace_name, std::string name, std::vector<std::string> ids) {
  return {std::move(namespace_name),
          std::move(name),
          {{"main", {{"nvidia.com/gpu", std::move(ids)}}, {}}}};
}

}  // namespace gpuassay
