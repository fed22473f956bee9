#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/catalogue.h"
#include "sources/replay/recording.h"
#include "sources/replay/recording_reader.h"

namespace gpuassay {
namespace {

constexpr std::string_view kName = "replay";
// A longer pause between two frames is a damaged time stamp.
constexpr Duration kPauseMax = std::chrono::days(30);

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  Result<std::size_t> Read(std::span<char> buffer) const {
    for (;;) {
      const ssize_t size = read(fd_, buffer.data(), buffer.size());
      if (size >= 0) return static_cast<std::size_t>(size);
      if (errno != EINTR) return Fail(ErrorCode::kIo, std::strerror(errno));
    }
  }

 private:
  int fd_;
};

// Between two readings of the steady clock; any 64 bits are allowed.
Duration PauseBetween(SteadyTime before, SteadyTime after) {
  const Duration::rep from = before.time_since_epoch().count();
  const Duration::rep to = after.time_since_epoch().count();
  Duration::rep difference = 0;
  if (__builtin_sub_overflow(to, from, &difference)) return Duration::zero();
  return std::clamp(Duration(difference), Duration::zero(), kPauseMax);
}

// Times in a damaged file can be any number; one that cannot be moved stays.
template <class Time>
void Move(Time& time, Duration by) {
  Duration::rep moved = 0;
  if (!__builtin_add_overflow(time.time_since_epoch().count(), by.count(), &moved)) {
    time = Time(Duration(moved));
  }
}

class ReplaySource final : public Source {
 public:
  ReplaySource(std::string path, std::unique_ptr<RecordingReader> reader, ReplayPace pace,
               const Clock& clock)
      : path_(std::move(path)), reader_(std::move(reader)), pace_(pace), clock_(clock) {}

  std::string_view name() const override { return kName; }

  // The first frame is needed to know that this is a recording at all.
  Result<void> Start() {
    Prefetch();
    if (next_) return {};
    return Fail(ErrorCode::kMalformed, error_.empty()
                                           ? path_ + ": the recording holds no frames"
                                           : fmt::format("{}; not one whole frame", error_));
  }

  Snapshot Read() override {
    if (!started_) Begin();
    std::vector<DriverEvent> events;
    if (pace_ == ReplayPace::kAsFastAsRead) {
      if (next_) Take(events);
    } else {
      const Duration elapsed = clock_.Steady() - *started_;
      while (next_ && next_due_ <= elapsed) Take(events);
    }
    if (events.size() > kEventsMax) events.resize(kEventsMax);
    current_.events = std::move(events);
    UpdateStatus();
    return current_;
  }

  bool AtEnd() const override { return !next_; }

 private:
  void Begin() {
    started_ = clock_.Steady();
    const Duration::rep now = clock_.Wall().time_since_epoch().count();
    const Duration::rep recorded = next_ ? next_->time.time_since_epoch().count() : now;
    Duration::rep difference = 0;
    if (pace_ == ReplayPace::kRecorded && !__builtin_sub_overflow(now, recorded, &difference)) {
      moved_by_ = Duration(difference);
    }
  }

  void MoveTimes(Snapshot& snapshot) const {
    Move(snapshot.time, moved_by_);
    snapshot.steady = *started_ + next_due_;
    for (DriverEvent& event : snapshot.events) Move(event.time, moved_by_);
    for (SourceStatus& source : snapshot.sources) {
      if (source.last_success) Move(*source.last_success, moved_by_);
    }
  }

  // Makes the next frame the current one; its events are added to `events`.
  void Take(std::vector<DriverEvent>& events) {
    current_ = std::move(*next_);
    const SteadyTime recorded = current_.steady;
    if (pace_ == ReplayPace::kRecorded) MoveTimes(current_);
    ++taken_;
    std::ranges::move(current_.events, std::back_inserter(events));
    Prefetch();
    if (next_) next_due_ += PauseBetween(recorded, next_->steady);
  }

  void Prefetch() {
    Result<std::optional<Snapshot>> next = reader_->Next();
    if (next) {
      next_ = std::move(*next);
      return;
    }
    next_.reset();
    error_ = fmt::format("{}: {}", path_, next.error().what);
  }

  void UpdateStatus() {
    std::erase_if(current_.sources, [](const SourceStatus& s) { return s.name == kName; });
    SourceStatus& status = current_.sources.emplace_back();
    status.name = kName;
    status.last_success = pace_ == ReplayPace::kAsFastAsRead ? current_.time : clock_.Wall();
    SetAllMissing(status.readings, Missing::kNotSupported);
    status.readings.up = 1.0;
    status.readings.reads_total = static_cast<double>(taken_);
    const bool torn = !next_ && !error_.empty();
    status.readings.failures_total = torn ? 1.0 : 0.0;
    if (!torn) return;
    status.error = fmt::format("{}; {} frames could be read", error_, taken_);
    status.missing = Missing::kNeverSampled;
  }

  const std::string path_;
  const std::unique_ptr<RecordingReader> reader_;
  const ReplayPace pace_;
  const Clock& clock_;
  std::optional<SteadyTime> started_;
  Snapshot current_;
  std::optional<Snapshot> next_;
  Duration next_due_ = {};  // since started_
  Duration moved_by_ = {};  // added to every time
  std::uint64_t taken_ = 0;
  std::string error_;
};

}  // namespace

Result<std::unique_ptr<Source>> OpenReplay(const std::string& path, ReplayPace pace,
                                           const Clock& clock) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const ErrorCode code = errno == ENOENT                     ? ErrorCode::kNotFound
                           : errno == EACCES || errno == EPERM ? ErrorCode::kPermission
                                                               : ErrorCode::kIo;
    return Fail(code, fmt::format("{}: cannot open the recording: {}", path, std::strerror(errno)));
  }
  Result<std::unique_ptr<RecordingReader>> reader = RecordingReader::Open(
      [file = File(fd)](std::span<char> buffer) { return file.Read(buffer); });
  if (!reader) {
    return Fail(reader.error().code, fmt::format("{}: {}", path, reader.error().what));
  }
  auto source = std::make_unique<ReplaySource>(path, std::move(*reader), pace, clock);
  if (Result<void> result = source->Start(); !result) return std::unexpected(result.error());
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace gpuassay
