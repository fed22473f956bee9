#include "attribution/join/holder_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "attribution/join/living_containers.h"
#include "attribution/join/node_names.h"

namespace gpuassay {
namespace {

// A scan that takes longer than this waits for a process.
constexpr Duration kHangsAfter = std::chrono::seconds(60);

// What only the directories of runtimes and kubelet tell; names as far as files tell them.
void AddWhatIsKnown(const RootFs& root, std::vector<HolderScan::Found>& found) {
  const LivingContainers living(root);
  NodeNames names(root);
  for (HolderScan::Found& one : found) {
    DeviceHolder& holder = one.holder;
    if (holder.kind > HolderKind::kContainerGone && living.Gone(holder.owner)) {
      holder.kind = HolderKind::kContainerGone;
    }
    names.Fill(holder.owner);
  }
}

// Half of what is told as memory that nobody owns (views/disagreements.h), so that who holds it is
// known by then.
constexpr double kUnlistedBytesMin = 256.0 * 1024 * 1024;

// Ascending, each once.
std::vector<std::uint32_t> ListedPids(const Snapshot& snapshot) {
  std::vector<std::uint32_t> pids;
  for (const Gpu& gpu : snapshot.gpus) {
    for (const GpuProcess& process : gpu.processes) pids.push_back(process.pid);
  }
  std::ranges::sort(pids);
  const auto rest = std::ranges::unique(pids);
  pids.erase(rest.begin(), rest.end());
  return pids;
}

// Also when it cannot be told.
bool MayHoldUnlisted(const Gpu& gpu) {
  if (!gpu.readings.memory_used_bytes) return false;
  double unlisted = *gpu.readings.memory_used_bytes;
  for (const GpuProcess& process : gpu.processes) {
    if (!process.readings.memory_used_bytes) return true;
    unlisted -= *process.readings.memory_used_bytes;
  }
  return unlisted >= kUnlistedBytesMin;
}

}  // namespace

struct HolderWatch::State {
  mutable std::mutex mutex;  // guards all that follows
  std::condition_variable_any changed;
  std::vector<HolderScan::Found> found;
  std::string error;
  std::uint32_t unreadable = 0;
  std::optional<SteadyTime> scanning_since;
  bool reason = false;  // to look soon
};

HolderWatch::HolderWatch(RootFs root, HolderWatchOptions options)
    : root_(std::move(root)),
      proc_(root_),
      options_(options),
      state_(std::make_shared<State>()),
      owners_(std::make_unique<ProcessOwners>(root_, kTicksPerSecond, 0)) {
  if (!options_.in_background) return;
  const auto work = [state = state_, root = root_,
                     options = options_](const std::stop_token& stop) {
    ProcessOwners owners(root, kTicksPerSecond, 0);
    while (!stop.stop_requested()) {
      owners.BeginCycle();
      ScanInto(root, options.self_pid, owners, *state);
      std::unique_lock lock(state->mutex);
      state->changed.wait_for(lock, stop, options.interval, [] { return false; });
      state->changed.wait_for(lock, stop, options.quiet_interval - options.interval,
                              [&state] { return state->reason; });
      state->reason = false;
    }
  };
  thread_ = std::make_unique<LeavableThread>(work);
}

HolderWatch::~HolderWatch() = default;

void HolderWatch::ScanInto(const RootFs& root, std::uint32_t self_pid, ProcessOwners& owners,
                           State& state) {
  const SystemClock clock;
  {
    const std::lock_guard lock(state.mutex);
    state.scanning_since = clock.Steady();
  }
  HolderOptions options;
  options.self_pid = self_pid;
  Result<HolderScan> scan = ScanHolders(Proc(root), owners, options);
  if (scan) {
    std::erase_if(scan->found, [](const HolderScan::Found& one) {
      return std::ranges::none_of(
          one.files, [](const std::string& file) { return MinorOfDeviceFile(file).has_value(); });
    });
    AddWhatIsKnown(root, scan->found);
  }
  const std::lock_guard lock(state.mutex);
  state.scanning_since.reset();
  state.error = scan ? "" : scan.error().what;
  if (!scan) return;
  state.found = std::move(scan->found);
  state.unreadable = scan->unreadable;
}

void HolderWatch::Scan() { ScanInto(root_, options_.self_pid, *owners_, *state_); }

std::string HolderWatch::trouble() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->scanning_since && clock_.Steady() - *state_->scanning_since >= kHangsAfter) {
    return "looking for open device files hangs: a process does not let itself be read";
  }
  if (!state_->error.empty()) {
    return fmt::format("who holds device files is not known: {}", state_->error);
  }
  if (state_->unreadable > 0) {
    return fmt::format("the open files of {} processes cannot be read (CAP_SYS_PTRACE is missing)",
                       state_->unreadable);
  }
  return "";
}

bool HolderWatch::IsReason(const Snapshot& snapshot) {
  std::vector<std::uint32_t> listed = ListedPids(snapshot);
  const bool left = !std::ranges::includes(listed, listed_);
  listed_ = std::move(listed);
  return left || std::ranges::any_of(snapshot.gpus, MayHoldUnlisted);
}

void HolderWatch::Fill(Snapshot& snapshot) {
  const bool reason = IsReason(snapshot);
  const std::lock_guard lock(state_->mutex);
  if (reason && !state_->reason) {
    state_->reason = true;
    state_->changed.notify_all();
  }
  const auto is_listed = [this](std::uint32_t pid) {
    return std::ranges::binary_search(listed_, pid);
  };
  for (const HolderScan::Found& found : state_->found) {
    const DeviceHolder& holder = found.holder;
    if (is_listed(holder.pid) || is_listed(holder.parent_pid)) continue;
    // It may have ended since, and its PID may be another's.
    if (proc_.StartAfterBoot(holder.pid) != holder.start_after_boot) continue;
    for (Gpu& gpu : snapshot.gpus) {
      if (!gpu.identity.minor_number || gpu.holders.size() >= kHoldersPerGpuMax) continue;
      const bool holds = std::ranges::any_of(found.files, [&gpu](const std::string& file) {
        return MinorOfDeviceFile(file) == gpu.identity.minor_number;
      });
      if (holds) gpu.holders.push_back(holder);
    }
  }
}

}  // namespace gpuassay
