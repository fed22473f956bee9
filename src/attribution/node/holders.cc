#include "attribution/node/holders.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

namespace gpuassay {
namespace {

constexpr std::string_view kDeviceFileStart = "nvidia";
// Programs of MPS; comm, cut at 15 bytes, is the same of both.
constexpr std::string_view kMpsServer = "nvidia-cuda-mps-server";
constexpr std::string_view kMpsComm = "nvidia-cuda-mps";
// Between two looks at a process that waits. Reading from a disk takes less.
constexpr Duration kLookAgainAfter = std::chrono::milliseconds(50);
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

// Nobody waits for what it does any more.
bool HasEnded(const ProcStat& stat) { return stat.Dead() && stat.threads < 2; }

// Of a group or session, by its number. A younger process with the leader's PID is another one.
bool IsLeaderGone(const Stats& stats, const ProcStat& stat, std::uint32_t leader) {
  if (leader == 0 || leader == stat.pid) return false;
  const auto found = stats.find(leader);
  return found == stats.end() || HasEnded(found->second) ||
         found->second.start_ticks > stat.start_ticks;
}

// True when its parent did not start it: a process is in the session of its parent until it starts
// one of its own, and then it leads that.
bool IsAdopted(const Proc& proc, const Stats& stats, const ProcStat& stat) {
  if (stat.parent_pid == 0 || stat.session == stat.pid) return false;
  const auto parent = stats.find(stat.parent_pid);
  if (parent == stats.end()) return stat.parent_pid == 1;
  if (parent->second.session == stat.session) return false;
  if (stat.parent_pid == 1) return true;
  const Result<ProcStatus> status = proc.Status(stat.parent_pid);
  return status && (status->namespace_pids.size() < 2 || status->namespace_pids.back() != 1);
}

bool IsOrphan(const Proc& proc, const Stats& stats, const ProcStat& stat,
              const ProcessOwner& owner) {
  if (!IsLeaderGone(stats, stat, stat.process_group) && !IsLeaderGone(stats, stat, stat.session)) {
    return false;
  }
  if (!IsAdopted(proc, stats, stat)) return false;
  // Daemons leave their session in just this way (nvidia-persistenced): the service manager ends
  // them. What it does not see from outside is in a container or a job.
  return owner.container || owner.job || !owner.systemd_unit.ends_with(".service");
}

// Threads that wait and cannot be interrupted, with how often each has waited.
using WaitingThreads = std::vector<std::pair<std::uint32_t, std::optional<std::uint64_t>>>;

struct Candidate {
  const ProcStat* stat;
  std::vector<std::string> files;
  WaitingThreads waiting;
};

WaitingThreads Waiting(const Proc& proc, std::uint32_t pid) {
  WaitingThreads waiting;
  const auto add = [&waiting](std::uint32_t thread, const Result<ProcStatus>& status) {
    waiting.emplace_back(thread, status ? status->voluntary_switches : std::nullopt);
  };
  const Result<std::vector<std::uint32_t>> threads = proc.Threads(pid);
  if (!threads) {
    const std::optional<ProcStat> stat = proc.StatQuickly(pid);
    if (stat && stat->state == 'D') add(pid, proc.Status(pid));
    return waiting;
  }
  for (const std::uint32_t thread : *threads) {
    const Result<ProcStat> stat = proc.ThreadStat(pid, thread);
    if (stat && stat->state == 'D') add(thread, proc.ThreadStatus(pid, thread));
  }
  return waiting;
}

// Leaves in Candidate::waiting only threads that have not been woken for `hangs_after`. Returns at
// once when nobody waits.
void KeepHanging(const Proc& proc, Duration hangs_after, std::vector<Candidate>& candidates) {
  const SystemClock clock;
  std::vector<Candidate*> left;
  for (Candidate& candidate : candidates) {
    candidate.waiting = Waiting(proc, candidate.stat->pid);
    if (!candidate.waiting.empty()) left.push_back(&candidate);
  }
  const SteadyTime end = clock.Steady() + hangs_after;
  bool last = false;
  while (!left.empty() && !last) {
    last = clock.Steady() + kLookAgainAfter >= end;
    std::this_thread::sleep_for(std::min(kLookAgainAfter, hangs_after));
    std::erase_if(left, [&proc](Candidate* candidate) {
      const auto now = Waiting(proc, candidate->stat->pid);
      std::erase_if(candidate->waiting, [&now](const auto& thread) {
        return std::ranges::find(now, thread) == now.end();
      });
      return candidate->waiting.empty();
    });
  }
}

// Of a process that hangs nothing is read that it may have locked.
const ProcessFacts* FactsOf(const Proc& proc, ProcessOwners& owners, std::uint32_t pid,
                            bool hangs) {
  if (!hangs) return owners.Find(pid);
  if (const ProcessFacts* const facts = owners.FindKnown(pid)) return facts;
  std::optional<LearnedProcess> learned = LearnProcess(proc, pid, ReadDepth::kWhatCannotBlock);
  return learned ? owners.Remember(std::move(*learned)) : nullptr;
}

// Nullopt when it has ended meanwhile.
std::optional<DeviceHolder> Describe(const Proc& proc, ProcessOwners& owners, const Stats& stats,
                                     const Candidate& candidate) {
  const ProcStat& stat = *candidate.stat;
  const bool hangs = !candidate.waiting.empty();
  const ProcessFacts* const facts = FactsOf(proc, owners, stat.pid, hangs);
  if (facts == nullptr || facts->start_after_boot != proc.TicksToDuration(stat.start_ticks)) {
    return std::nullopt;
  }
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
  } else if (IsOrphan(proc, stats, stat, facts->owner)) {
    holder.kind = HolderKind::kOrphan;
  } else if (facts->other_pid_namespace) {
    holder.kind = HolderKind::kOtherPidNamespace;
  } else if (hangs) {
    holder.kind = HolderKind::kUninterruptible;
  }
  // Without a command line: of the two programs only the server uses a GPU.
  if (facts->name == kMpsServer || facts->name == kMpsComm) {
    holder.kind = std::min(holder.kind, HolderKind::kMpsServer);
    holder.clean_up = CleanUp::kEndMpsServer;
  }
  if (hangs) holder.clean_up = CleanUp::kReboot;
  return holder;
}

}  // namespace

Result<HolderScan> ScanHolders(const Proc& proc, ProcessOwners& owners,
                               const HolderOptions& options) {
  const Result<std::vector<std::uint32_t>> pids = proc.Pids();
  if (!pids) return std::unexpected(pids.error());
  const std::string prefix =
      std::string(options.device_directory) + "/" + std::string(kDeviceFileStart);
  const Stats stats = ReadStats(proc, *pids);
  HolderScan scan;
  scan.unreadable = proc.HidesProcesses() ? 1 : 0;
  std::vector<Candidate> candidates;
  for (const std::uint32_t pid : *pids) {
    const auto found = stats.find(pid);
    if (found == stats.end() || found->second.kernel_thread || HasEnded(found->second)) continue;
    if (IsSelfOrChild(stats, pid, options.self_pid)) continue;
    Result<std::vector<std::string>> files = proc.OpenFiles(pid, prefix);
    const bool ended = !files && files.error().code == ErrorCode::kNotFound;
    if (ended || (files && files->empty())) continue;
    if (!files || candidates.size() == HolderScan::kFoundMax) {
      ++scan.unreadable;
      continue;
    }
    candidates.push_back({&found->second, std::move(*files), {}});
  }
  KeepHanging(proc, options.hangs_after, candidates);
  for (Candidate& candidate : candidates) {
    if (std::optional<DeviceHolder> holder = Describe(proc, owners, stats, candidate)) {
      scan.found.push_back({std::move(*holder), std::move(candidate.files)});
    }
  }
  owners.TakeToLearn();
  return scan;
}

std::optional<std::uint32_t> MinorOfDeviceFile(std::string_view file) {
  file.remove_prefix(std::min(file.rfind('/') + 1, file.size()));
  if (!file.starts_with(kDeviceFileStart)) return std::nullopt;
  file.remove_prefix(kDeviceFileStart.size());
  if (file.size() > 1 && file.starts_with('0')) return std::nullopt;
  std::uint32_t minor = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), minor);
  if (error != std::errc() || end != file.data() + file.size()) return std::nullopt;
  return minor;
}

}  // namespace gpuassay
