#include "attribution/kubernetes/kubelet_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "attribution/kubernetes/test_cluster.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

constexpr std::string_view kSource = "pod_resources";
constexpr std::string_view kMissing = "; which container has which device is missing";
constexpr std::string_view kKept = "; what it told before is kept, later changes are missing";

std::string With(std::string_view error, std::string_view consequence) {
  return std::string(error) + std::string(consequence);
}

class KubeletWatchTest : public KubernetesTest {
 protected:
  void StartWithOnePod() {
    kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})}, {{"nvidia.com/gpu", {"GPU-a", "GPU-b"}}});
    kubelet_.Start();
    AskKubelet();
    Start();
    ASSERT_EQ(Allocations(), Texts{"GPU-a team/a/main"});
  }
};

TEST_F(KubeletWatchTest, FindsASocketThatComesLater) {
  AskKubelet();
  Start();
  EXPECT_EQ(
      Error(kSource),
      With("no socket DIR/kubelet.sock: is the kubelet running and its folder mounted?", kMissing));
  EXPECT_EQ(kubernetes_->Latest(), nullptr);
  EXPECT_FALSE(Source(kSource).last_success.has_value());
  EXPECT_EQ(Source(kSource).readings.up, Reading(0));
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})});
  kubelet_.Start();
  EXPECT_TRUE(AllocationsBecome({"GPU-a team/a/main"}));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
  EXPECT_EQ(Source(kSource).readings.up, Reading(1));
}

TEST_F(KubeletWatchTest, KeepsWhatIsKnownWhileTheKubeletHangs) {
  options_.timeout = milliseconds(200);
  StartWithOnePod();
  const SchedulerPtr told = kubernetes_->Latest();
  kubelet_.Set(KubeletMood::kHangs);
  EXPECT_TRUE(ErrorBecomes(kSource, With("the kubelet has not answered List within 200ms", kKept)));
  const SourceStatus first = Source(kSource);
  EXPECT_EQ(first.missing, Missing::kTimedOut);
  EXPECT_TRUE(Eventually(
      [&] { return *Source(kSource).readings.failures_total > *first.readings.failures_total; }));
  EXPECT_EQ(Source(kSource).last_success, first.last_success);
  EXPECT_EQ(kubernetes_->Latest(), told);
  kubelet_.Set({PodWithGpus("team", "b", {"GPU-b"})});
  kubelet_.Set(KubeletMood::kAnswers);
  EXPECT_TRUE(AllocationsBecome({"GPU-b team/b/main"}));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
  EXPECT_GT(Source(kSource).last_success, first.last_success);
}

TEST_F(KubeletWatchTest, FindsTheSocketOfARestartedKubelet) {
  StartWithOnePod();
  kubelet_.Stop();
  EXPECT_TRUE(ErrorBecomes(
      kSource,
      With("no socket DIR/kubelet.sock: is the kubelet running and its folder mounted?", kKept)));
  EXPECT_EQ(Allocations(), Texts{"GPU-a team/a/main"});
  kubelet_.Set({PodWithGpus("team", "b", {"GPU-b"})});
  kubelet_.Start();
  EXPECT_TRUE(AllocationsBecome({"GPU-b team/b/main"}));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(KubeletWatchTest, SaysThatAnOldKubeletDoesNotTellWhatCanBeHandedOut) {
  kubelet_.Set(KubeletMood::kOldOne);
  StartWithOnePod();
  EXPECT_EQ(Error(kSource),
            "the kubelet has no GetAllocatableResources in its pod-resources API v1: unknown "
            "method; which devices can be handed out is missing");
  EXPECT_EQ(Source(kSource).readings.up, Reading(1));
  EXPECT_EQ(Source(kSource).missing, Missing::kNotSupported);
  EXPECT_TRUE(kubernetes_->Latest()->allocatable.empty());
  kubelet_.Set(KubeletMood::kAnswers);
  EXPECT_TRUE(Eventually([&] { return kubernetes_->Latest()->allocatable.size() == 2; }));
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

TEST_F(KubeletWatchTest, KeepsWhatCanBeHandedOutWhenOnlyThatFails) {
  StartWithOnePod();
  const SchedulerPtr told = kubernetes_->Latest();
  kubelet_.Set(KubeletMood::kFailsAllocated);
  EXPECT_TRUE(ErrorBecomes(kSource,
                           "the kubelet failed in GetAllocatableResources: disabled (code 2); "
                           "which devices can be handed out is as before"));
  EXPECT_EQ(kubernetes_->Latest(), told);
}

TEST_F(KubeletWatchTest, SaysThatTheKubeletRefuses) {
  kubelet_.Set(KubeletMood::kRefuses);
  kubelet_.Start();
  AskKubelet();
  Start();
  EXPECT_EQ(Error(kSource), With("the kubelet refuses List: not you", kMissing));
  EXPECT_EQ(Source(kSource).missing, Missing::kNoPermission);
}

TEST_F(KubeletWatchTest, SaysThatTheApiIsAnother) {
  kubelet_.Set(KubeletMood::kOtherApi);
  kubelet_.Start();
  AskKubelet();
  Start();
  EXPECT_EQ(Error(kSource),
            With("the kubelet has no List in its pod-resources API v1: unknown service", kMissing));
  EXPECT_EQ(Source(kSource).missing, Missing::kNotSupported);
}

TEST_F(KubeletWatchTest, KeepsWhatIsKnownWhenTheAnswerIsTooLong) {
  StartWithOnePod();
  kubelet_.Set(KubeletMood::kTooLong);
  EXPECT_TRUE(ErrorBegins(kSource, "List: "));
  EXPECT_EQ(Allocations(), Texts{"GPU-a team/a/main"});
  kubelet_.Set(KubeletMood::kAnswers);
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
}

// Answers whoever connects with something that is no gRPC.
class Babbler {
 public:
  explicit Babbler(const std::string& path) : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    thread_ = std::jthread([this] { Babble(); });
  }
  ~Babbler() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  Babbler(const Babbler&) = delete;
  Babbler& operator=(const Babbler&) = delete;

 private:
  void Babble() const {
    while (true) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      const std::string text = "HTTP/1.1 400 Bad Request\r\n\r\n";
      EXPECT_GT(send(connection, text.data(), text.size(), MSG_NOSIGNAL), 0);
      close(connection);
    }
  }
  int listener_;
  std::jthread thread_;
};

TEST_F(KubeletWatchTest, SaysThatSomethingElseListensThere) {
  {
    const Babbler babbler(kubelet_.socket());
    AskKubelet();
    Start();
    EXPECT_TRUE(ErrorBegins(kSource, "the connection to the kubelet broke: "));
    EXPECT_EQ(kubernetes_->Latest(), nullptr);
  }
  std::filesystem::remove(kubelet_.socket());
  kubelet_.Set({PodWithGpus("team", "a", {"GPU-a"})});
  kubelet_.Start();
  EXPECT_TRUE(AllocationsBecome({"GPU-a team/a/main"}));
}

TEST_F(KubeletWatchTest, CountsWhatItAsksAndWhatFails) {
  kubelet_.Set(KubeletMood::kRefuses);
  kubelet_.Start();
  AskKubelet();
  Start();
  EXPECT_TRUE(Eventually([&] { return *Source(kSource).readings.failures_total >= 2; }));
  kubelet_.Set(KubeletMood::kAnswers);
  EXPECT_TRUE(ErrorBecomes(kSource, ""));
  const SourceStatus status = Source(kSource);
  EXPECT_GT(*status.readings.reads_total, *status.readings.failures_total);
  EXPECT_TRUE(status.readings.duration_seconds.has_value());
}

TEST(KubeletTrouble, IsEmptyWhileAllIsWell) {
  SourceStatus status;
  const KubeletAnswer answer;
  EXPECT_EQ(KubeletTrouble(status, &answer), "");
  EXPECT_EQ(KubeletTrouble(status, nullptr), "");  // not tried yet
}

}  // namespace
}  // namespace gpuassay
