// Keeps what the API server knows of one node: lists its pods, then watches them; and reads the
// node's ResourceSlices.
//
// Requests (all with fieldSelector spec.nodeName):
//   GET /api/v1/pods                                    in pages; from the server's cache
//   GET /api/v1/pods?watch=1                            with bookmarks, five minutes at a time
//   GET /apis/resource.k8s.io/v1/resourceslices         or v1beta2, v1beta1; before each watch
// Credentials are read again for each of them.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "attribution/kubernetes/api_client.h"
#include "attribution/kubernetes/backoff.h"
#include "attribution/kubernetes/kubernetes.h"
#include "attribution/kubernetes/scheduler_merge.h"
#include "attribution/kubernetes/source_book.h"

namespace gpuassay {

inline constexpr std::size_t kApiPodsMax = 4096;  // of one node, finished ones too
inline constexpr std::size_t kApiPagesMax = 64;   // of one list

// Thread-safe. A thread of its own from Start() on.
class ApiWatch {
 public:
  // `on_change` is called by that thread when Latest() has changed.
  ApiWatch(const KubernetesOptions& options, const Clock& clock, std::function<void()> on_change);
  ~ApiWatch();
  ApiWatch(const ApiWatch&) = delete;
  ApiWatch& operator=(const ApiWatch&) = delete;

  void Start();
  // Ends a running request, and lets the thread end soon after.
  void Stop();
  // Waits for its end; also done by the destructor.
  void Join();

  // Reads the ResourceSlices again, at most every half minute.
  void LookForDevices();

  struct Told {
    std::shared_ptr<const ApiAnswer> answer;  // null: none
    bool current = false;                     // no failure since
    bool tried = false;
    std::string devices_error;  // why there are no ResourceSlices, or old ones
  };
  Told Latest() const;
  // "kubernetes_api"; `error` is what is wrong, without what is missing because of it.
  SourceStatus Status() const;

 private:
  enum class WatchEnd {
    kAgain,      // as it should be
    kFailed,     // again from the same version, later
    kList,       // the version is too old
    kListLater,  // after a failure
  };

  void Run();
  Result<ApiAccess> Access() const;
  Result<ApiResponse> Get(const std::string& path, std::size_t bytes_max);
  Result<void> List();
  void ReadSlices();
  void WatchUntilStale();
  WatchEnd Watch();
  WatchEnd EndOf(const Result<ApiResponse>& response, Duration lasted);
  bool OnLine(std::string_view line);  // false ends the watch
  void OnOpen();
  void Apply(WatchEvent event);
  WatchEnd Expired();
  // The failure of what, and what to do then.
  WatchEnd Failed(const Error& error, bool of_watch, WatchEnd end);
  void WaitAfterFailure();
  bool stopped() const;
  void Publish(std::shared_ptr<const ApiAnswer> answer);

  const KubernetesOptions options_;
  const PodRules rules_;
  const std::string selector_;
  const Clock& clock_;
  const std::function<void()> on_change_;
  ApiClient client_;

  // Of the thread alone.
  Backoff backoff_;
  std::size_t failures_ = 0;
  std::optional<Duration> retry_after_;  // of the last answer
  std::string version_;                  // of the last list, event or bookmark
  bool list_newest_ = false;             // the cache of the server has been too old
  int expired_in_row_ = 0;
  std::optional<WatchEnd> line_end_;  // why OnLine() has ended the watch
  bool opened_ = false;

  mutable std::mutex mutex_;  // guards all below but thread_
  std::condition_variable changed_;
  bool stopped_ = false;
  bool tried_ = false;
  bool watch_failed_ = false;  // then a list alone does not make all well
  std::shared_ptr<const ApiAnswer> answer_;
  SourceBook book_{"kubernetes_api"};
  std::string devices_error_;
  std::optional<SteadyTime> looked_;
  std::thread thread_;
};

}  // namespace gpuassay
