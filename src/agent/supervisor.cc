#include "agent/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/stale.h"
#include "base/check.h"
#include "base/log.h"
#include "model/snapshot_codec.h"

namespace gpuassay {
namespace {

constexpr auto kReapPoll = std::chrono::milliseconds(5);

// A worker that leaves a GPU alone does not know who it is; the worker before it did.
void RememberIdentities(Snapshot& snapshot, const Snapshot& before) {
  for (Gpu& gpu : snapshot.gpus) {
    if (!gpu.identity.uuid.empty()) continue;
    const auto known = std::ranges::find(before.gpus, gpu.identity.index,
                                         [](const Gpu& other) { return other.identity.index; });
    if (known != before.gpus.end()) gpu.identity = known->identity;
  }
}

SnapshotPtr EmptySnapshot(const SupervisorOptions& options) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->time = options.clock->Wall();
  snapshot->steady = options.clock->Steady();
  snapshot->node.hostname = options.worker.hostname;
  SourceStatus status;
  status.name = SourceSpecText({options.worker.source.kind, ""});
  status.error = "no reading yet";
  status.readings.up = 0;
  status.readings.hanging = 0;
  snapshot->sources.push_back(std::move(status));
  return snapshot;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, std::unique_ptr<Completion> completion)
    : options_(std::move(options)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      policy_(options_.policy),
      completion_(completion ? std::move(completion)
                             : std::make_unique<Completion>(options_.worker.interval)) {
  Check(options_.clock != nullptr, "supervisor without a clock");
  Check(wake_fd_ >= 0, "no file descriptor left for an eventfd");
  latest_.Set(EmptySnapshot(options_));
}

Supervisor::~Supervisor() {
  thread_.request_stop();
  eventfd_write(wake_fd_, 1);
  if (thread_.joinable()) thread_.join();
  close(wake_fd_);
}

void Supervisor::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void Supervisor::Release() {
  request_ = Request::kRelease;
  eventfd_write(wake_fd_, 1);
}

void Supervisor::Resume() {
  request_ = Request::kResume;
  eventfd_write(wake_fd_, 1);
}

std::string Supervisor::NotReadyReason() const {
  const SnapshotPtr snapshot = Latest();
  const SourceStatus& source = snapshot->sources.front();
  if (!source.last_success) return fmt::format("{}: {}", source.name, source.error);
  const Duration age = options_.clock->Wall() - *source.last_success;
  if (source.error.empty() && age <= options_.policy.hang_after) return "";
  const std::string why = source.error.empty() ? "nothing newer has come" : source.error;
  return fmt::format("{}: {}; last reading {:.1f} s ago", source.name, why, Seconds(age));
}

void Supervisor::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const SteadyTime now = options_.clock->Steady();
    TakeRequest(now);
    Act(now);
    ReapAbandoned();
    PublishTrouble(now);
    Wait(now);
    TakeFrames();
  }
  EndWorker();
}

void Supervisor::TakeRequest(SteadyTime now) {
  switch (request_.exchange(Request::kNone)) {
    case Request::kNone:
      return;
    case Request::kRelease:
      LogInfo("releasing the devices; SIGUSR2 takes them back");
      policy_.Release();
      return;
    case Request::kResume:
      LogInfo("taking the devices back");
      policy_.Resume(now);
      return;
  }
}

void Supervisor::Act(SteadyTime now) {
  switch (policy_.Decide(now)) {
    case WorkerPolicy::Action::kNone:
      return;
    case WorkerPolicy::Action::kStart:
      return StartWorker(now);
    case WorkerPolicy::Action::kAskToEnd:
      return worker_->AskToEnd();
    case WorkerPolicy::Action::kKill:
      LogWarning(fmt::format("replacing the driver worker {}: {}", worker_->pid(), CallUnderWay()));
      policy_.OnHangingGpu(now, worker_->gpu_under_way());
      failure_ = CallUnderWay();
      failure_reason_ = Missing::kTimedOut;
      return worker_->Kill();
    case WorkerPolicy::Action::kAbandon:
      LogError(fmt::format("driver worker {} does not die: the driver holds it in the kernel",
                           worker_->pid()));
      abandoned_.push_back(std::move(worker_));
      policy_.OnAbandoned(now);
      return;
  }
}

void Supervisor::StartWorker(SteadyTime now) {
  WorkerOptions options = options_.worker;
  options.gpus_to_skip = policy_.skipped_gpus();
  frames_.Clear();
  policy_.OnStarted(now);
  ++starts_;
  completion_->SourceStarts();
  Result<std::unique_ptr<WorkerProcess>> worker =
      WorkerProcess::Start(options_.program, std::move(options));
  if (worker) {
    worker_ = std::move(*worker);
    return;
  }
  LogError(worker.error().what);
  failure_ = worker.error().what;
  failure_reason_ = Missing::kDriverError;
  policy_.OnExit(now, false);
}

void Supervisor::Wait(SteadyTime now) {
  SteadyTime until = policy_.NextDecision(now);
  if (last_reading_ && !published_stale_) {
    until = std::min(until, last_reading_at_ + options_.stale_after);
  }
  // A worker that was asked to end, or killed, or left alone, shows no event when it dies.
  const bool dying = worker_ && worker_->fd() < 0;
  if (dying || !abandoned_.empty()) {
    until =
        std::min(until, now + (dying ? Duration(kReapPoll) : Duration(std::chrono::seconds(1))));
  }
  const Duration left = std::max(Duration(0), until - now);
  pollfd fds[2] = {{wake_fd_, POLLIN, 0}, {worker_ ? worker_->fd() : -1, POLLIN, 0}};
  // Rounded up: waking a moment too early would only mean another round.
  poll(fds, 2, static_cast<int>((left.count() + 999) / 1000));
  eventfd_t ignored = 0;
  eventfd_read(wake_fd_, &ignored);
}

void Supervisor::TakeFrames() {
  if (!worker_) return;
  bool open = worker_->fd() >= 0 && worker_->Receive(frames_);
  for (;;) {
    Result<std::optional<Frame>> frame = frames_.Next();
    if (!frame) {
      LogError(fmt::format("driver worker {}: {}", worker_->pid(), frame.error().what));
      frames_.Clear();
      open = false;
      worker_->Kill();
      break;
    }
    if (!frame->has_value()) break;
    if ((*frame)->kind == FrameKind::kSnapshot) {
      TakeSnapshot((*frame)->payload);
    } else {
      last_words_ = (*frame)->payload;  // said when it has ended: it may be bad input
    }
  }
  if (!open) LetGoOfWorker();
}

void Supervisor::TakeSnapshot(std::string_view payload) {
  Result<Snapshot> decoded = DecodeSnapshot(payload);
  if (!decoded) {
    LogError(fmt::format("driver worker: {}", decoded.error().what));
    return;
  }
  if (last_reading_) RememberIdentities(*decoded, *last_reading_);
  if (decoded->sources.empty()) decoded->sources.emplace_back();
  completion_->Apply(*decoded);
  SourceStatus& status = decoded->sources.front();
  status.readings.hanging = 0;
  status.readings.worker_starts_total = static_cast<double>(starts_);
  const SteadyTime now = options_.clock->Steady();
  policy_.OnReading(now);
  if (last_reading_ && decoded->gpus.empty() && !status.error.empty()) {
    // The worker lives and the driver does not: what is known of the GPUs stays, with its age.
    failure_ = status.error;
    failure_reason_ = status.missing;
    return;
  }
  if (!failure_.empty()) LogInfo(fmt::format("{}: readings come again", status.name));
  failure_.clear();
  published_trouble_.clear();
  published_stale_ = false;
  last_reading_at_ = now;
  last_reading_ = std::make_shared<const Snapshot>(std::move(*decoded));
  latest_.Set(last_reading_);
}

// The stream is at its end: the worker has ended or is about to.
void Supervisor::LetGoOfWorker() {
  worker_->AskToEnd();
  const std::optional<int> exit_code = worker_->TryReap();
  if (!exit_code) return;
  WorkerEnded(*exit_code);
  worker_.reset();
}

void Supervisor::WorkerEnded(int exit_code) {
  const SteadyTime now = options_.clock->Steady();
  const bool bad_input = exit_code == kWorkerBadInput || exit_code == kWorkerNotFound;
  const bool first_try = starts_ == 1 && !last_reading_;
  if (bad_input && first_try && !options_.worker.source.argument.empty()) {
    policy_.Release();
    options_.on_bad_input({ErrorCode::kMalformed, std::move(last_words_)});
    return policy_.OnExit(now, false);
  }
  if (exit_code == kWorkerEnded && options_.worker.source.kind == SourceSpec::Kind::kReplay &&
      !policy_.released()) {
    recording_ended_ = true;
    policy_.Release();
    LogInfo("the recording has ended");
  }
  if (bad_input) {
    failure_ = std::move(last_words_);
    failure_reason_ = Missing::kNotSupported;
  } else if (exit_code == kWorkerNeedsSuccessor) {
    failure_ = "driver library and kernel module are of different versions";
    failure_reason_ = Missing::kVersionMismatch;
    LogWarning(failure_ + "; opening the library again in a new worker");
  } else if (exit_code != kWorkerEnded && failure_.empty()) {
    failure_ = exit_code > 128
                   ? fmt::format("the driver worker was ended by signal {}", exit_code - 128)
                   : fmt::format("the driver worker ended with code {}", exit_code);
    failure_reason_ = Missing::kDriverError;
    LogError(failure_);
  }
  policy_.OnExit(now, exit_code == kWorkerNeedsSuccessor);
}

void Supervisor::ReapAbandoned() {
  std::erase_if(abandoned_, [this](const std::unique_ptr<WorkerProcess>& worker) {
    if (!worker->TryReap()) return false;
    LogInfo(fmt::format("driver worker {} has died after all", worker->pid()));
    policy_.OnAbandonedDied();
    return true;
  });
}

void Supervisor::EndWorker() {
  if (!worker_) return;
  worker_->AskToEnd();
  const SteadyTime give_up = options_.clock->Steady() + options_.policy.kill_grace;
  while (!worker_->TryReap()) {
    if (options_.clock->Steady() >= give_up) return worker_->Kill();
    std::this_thread::sleep_for(kReapPoll);
  }
}

std::string Supervisor::CallUnderWay() const {
  const std::optional<std::uint32_t> function =
      worker_ ? worker_->function_under_way() : std::nullopt;
  if (!function) return "no reading comes from the driver worker";
  const std::optional<std::uint32_t> gpu = worker_->gpu_under_way();
  return fmt::format("driver call {}{} does not return", NvmlFunctionName(*function),
                     gpu ? fmt::format(" on GPU {}", *gpu) : "");
}

std::string Supervisor::Trouble(SteadyTime now) const {
  if (recording_ended_) return "the recording has ended";
  if (policy_.released()) return "devices released on request";
  if (policy_.Hanging(now) && worker_ && worker_->fd() >= 0) return CallUnderWay();
  return failure_;
}

Missing Supervisor::TroubleReason(SteadyTime now) const {
  if (policy_.released() && !recording_ended_) return Missing::kReleased;
  if (recording_ended_ || policy_.Hanging(now)) return Missing::kTimedOut;
  return failure_reason_;
}

void Supervisor::PublishTrouble(SteadyTime now) {
  const std::string trouble = Trouble(now);
  if (trouble.empty()) return;
  const bool stale =
      last_reading_ && (policy_.released() || now - last_reading_at_ >= options_.stale_after);
  if (trouble == published_trouble_ && stale == published_stale_ && starts_ == published_starts_) {
    return;
  }
  if (trouble != published_trouble_ && !policy_.released()) LogWarning(trouble);
  published_trouble_ = trouble;
  published_stale_ = stale;
  published_starts_ = starts_;
  auto snapshot =
      std::make_shared<Snapshot>(last_reading_ ? *last_reading_ : *EmptySnapshot(options_));
  SourceStatus& status = snapshot->sources.front();
  status.error = trouble;
  status.missing = TroubleReason(now);
  status.readings.up = 0;
  status.readings.hanging = policy_.Hanging(now) ? 1 : 0;
  status.readings.worker_starts_total = static_cast<double>(starts_);
  snapshot->events.clear();
  if (stale) MarkReadingsMissing(*snapshot, status.missing);
  latest_.Set(std::move(snapshot));
}

}  // namespace gpuassay
