#include "attribution/kubernetes/pod_resources.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "attribution/kubernetes/test_kubelet.h"
#include "base/clock.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PodResources : public testing::Test {
 protected:
  PodResources() : folder_(testing::TempDir() + "kubelet." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~PodResources() override { std::filesystem::remove_all(folder_); }

  // What the client says, without the folder's name.
  std::string ErrorAfter(Duration timeout) {
    const Result<KubeletAnswer> answer = client_.Ask(timeout);
    if (answer) return "";
    std::string what = answer.error().what;
    if (const std::size_t at = what.find(folder_); at != std::string::npos) {
      what.replace(at, folder_.size(), "DIR");
    }
    return what;
  }
  std::string Error() { return ErrorAfter(seconds(5)); }

  const std::string folder_;
  TestKubelet kubelet_{folder_ + "/kubelet.sock"};
  PodResourcesClient client_{folder_ + "/kubelet.sock"};
};

TEST_F(PodResources, TellsPodsAndWhatCanBeHandedOut) {
  kubelet_.Set({PodWithGpus("team", "train-0", {"GPU-a", "GPU-b"})},
               {{"nvidia.com/gpu", {"GPU-a", "GPU-b", "GPU-c"}}});
  kubelet_.Start();
  const Result<KubeletAnswer> answer = client_.Ask(seconds(5));
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->pods,
            (std::vector<KubeletPod>{
                {"team", "train-0", {{"main", {{"nvidia.com/gpu", {"GPU-a", "GPU-b"}}}, {}}}}}));
  EXPECT_EQ(answer->allocatable,
            (std::vector<KubeletDevices>{{"nvidia.com/gpu", {"GPU-a", "GPU-b", "GPU-c"}}}));
  EXPECT_EQ(answer->allocatable_error, "");
}

TEST_F(PodResources, TellsDevicesOfClaims) {
  kubelet_.Set({{"team", "p", {{"main", {}, {{"claim-x", "gpu.nvidia.com", "node-a", "gpu-0"}}}}}});
  kubelet_.Start();
  const Result<KubeletAnswer> answer = client_.Ask(seconds(5));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->pods.at(0).containers.at(0).claim_devices,
            (std::vector<KubeletClaimDevice>{{"claim-x", "gpu.nvidia.com", "node-a", "gpu-0"}}));
}

TEST_F(PodResources, SaysThatThereIsNoSocket) {
  EXPECT_EQ(Error(), "no socket DIR/kubelet.sock: is the kubelet running and its folder mounted?");
}

TEST_F(PodResources, SaysThatNobodyListens) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  kubelet_.socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int left_behind = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(left_behind, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(left_behind);
  EXPECT_EQ(Error(), "nobody listens on DIR/kubelet.sock: is the kubelet down?");
}

TEST_F(PodResources, SaysThatItMayNotConnect) {
  kubelet_.Start();
  if (geteuid() == 0) {
    kubelet_.Set(KubeletMood::kRefuses);  // root may connect to every socket
    EXPECT_EQ(Error(), "the kubelet refuses List: not you");
  } else {
    ASSERT_EQ(chmod(kubelet_.socket().c_str(), 0), 0);
    EXPECT_EQ(Error(), "no permission for DIR/kubelet.sock: the kubelet lets only root connect");
  }
}

TEST_F(PodResources, SaysThatThePathIsTooLong) {
  PodResourcesClient client("/" + std::string(107, 'x'));
  EXPECT_EQ(client.Ask(seconds(5)).error().code, ErrorCode::kMalformed);
}

TEST_F(PodResources, GivesUpOnAKubeletThatHangs) {
  kubelet_.Set(KubeletMood::kHangs);
  kubelet_.Start();
  EXPECT_EQ(ErrorAfter(milliseconds(50)), "the kubelet has not answered List within 50ms");
}

TEST_F(PodResources, GivesUpOnAProgramThatNeverSpeaks) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  kubelet_.socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int silent = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(silent, 1), 0);
  EXPECT_EQ(ErrorAfter(milliseconds(50)), "the kubelet has not answered List within 50ms");
  close(silent);
}

TEST_F(PodResources, DoesWithoutWhatAnOldKubeletLacks) {
  kubelet_.Set({PodWithGpus("team", "p", {"GPU-a"})}, {{"nvidia.com/gpu", {"GPU-a"}}});
  kubelet_.Set(KubeletMood::kOldOne);
  kubelet_.Start();
  Result<KubeletAnswer> answer = client_.Ask(seconds(5));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->pods.size(), 1u);
  EXPECT_TRUE(answer->allocatable.empty());
  EXPECT_EQ(answer->allocatable_error,
            "the kubelet has no GetAllocatableResources in its pod-resources API v1: unknown "
            "method");
  kubelet_.Set(KubeletMood::kFailsAllocated);
  answer = client_.Ask(seconds(5));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->allocatable_error,
            "the kubelet failed in GetAllocatableResources: disabled (code 2)");
}

TEST_F(PodResources, SaysThatTheApiIsAnother) {
  kubelet_.Set(KubeletMood::kOtherApi);
  kubelet_.Start();
  EXPECT_EQ(Error(), "the kubelet has no List in its pod-resources API v1: unknown service");
}

TEST_F(PodResources, RefusesAnAnswerThatIsTooLong) {
  kubelet_.Set(KubeletMood::kTooLong);
  kubelet_.Start();
  EXPECT_EQ(client_.Ask(seconds(5)).error().code, ErrorCode::kMalformed);
}

TEST_F(PodResources, FindsTheKubeletAgainAtOnceAfterItsRestart) {
  kubelet_.Start();
  EXPECT_EQ(Error(), "");
  kubelet_.Stop();
  EXPECT_NE(Error(), "");
  kubelet_.Start();
  EXPECT_EQ(Error(), "");
}

TEST_F(PodResources, EndsACallWhenToldTo) {
  kubelet_.Set(KubeletMood::kHangs);
  kubelet_.Start();
  const SystemClock clock;
  const SteadyTime start = clock.Steady();
  std::jthread asker([&] { EXPECT_NE(ErrorAfter(seconds(30)), ""); });
  while (kubelet_.lists() == 0) std::this_thread::sleep_for(milliseconds(1));
  client_.Cancel();
  asker.join();
  EXPECT_LT(clock.Steady() - start, seconds(2));
  EXPECT_NE(ErrorAfter(seconds(30)), "");
}

}  // namespace
}  // namespace gpuassay
