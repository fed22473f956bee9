// A node with a kubelet and an API server for tests, and a Kubernetes that asks them. For tests
// only; its source is kubernetes_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attribution/kubernetes/kubernetes.h"
#include "attribution/kubernetes/test_api_server.h"
#include "attribution/kubernetes/test_kubelet.h"

namespace gpuassay {

// {"name":...} of a pod on a node, in the phase Running, with what is put into its parts.
struct TestPod {
  std::string name;
  std::string node = "node-1";
  std::string metadata = "";  // ,"labels":{...}
  std::string spec = "";      // ,"containers":[...]
  std::string phase = "Running";

  std::string Uid() const { return "uid-" + name; }
  std::string Json(int version) const;
};

// Objects of an API server, with versions and an event for each change; thread-safe. What is set to
// be answered instead comes first.
class TestObjects {
 public:
  TestReply Answer(const TestRequest& request);
  // The line of the event, to be sent to those who watch.
  std::string Put(const TestPod& pod);
  std::string Delete(const std::string& name);

  void Instead(std::string list_or_watch_or_slices, std::optional<TestReply> reply);
  void SetSlices(std::string items);
  void SetPageSize(std::size_t pods);                              // of a list
  std::vector<TestRequest> Requests(std::string_view kind) const;  // all until now
  int Count(std::string_view kind) const;                          // "list", "watch", "slices"

 private:
  TestReply Pods(const TestRequest& request) const;
  TestReply Events(const TestRequest& request) const;
  std::string Log(std::string_view type, const TestPod& pod);

  mutable std::mutex mutex_;  // guards all below
  int version_ = 100;
  std::map<std::string, TestPod> pods_;
  struct Event {
    int version;
    std::string node;
    std::string line;
  };
  std::vector<Event> events_;
  std::string slices_;
  std::size_t page_size_ = 1000;
  std::map<std::string, TestReply, std::less<>> instead_;
  std::vector<std::pair<std::string, TestRequest>> requests_;
};

// Short waiting times, and a folder of its own.
class KubernetesTest : public testing::Test {
 protected:
  KubernetesTest();
  ~KubernetesTest() override;

  void AskKubelet() { options_.pod_resources_socket = kubelet_.socket(); }
  void AskApi(const std::string& credentials = "token: secret");
  void ServeApi(bool tls = false);
  void Start();
  void Put(const TestPod& pod) { SendLine(objects_.Put(pod)); }
  void Delete(const std::string& name) { SendLine(objects_.Delete(name)); }
  void SendLine(const std::string& line);
  void WriteFile(const std::string& name, const std::string& text) const;

  SourceStatus Source(std::string_view name) const;
  std::string Error(std::string_view name) const;  // with DIR and SERVER for folder and address
  bool ErrorBecomes(std::string_view name, std::string_view error) const;
  bool ErrorBegins(std::string_view name, std::string_view error) const;
  std::vector<std::string> Pods() const;         // "namespace/name"
  std::vector<std::string> Allocations() const;  // "device namespace/pod/container"
  bool PodsBecome(const std::vector<std::string>& pods) const;
  bool AllocationsBecome(const std::vector<std::string>& allocations) const;
  const Pod* FindPod(std::string_view name);  // until the next call

  const SystemClock clock_;
  const std::string folder_;
  KubernetesOptions options_;
  TestKubelet kubelet_;
  TestObjects objects_;
  std::unique_ptr<TestApiServer> api_;
  std::unique_ptr<Kubernetes> kubernetes_;
  SchedulerPtr found_in_;
};

// False when it has not become true within ten seconds.
bool Eventually(const std::function<bool()>& condition);

}  // namespace gpuassay
