#include "attribution/node/proc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace gpuassay {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

std::string PathOf(std::uint32_t pid, std::string_view file) {
  return fmt::format("{}/{}/{}", kProcDirectory, pid, file);
}

std::string PathOfThread(std::uint32_t pid, std::uint32_t thread, std::string_view file) {
  return fmt::format("{}/{}/task/{}/{}", kProcDirectory, pid, thread, file);
}

// The names of a directory that are numbers, ascending.
Result<std::vector<std::uint32_t>> Numbers(const RootFs& root, std::string_view path) {
  const Result<std::vector<std::string>> names = root.List(path);
  if (!names) return std::unexpected(names.error());
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : *names) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

// Reads and parses; an error says of which file.
template <class Parsed>
Result<Parsed> ReadAndParse(const RootFs& root, const std::string& path,
                            Result<Parsed> (*parse)(std::string_view)) {
  const Result<std::string> text = root.Read(path);
  if (!text) return std::unexpected(text.error());
  Result<Parsed> parsed = parse(*text);
  if (!parsed) {
    return Fail(parsed.error().code,
                fmt::format("{}: {}", root.Resolve(path), parsed.error().what));
  }
  return parsed;
}

}  // namespace

Proc::Proc(RootFs root, double ticks_per_second)
    : root_(std::move(root)), ticks_per_second_(ticks_per_second) {}

Result<ProcStat> Proc::Stat(std::uint32_t pid) const {
  return ReadAndParse(root_, PathOf(pid, "stat"), ParseProcStat);
}

Result<ProcStatus> Proc::Status(std::uint32_t pid) const {
  return ReadAndParse(root_, PathOf(pid, "status"), ParseProcStatus);
}

Result<ProcStat> Proc::ThreadStat(std::uint32_t pid, std::uint32_t thread) const {
  return ReadAndParse(root_, PathOfThread(pid, thread, "stat"), ParseProcStat);
}

Result<ProcStatus> Proc::ThreadStatus(std::uint32_t pid, std::uint32_t thread) const {
  return ReadAndParse(root_, PathOfThread(pid, thread, "status"), ParseProcStatus);
}

Result<std::string> Proc::Cgroup(std::uint32_t pid) const {
  return root_.Read(PathOf(pid, "cgroup"));
}

Result<std::string> Proc::Environment(std::uint32_t pid) const {
  return root_.Read(PathOf(pid, "environ"));
}

Result<std::string> Proc::CommandLine(std::uint32_t pid) const {
  return root_.Read(PathOf(pid, "cmdline"));
}

Result<ProcIo> Proc::Io(std::uint32_t pid) const {
  return ReadAndParse(root_, PathOf(pid, "io"), ParseProcIo);
}

Result<std::vector<std::uint32_t>> Proc::Pids() const { return Numbers(root_, kProcDirectory); }

bool Proc::HidesProcesses() const {
  return root_.Exists(fmt::format("{}/self", kProcDirectory)) &&
         !root_.Exists(fmt::format("{}/1", kProcDirectory));
}

Result<std::vector<std::uint32_t>> Proc::Threads(std::uint32_t pid) const {
  return Numbers(root_, PathOf(pid, "task"));
}

std::uint32_t Proc::LiveThread(const ProcStat& stat) const {
  if (!stat.Dead() || stat.threads < 2) return stat.pid;
  const Result<std::vector<std::uint32_t>> threads = Threads(stat.pid);
  if (!threads) return stat.pid;
  for (const std::uint32_t thread : *threads) {
    const std::optional<ProcStat> of_thread = StatQuickly(thread);
    if (of_thread && !of_thread->Dead()) return thread;
  }
  return stat.pid;
}

Result<std::vector<std::string>> Proc::OpenFiles(std::uint32_t pid, std::string_view prefix) const {
  Result<LinkTargets> links = root_.ReadLinks(PathOf(pid, "fd"), prefix);
  if (!links) return std::unexpected(links.error());
  std::vector<std::string> files = std::move(links->matching);
  if (links->links == 0) {
    const Result<std::vector<std::uint32_t>> threads = Threads(pid);
    std::size_t looked_at = 0;
    for (std::size_t i = 0; threads && i < threads->size() && looked_at < kFileThreadsMax; ++i) {
      if ((*threads)[i] == pid) continue;
      links = root_.ReadLinks(PathOfThread(pid, (*threads)[i], "fd"), prefix);
      if (!links || links->links == 0) continue;
      ++looked_at;
      std::ranges::move(links->matching, std::back_inserter(files));
    }
  }
  for (std::string& file : files) {
    if (file.ends_with(kDeleted)) file.resize(file.size() - kDeleted.size());
  }
  std::ranges::sort(files);
  files.erase(std::ranges::unique(files).begin(), files.end());
  return files;
}

std::optional<std::string> Proc::PidNamespace(std::uint32_t pid) const {
  Result<std::string> link = root_.ReadLink(PathOf(pid, "ns/pid"));
  if (!link) return std::nullopt;
  return std::move(*link);
}

std::optional<ProcStat> Proc::StatQuickly(std::uint32_t pid) const {
  std::array<char, 64> path;
  const auto path_end =
      fmt::format_to_n(path.data(), path.size(), "{}/{}/stat", kProcDirectory, pid);
  std::array<char, 1024> text;
  const std::optional<std::size_t> got =
      root_.ReadStart(std::string_view(path.data(), path_end.size), text);
  if (!got) return std::nullopt;
  Result<ProcStat> stat = ParseProcStat(std::string_view(text.data(), *got));
  if (!stat) return std::nullopt;
  return std::move(*stat);
}

std::optional<Duration> Proc::StartAfterBoot(std::uint32_t pid) const {
  const std::optional<ProcStat> stat = StatQuickly(pid);
  if (!stat) return std::nullopt;
  return TicksToDuration(stat->start_ticks);
}

Duration Proc::TicksToDuration(std::uint64_t ticks) const {
  const double microseconds = std::round(static_cast<double>(ticks) / ticks_per_second_ * 1e6);
  // The largest double below the limit of Duration; a real uptime is far from it.
  constexpr double kMicrosecondsMax = 9.2e18;
  return Duration(static_cast<Duration::rep>(std::min(microseconds, kMicrosecondsMax)));
}

}  // namespace gpuassay
