#include "sim/device_plugin/device_plugin.h"

#include <gmock/gmock.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "device_plugin.grpc.pb.h"

namespace gpuassay::sim {
namespace {

using testing::ElementsAre;
using testing::Key;

// Only ends a test that would wait for ever.
constexpr std::chrono::seconds kPatience(30);

// The kubelet's side of the API: takes registrations.
class Registry final : public v1beta1::Registration::Service {
 public:
  explicit Registry(const std::string& directory) : socket_(directory + "/kubelet.sock") {}
  ~Registry() override { Stop(); }

  void Start() {
    unlink(socket_.c_str());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_) server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
    server_.reset();
  }
  void RefuseAll() {
    const std::lock_guard lock(mutex_);
    refuses_ = true;
  }

  grpc::Status Register(grpc::ServerContext* /*context*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    const std::lock_guard lock(mutex_);
    if (refuses_) return {grpc::StatusCode::INVALID_ARGUMENT, "no such version"};
    EXPECT_EQ(request->version(), "v1beta1");
    sockets_[request->resource_name()] = request->endpoint();
    return grpc::Status::OK;
  }

  std::map<std::string, std::string> sockets() const {
    const std::lock_guard lock(mutex_);
    return sockets_;
  }
  void Forget() {
    const std::lock_guard lock(mutex_);
    sockets_.clear();
  }

 private:
  std::string socket_;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;  // guards below
  bool refuses_ = false;
  std::map<std::string, std::string> sockets_;  // by resource
};

class DevicePluginTest : public testing::Test {
 protected:
  DevicePluginTest() {
    char pattern[] = "/tmp/gpuassay-plugin-XXXXXX";
    directory_ = mkdtemp(pattern);
    const Result<Scenario> scenario = ParseScenario(R"(
gpus:
  - {model: t4, uuid: GPU-00000000-0000-0000-0000-000000000000}
  - {model: t4, uuid: GPU-11111111-1111-1111-1111-111111111111}
kubernetes:
  resources:
    - {name: nvidia.com/gpu, gpus: [0]}
    - {name: example.com/shared, gpus: [1], replicas: 2}
)",
                                                    "s.yaml");
    EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().what);
    if (scenario) plugin_ = std::make_unique<DevicePlugin>(*scenario, directory_);
    registry_ = std::make_unique<Registry>(directory_);
  }
  ~DevicePluginTest() override {
    worker_.request_stop();
    if (worker_.joinable()) worker_.join();
    registry_.reset();
    plugin_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Run() {
    worker_ = std::jthread([this](const std::stop_token& stop) {
      const Result<void> ended = plugin_->Run(stop, [this] {
        const std::lock_guard lock(mutex_);
        ++registered_;
        changed_.notify_all();
      });
      const std::lock_guard lock(mutex_);
      error_ = ended ? "" : ended.error().what;
      ended_ = true;
      changed_.notify_all();
    });
  }
  bool WaitForRegistration(int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return registered_ >= times; });
  }
  std::string WaitForError() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return ended_; });
    return error_;
  }
  std::unique_ptr<v1beta1::DevicePlugin::Stub> Stub(const std::string& resource) {
    return v1beta1::DevicePlugin::NewStub(
        grpc::CreateChannel("unix:" + directory_ + '/' + registry_->sockets()[resource],
                            grpc::InsecureChannelCredentials()));
  }
  std::vector<std::string> Listed(const std::string& resource) {
    grpc::ClientContext context;
    const auto stub = Stub(resource);
    const auto stream = stub->ListAndWatch(&context, {});
    v1beta1::ListAndWatchResponse response;
    EXPECT_TRUE(stream->Read(&response));
    std::vector<std::string> ids;
    for (const v1beta1::Device& device : response.devices()) {
      EXPECT_EQ(device.health(), "Healthy");
      ids.push_back(device.id());
    }
    context.TryCancel();
    return ids;
  }

  std::string directory_;
  std::unique_ptr<DevicePlugin> plugin_;
  std::unique_ptr<Registry> registry_;
  std::mutex mutex_;  // guards below
  std::condition_variable changed_;
  int registered_ = 0;
  bool ended_ = false;
  std::string error_;
  std::jthread worker_;
};

TEST_F(DevicePluginTest, RegistersEachResourceAndListsItsUnits) {
  registry_->Start();
  Run();
  ASSERT_TRUE(WaitForRegistration(1));
  EXPECT_THAT(registry_->sockets(), ElementsAre(Key("example.com/shared"), Key("nvidia.com/gpu")));
  EXPECT_THAT(Listed("nvidia.com/gpu"), ElementsAre("GPU-00000000-0000-0000-0000-000000000000"));
  EXPECT_THAT(Listed("example.com/shared"),
              ElementsAre("GPU-11111111-1111-1111-1111-111111111111::0",
                          "GPU-11111111-1111-1111-1111-111111111111::1"));
}

TEST_F(DevicePluginTest, EveryContainerSeesTheDevicesOfItsUnits) {
  registry_->Start();
  Run();
  ASSERT_TRUE(WaitForRegistration(1));
  v1beta1::AllocateRequest request;
  request.add_container_requests()->add_devices_ids("GPU-11111111-1111-1111-1111-111111111111::1");
  request.add_container_requests();
  grpc::ClientContext context;
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(Stub("example.com/shared")->Allocate(&context, request, &response).ok());
  ASSERT_EQ(response.container_responses_size(), 2);
  EXPECT_EQ(response.container_responses(0).envs().at("NVIDIA_VISIBLE_DEVICES"),
            "GPU-11111111-1111-1111-1111-111111111111");
  EXPECT_EQ(response.container_responses(1).envs().at("NVIDIA_VISIBLE_DEVICES"), "");
}

TEST_F(DevicePluginTest, WaitsForAKubeletThatIsNotThereYet) {
  Run();
  registry_->Start();
  EXPECT_TRUE(WaitForRegistration(1));
}

TEST_F(DevicePluginTest, RegistersAgainWhenTheKubeletStartsAnew) {
  registry_->Start();
  Run();
  ASSERT_TRUE(WaitForRegistration(1));
  registry_->Stop();
  for (const auto& [resource, socket] : registry_->sockets()) {
    std::filesystem::remove(directory_ + '/' + socket);  // as a kubelet does at its start
  }
  registry_->Forget();
  registry_->Start();
  ASSERT_TRUE(WaitForRegistration(2));
  EXPECT_EQ(registry_->sockets().size(), 2U);
  EXPECT_EQ(Listed("example.com/shared").size(), 2U);
}

TEST_F(DevicePluginTest, SaysWhyTheKubeletRefuses) {
  registry_->Start();
  registry_->RefuseAll();
  Run();
  EXPECT_EQ(WaitForError(), "the kubelet refuses nvidia.com/gpu: no such version");
}

}  // namespace
}  // namespace gpuassay::sim
