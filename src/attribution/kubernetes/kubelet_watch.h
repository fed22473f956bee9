// Asks the kubelet again and again who has which device.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "attribution/kubernetes/kubernetes.h"
#include "attribution/kubernetes/pod_resources.h"
#include "attribution/kubernetes/source_book.h"

namespace gpuassay {

// Thread-safe. A thread of its own from Start() on.
class KubeletWatch {
 public:
  // `on_answer` is called by that thread after each answer and each failure.
  KubeletWatch(const KubernetesOptions& options, const Clock& clock,
               std::function<void()> on_answer);
  ~KubeletWatch();
  KubeletWatch(const KubeletWatch&) = delete;
  KubeletWatch& operator=(const KubeletWatch&) = delete;

  void Start();
  // Ends a running question, and lets the thread end soon after.
  void Stop();
  // Waits for its end; also done by the destructor.
  void Join();

  // Asks now: at most once a second, and the less often the longer nothing new comes of it; at
  // least every `poll`. Not while the kubelet fails.
  void Poke();

  struct Told {
    std::shared_ptr<const KubeletAnswer> answer;  // the last one; null: none
    bool current = false;                         // no failure since
    bool tried = false;
  };
  Told Latest() const;
  // "pod_resources"
  SourceStatus Status() const;

 private:
  void Run();
  // True when the answer is another than before.
  bool Ask();
  bool TakePoke();
  bool Wait(Duration duration, bool until_poked);

  const Duration poll_, timeout_, backoff_min_;
  const Clock& clock_;
  const std::function<void()> on_answer_;
  PodResourcesClient client_;
  mutable std::mutex mutex_;  // guards all below but thread_
  std::condition_variable changed_;
  bool stopped_ = false;
  bool poked_ = false;
  std::shared_ptr<const KubeletAnswer> answer_;
  SourceBook book_{"pod_resources"};
  std::thread thread_;
};

// What is wrong and what is missing because of it, on one line; empty when nothing is.
std::string KubeletTrouble(const SourceStatus& status, const KubeletAnswer* answer);

}  // namespace gpuassay
