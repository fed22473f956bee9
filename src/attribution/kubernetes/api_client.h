// GET requests to the API server (libcurl, HTTP/1.1, TLS 1.2 and newer), whole answers and streams
// of lines. Knows nothing of Kubernetes' objects but the Status in an error.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "attribution/kubernetes/kubeconfig.h"
#include "base/clock.h"
#include "base/result.h"

namespace gpuassay {

struct ApiResponse {
  int status = 0;    // HTTP
  std::string body;  // of a stream: only when the status is not 200
  std::optional<Duration> retry_after;
  bool interrupted = false;  // by Interrupt() or Stop(); the rest is what came before
  bool half_line = false;    // of a stream: the last line had no end
};

// Requests are for one thread, Interrupt() and Stop() for any. Nothing is read from the environment
// (no proxy) and no redirect is followed.
class ApiClient {
 public:
  explicit ApiClient(const Clock& clock);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // A whole answer of at most `bytes_max` within `timeout`. Errors are one line: kTimeout,
  // kPermission (a certificate is not accepted), kMalformed (longer, or no HTTP), kIo.
  Result<ApiResponse> Get(const ApiAccess& access, const std::string& path, Duration timeout,
                          std::size_t bytes_max);

  // Each line of an answer with status 200 to `on_line`, until that returns false (interrupted),
  // the server ends it, or `length_max` has passed. The answer has to begin within `timeout`.
  // kMalformed when a line is longer than `line_max`. `on_open` is called once, when an answer with
  // status 200 has begun.
  Result<ApiResponse> Stream(const ApiAccess& access, const std::string& path, Duration timeout,
                             Duration length_max, std::size_t line_max,
                             const std::function<bool(std::string_view)>& on_line,
                             const std::function<void()>& on_open = {});

  // Ends a running Stream() at once, or the next one.
  void Interrupt();
  // Ends whatever runs at once, and every later request.
  void Stop();

 private:
  struct Transfer;
  Result<ApiResponse> Perform(const ApiAccess& access, Transfer& transfer);
  bool Wait(Transfer& transfer);

  const Clock& clock_;
  void* multi_;  // CURLM
  std::atomic<bool> interrupt_ = false;
  std::atomic<bool> stop_ = false;
};

// A text as a part of a query: everything but letters, digits and "-._~" as %XX.
std::string PercentEncode(std::string_view text);

}  // namespace gpuassay
