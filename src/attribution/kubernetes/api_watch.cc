#include "attribution/kubernetes/api_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace gpuassay {
namespace {

constexpr std::string_view kPodsPath = "/api/v1/pods";
constexpr int kPageItems = 500;
constexpr std::array<std::string_view, 3> kSliceVersions = {"v1", "v1beta2", "v1beta1"};
constexpr Duration kWatchLength = std::chrono::minutes(5);
constexpr Duration kLookPause = std::chrono::seconds(30);
// A watch that has lasted so many times the shortest back-off was a good one.
constexpr int kGoodWatchFactor = 10;

Error StatusError(int status, const std::string& body) {
  std::string message = StatusMessage(body);
  if (message.empty()) message = "no reason given";
  if (status == 401) {
    return {ErrorCode::kPermission, "the API server does not accept the credentials: " + message};
  }
  if (status == 403) return {ErrorCode::kPermission, "forbidden: " + message};
  if (status == 429) return {ErrorCode::kIo, "the API server is too busy: " + message};
  return {ErrorCode::kIo, fmt::format("the API server answers {}: {}", status, message)};
}

// Between three quarters and five quarters: the agents of a thousand nodes do not come back to a
// server all at once.
Duration Spread(Duration duration, const std::string& node, std::size_t failures) {
  const std::size_t hash = std::hash<std::string>()(fmt::format("{} {}", node, failures));
  return duration * static_cast<Duration::rep>(750 + hash % 501) / 1000;
}

}  // namespace

ApiWatch::ApiWatch(const KubernetesOptions& options, const Clock& clock,
                   std::function<void()> on_change)
    : options_(options),
      rules_{options.resource_names, options.pod_labels},
      selector_("fieldSelector=" + PercentEncode("spec.nodeName=" + options.node_name)),
      clock_(clock),
      on_change_(std::move(on_change)),
      client_(clock),
      backoff_(options.backoff_min, options.backoff_max) {}

ApiWatch::~ApiWatch() {
  Stop();
  Join();
}

void ApiWatch::Join() {
  if (thread_.joinable()) thread_.join();
}

void ApiWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ApiWatch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  client_.Stop();
}

void ApiWatch::LookForDevices() {
  {
    const std::lock_guard lock(mutex_);
    const SteadyTime now = clock_.Steady();
    if (looked_ && now - *looked_ < kLookPause) return;
    looked_ = now;
  }
  client_.Interrupt();
}

bool ApiWatch::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void ApiWatch::WaitAfterFailure() {
  Duration wait = Spread(backoff_.Next(), options_.node_name, ++failures_);
  if (retry_after_) wait = std::max(wait, std::min(*retry_after_, options_.backoff_max));
  retry_after_.reset();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, wait, [this] { return stopped_; });
}

Result<ApiAccess> ApiWatch::Access() const {
  if (options_.node_name.empty()) {
    return Fail(ErrorCode::kMalformed, "the name of this node in the cluster is not known");
  }
  if (!options_.kubeconfig.empty()) return ReadKubeconfig(options_.kubeconfig);
  return ReadServiceAccount(options_.service_account_directory, options_.api_server);
}

// An answer of any status.
Result<ApiResponse> ApiWatch::Get(const std::string& path, std::size_t bytes_max) {
  {
    const std::lock_guard lock(mutex_);
    book_.Asked();
  }
  const Result<ApiAccess> access = Access();
  if (!access) return std::unexpected(access.error());
  Result<ApiResponse> response = client_.Get(*access, path, options_.timeout, bytes_max);
  if (response) retry_after_ = response->retry_after;
  return response;
}

Result<void> ApiWatch::List() {
  const SteadyTime start = clock_.Steady();
  auto answer = std::make_shared<ApiAnswer>();
  std::string which = list_newest_ ? "" : "&resourceVersion=0";  // 0: whatever its cache has
  for (std::size_t page_number = 0; page_number < kApiPagesMax; ++page_number) {
    const Result<ApiResponse> response = Get(
        fmt::format("{}?limit={}{}&{}", kPodsPath, kPageItems, which, selector_), kPageBytesMax);
    if (!response) return std::unexpected(response.error());
    if (response->status != 200) {
      list_newest_ = response->status == 410;
      return std::unexpected(StatusError(response->status, response->body));
    }
    Result<PodPage> page = ParsePodPage(response->body, rules_);
    if (!page) {
      return Fail(page.error().code, "the list of pods is not understood: " + page.error().what);
    }
    answer->dropped += page->dropped;
    for (ApiPod& pod : page->pods) {
      const std::string uid = pod.pod.identity.uid;
      if (answer->pods.size() < kApiPodsMax) {
        answer->pods[uid] = std::make_shared<const ApiPod>(std::move(pod));
      } else {
        ++answer->dropped;
      }
    }
    version_ = page->resource_version;
    if (page->continue_token.empty()) break;
    which = "&continue=" + PercentEncode(page->continue_token);
  }
  list_newest_ = false;
  {
    const std::lock_guard lock(mutex_);
    if (answer_) answer->slices = answer_->slices;
    if (watch_failed_) {
      book_.HeardInPart(clock_.Wall());
    } else {
      book_.Succeeded(clock_.Wall(), clock_.Steady() - start);
    }
  }
  Publish(std::move(answer));
  return {};
}

// Of the first version of the API that the server has. Without any there are no such
// devices.
void ApiWatch::ReadSlices() {
  std::vector<SliceDevice> slices = answer_->slices;  // only this thread changes answer_
  std::string error;
  bool found = false;
  for (const std::string_view version : kSliceVersions) {
    const Result<ApiResponse> response =
        Get(fmt::format("/apis/resource.k8s.io/{}/resourceslices?{}", version, selector_),
            kPageBytesMax);
    if (response && response->status == 404) continue;
    found = true;
    if (!response) {
      error = response.error().what;
    } else if (response->status != 200) {
      error = StatusError(response->status, response->body).what;
    } else if (Result<std::vector<SliceDevice>> read = ParseResourceSlices(response->body)) {
      slices = std::move(*read);
    } else {
      error = "ResourceSlices are not understood: " + read.error().what;
    }
    break;
  }
  if (!found) slices.clear();
  {
    const std::lock_guard lock(mutex_);
    if (!error.empty()) book_.Missed();
    devices_error_ = error;
    tried_ = true;
  }
  auto answer = std::make_shared<ApiAnswer>(*answer_);
  answer->slices = std::move(slices);
  Publish(std::move(answer));
}

void ApiWatch::Publish(std::shared_ptr<const ApiAnswer> answer) {
  {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  on_change_();
}

ApiWatch::WatchEnd ApiWatch::Failed(const Error& error, bool of_watch, WatchEnd end) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return end;
    book_.Failed(error);
    watch_failed_ = of_watch;
    tried_ = true;
  }
  on_change_();
  return end;
}

void ApiWatch::Run() {
  while (!stopped()) {
    if (const Result<void> listed = List(); !listed) {
      Failed(listed.error(), /*of_watch=*/false, WatchEnd::kListLater);
      WaitAfterFailure();
      continue;
    }
    ReadSlices();
    WatchUntilStale();
  }
}

void ApiWatch::WatchUntilStale() {
  while (!stopped()) {
    switch (Watch()) {
      case WatchEnd::kAgain:
        break;
      case WatchEnd::kFailed:
        WaitAfterFailure();
        break;
      case WatchEnd::kList:
        return;
      case WatchEnd::kListLater:
        WaitAfterFailure();
        return;
    }
    if (!stopped()) ReadSlices();
  }
}

ApiWatch::WatchEnd ApiWatch::Watch() {
  line_end_.reset();
  opened_ = false;
  {
    const std::lock_guard lock(mutex_);
    book_.Asked();
  }
  const Result<ApiAccess> access = Access();
  if (!access) return Failed(access.error(), /*of_watch=*/true, WatchEnd::kFailed);
  const std::string path = fmt::format(
      "{}?watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}&{}", kPodsPath,
      PercentEncode(version_),
      std::chrono::duration_cast<std::chrono::seconds>(kWatchLength).count(), selector_);
  const SteadyTime start = clock_.Steady();
  const Result<ApiResponse> response = client_.Stream(
      *access, path, options_.timeout, kWatchLength + options_.timeout, kPodBytesMax,
      [this](std::string_view line) { return OnLine(line); }, [this] { OnOpen(); });
  return EndOf(response, clock_.Steady() - start);
}

void ApiWatch::OnOpen() {
  opened_ = true;
  {
    const std::lock_guard lock(mutex_);
    watch_failed_ = false;
    book_.Heard(clock_.Wall());
  }
  on_change_();
}

ApiWatch::WatchEnd ApiWatch::EndOf(const Result<ApiResponse>& response, Duration lasted) {
  constexpr bool kOfWatch = true;
  if (line_end_) return *line_end_;
  const bool good = opened_ && lasted >= options_.backoff_min * kGoodWatchFactor;
  if (good) {
    backoff_.Reset();
    expired_in_row_ = 0;
  }
  if (!response) {
    if (good) {  // connections break; only when there is no new one something is wrong
      const std::lock_guard lock(mutex_);
      book_.Missed();
      return WatchEnd::kAgain;
    }
    return Failed(
        response.error(), kOfWatch,
        response.error().code == ErrorCode::kMalformed ? WatchEnd::kListLater : WatchEnd::kFailed);
  }
  if (response->interrupted) return WatchEnd::kAgain;
  retry_after_ = response->retry_after;
  if (response->status == 410) return Expired();
  if (response->status != 200) {
    return Failed(StatusError(response->status, response->body), kOfWatch, WatchEnd::kListLater);
  }
  if (good) return WatchEnd::kAgain;
  return Failed({ErrorCode::kIo, "the API server ends the watch at once"}, kOfWatch,
                WatchEnd::kFailed);
}

// A list out of the server's cache may be too old to watch from, one of the newest state not.
ApiWatch::WatchEnd ApiWatch::Expired() {
  list_newest_ = true;
  if (++expired_in_row_ == 1) return WatchEnd::kList;
  return Failed({ErrorCode::kIo, "the API server does not keep the version of its last list"},
                /*of_watch=*/true, WatchEnd::kListLater);
}

bool ApiWatch::OnLine(std::string_view line) {
  Result<WatchEvent> event = ParseWatchEvent(line, rules_);
  if (!event) {
    const Error error{event.error().code,
                      "an event of the watch is not understood: " + event.error().what};
    line_end_ = Failed(error, /*of_watch=*/true, WatchEnd::kListLater);
    return false;
  }
  if (event->kind == WatchEvent::Kind::kError) {
    line_end_ = event->code == 410
                    ? Expired()
                    : Failed({ErrorCode::kIo, fmt::format("the API server ended the watch: {} ({})",
                                                          event->message, event->code)},
                             /*of_watch=*/true, WatchEnd::kListLater);
    return false;
  }
  if (!event->resource_version.empty()) version_ = event->resource_version;
  expired_in_row_ = 0;
  {
    const std::lock_guard lock(mutex_);
    book_.Heard(clock_.Wall());
  }
  if (event->kind != WatchEvent::Kind::kBookmark) Apply(std::move(*event));
  return true;
}

void ApiWatch::Apply(WatchEvent event) {
  auto answer = std::make_shared<ApiAnswer>(*answer_);  // only this thread changes answer_
  const std::string uid = event.pod.pod.identity.uid;
  if (event.kind == WatchEvent::Kind::kDelete) {
    answer->pods.erase(uid);
  } else if (answer->pods.contains(uid) || answer->pods.size() < kApiPodsMax) {
    answer->pods[uid] = std::make_shared<const ApiPod>(std::move(event.pod));
  } else {
    ++answer->dropped;
  }
  Publish(std::move(answer));
}

ApiWatch::Told ApiWatch::Latest() const {
  const std::lock_guard lock(mutex_);
  return {answer_, book_.answered() && book_.status().error.empty(), tried_, devices_error_};
}

SourceStatus ApiWatch::Status() const {
  const std::lock_guard lock(mutex_);
  return book_.status();
}

}  // namespace gpuassay
