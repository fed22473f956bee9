#include "attribution/node/holders.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/root_fs.h"

namespace gpuassay {
namespace {

constexpr std::string_view kDeviceFilePrefix = "/nvidia";  // below kDeviceDirectory
// comm is cut at 15 bytes: "nvidia-cuda-mps-server" and "nvidia-cuda-mps-control".
constexpr std::string_view kMpsName = "nvidia-cuda-mps";
constexpr std::size_t kMpsServerLine = 4096;
// A process that waits for a disk is in state D too, for some milliseconds. One that has not run
// at all for so long hangs.
constexpr Duration kSecondLookAfter = std::chrono::milliseconds(100);
constexpr int kAncestorsMax = 1024;

using Stats = std::unordered_map<std::uint32_t, ProcStat>;

Stats ReadStats(const Proc& proc, const std::vector<std::uint32_t>& pids) {
  Stats stats;
  stats.reserve(pids.size());
  for (const std::uint32_t pid : pids) {
    if (std::optional<ProcStat> stat = proc.StatQuickly(pid)) stats.emplace(pid, std::move(*stat));
  }
  return stats;
}

bool IsSelfOrChild(const Stats& stats, std::uint32_t pid, std::uint32_t self) {
  if (self == 0) return false;
  for (int i = 0; i < kAncestorsMax && pid != 0; ++i) {
    if (pid == self) return true;
    const auto found = stats.find(pid);
    if (found == stats.end()) return false;
    pid = found->second.parent_pid;
  }
  return false;
}

// Whoever started it has ended: the leader of its group is no more (or its PID is a younger
// process), and it has been adopted by a process of another session: init, a service manager, the
// shim of a container, a batch system's step. A shell is of the same session, and so is a
// container's init. Daemons of a service manager are no orphans: it ends them.
bool IsOrphan(const Stats& stats, const ProcStat& stat, const ProcessOwner& owner) {
  if (stat.process_group == 0 || stat.process_group == stat.pid) return false;
  const auto leader = stats.find(stat.process_group);
  if (leader != stats.end() && leader->second.start_ticks <= stat.start_ticks) return false;
  const auto parent = stats.find(stat.parent_pid);
  if (parent != stats.end() && parent->second.session == stat.session) return false;
  return owner.container || owner.job || !owner.systemd_unit.ends_with(".service");
}

bool IsMpsServer(const Proc& proc, const ProcStat& stat) {
  if (!stat.name.starts_with(kMpsName)) return false;
  // The control daemon has no context; an unreadable command line may be the server's.
  const Result<std::string> line = proc.CommandLine(stat.pid);
  if (!line || line->empty()) return true;
  return ParseCommandLine(*line, kMpsServerLine).find(std::string(kMpsName) + "-control") ==
         std::string::npos;
}

// Its threads that wait and cannot be interrupted, with how often each has waited.
std::vector<std::pair<std::uint32_t, std::uint64_t>> Waiting(const Proc& proc, std::uint32_t pid) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> waiting;
  const Result<std::vector<std::uint32_t>> threads = proc.Threads(pid);
  if (!threads) return waiting;
  for (const std::uint32_t thread : *threads) {
    const Result<ProcStat> stat = proc.ThreadStat(pid, thread);
    if (!stat || stat->state != 'D') continue;
    const Result<ProcStatus> status = proc.ThreadStatus(pid, thread);
    if (status && status->voluntary_switches) {
      waiting.emplace_back(thread, *status->voluntary_switches);
    }
  }
  return waiting;
}

// Fills what cannot be known from one look: who hangs in the kernel.
void FindHanging(const Proc& proc, std::vector<HolderScan::Found>& found) {
  std::vector<std::vector<std::pair<std::uint32_t, std::uint64_t>>> first;
  bool any = false;
  for (const HolderScan::Found& one : found) {
    first.push_back(Waiting(proc, one.holder.pid));
    any = any || !first.back().empty();
  }
  if (!any) return;
  std::this_thread::sleep_for(kSecondLookAfter);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (first[i].empty()) continue;
    DeviceHolder& holder = found[i].holder;
    const auto second = Waiting(proc, holder.pid);
    const bool hangs = std::ranges::any_of(first[i], [&second](const auto& thread) {
      return std::ranges::find(second, thread) != second.end();
    });
    if (!hangs) continue;
    // It cannot be ended until the driver lets it go.
    holder.clean_up = CleanUp::kGpuReset;
    if (holder.kind == HolderKind::kOther) holder.kind = HolderKind::kUninterruptible;
  }
}

// Nothing here reads what a process can lock (its command line, its environment).
const ProcessFacts* FactsOf(const Proc& proc, ProcessOwners& owners, std::uint32_t pid) {
  if (const ProcessFacts* const facts = owners.FindKnown(pid)) return facts;
  std::optional<LearnedProcess> learned = LearnProcess(proc, pid, ReadDepth::kWhatCannotBlock);
  return learned ? owners.Remember(std::move(*learned)) : nullptr;
}

std::optional<DeviceHolder> Describe(const Proc& proc, ProcessOwners& owners, const Stats& stats,
                                     const ProcStat& stat) {
  const ProcessFacts* const facts = FactsOf(proc, owners, stat.pid);
  if (facts == nullptr) return std::nullopt;
  DeviceHolder holder;
  holder.pid = stat.pid;
  holder.parent_pid = stat.parent_pid;
  holder.name = stat.name;
  holder.state = stat.state;
  holder.threads_alive = stat.Dead() && stat.threads > 0 ? stat.threads - 1 : stat.threads;
  holder.start_after_boot = facts->start_after_boot;
  holder.owner = facts->owner;
  if (stat.Dead()) {
    holder.kind = HolderKind::kDefunctLeader;
  } else if (IsMpsServer(proc, stat)) {
    holder.kind = HolderKind::kMpsServer;
    holder.clean_up = CleanUp::kEndMpsServer;
  } else if (IsOrphan(stats, stat, facts->owner)) {
    holder.kind = HolderKind::kOrphan;
  } else if (facts->other_pid_namespace) {
    holder.kind = HolderKind::kOtherPidNamespace;
  }
  return holder;
}

}  // namespace

Result<HolderScan> ScanHolders(const Proc& proc, ProcessOwners& owners,
                               const HolderOptions& options) {
  const Result<std::vector<std::uint32_t>> pids = proc.Pids();
  if (!pids) return std::unexpected(pids.error());
  const std::string prefix = std::string(kDeviceDirectory) + std::string(kDeviceFilePrefix);
  const Stats stats = ReadStats(proc, *pids);
  HolderScan scan;
  for (const std::uint32_t pid : *pids) {
    const auto found = stats.find(pid);
    if (found == stats.end() || found->second.kernel_thread) continue;
    if (IsSelfOrChild(stats, pid, options.self_pid)) continue;
    Result<std::vector<std::string>> files = proc.OpenFiles(pid, prefix);
    if (!files) {
      scan.unreadable += files.error().code == ErrorCode::kNotFound ? 0 : 1;
      continue;
    }
    if (files->empty()) continue;
    if (std::optional<DeviceHolder> holder = Describe(proc, owners, stats, found->second)) {
      scan.found.push_back({std::move(*holder), std::move(*files)});
    }
  }
  FindHanging(proc, scan.found);
  owners.TakeToLearn();
  return scan;
}

std::optional<std::uint32_t> MinorOfDeviceFile(std::string_view file) {
  if (!file.starts_with(kDeviceDirectory)) return std::nullopt;
  file.remove_prefix(kDeviceDirectory.size());
  if (!file.starts_with(kDeviceFilePrefix)) return std::nullopt;
  file.remove_prefix(kDeviceFilePrefix.size());
  std::uint32_t minor = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), minor);
  if (error != std::errc() || end != file.data() + file.size()) return std::nullopt;
  return minor;
}

}  // namespace gpuassay
