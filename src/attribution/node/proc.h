// What /proc tells of a process. Parsers are pure; Proc reads a root that is handed in, so that a
// recorded root, a host's /proc mounted in a container and the live one are read alike. Formats:
// proc_pid_stat(5), proc_pid_status(5), cgroups(7), pid_namespaces(7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/root_fs.h"

namespace gpuassay {

// Of every Linux on which there are NVIDIA GPUs so far: USER_HZ.
inline constexpr double kTicksPerSecond = 100;

// /proc/PID/stat. The name may hold spaces, brackets and newlines, as they are: it ends at the last
// bracket.
struct ProcStat {
  std::uint32_t pid = 0;
  std::string name;  // comm, at most 15 bytes, cut by the kernel
  char state = '?';
  std::uint32_t parent_pid = 0;
  std::uint32_t process_group = 0;  // 0: in another PID namespace, or the process is just ending
  std::uint32_t session = 0;
  bool kernel_thread = false;     // of field 9, PF_KTHREAD
  std::uint32_t threads = 0;      // field 20; of a zombie leader: live threads + 1
  std::uint64_t start_ticks = 0;  // field 22, since boot

  bool Dead() const { return state == 'Z' || state == 'X'; }
  bool operator==(const ProcStat&) const = default;
};
// kMalformed with the field that is wrong. Bounded by the kernel's page; never allocates more than
// the name.
Result<ProcStat> ParseProcStat(std::string_view text);

// /proc/PID/status: the lines that attribution needs.
struct ProcStatus {
  std::optional<std::uint32_t> real_uid;
  std::uint32_t tgid = 0;
  std::vector<std::uint32_t> namespace_pids;  // NSpid, outermost first; empty before Linux 4.1
  std::string name;                           // without the escapes of this file
  std::optional<std::uint64_t> voluntary_switches;  // grows whenever the thread has waited
  bool operator==(const ProcStatus&) const = default;
};
Result<ProcStatus> ParseProcStatus(std::string_view text);

// Values of NUL-separated "NAME=value" pairs, only of the names asked for (environment variables
// hold secrets: nothing else is kept). A value over 4096 bytes is cut.
std::vector<std::pair<std::string, std::string>> ParseEnvironment(
    std::string_view text, const std::vector<std::string_view>& names);

// Arguments of /proc/PID/cmdline, joined by spaces; empty for kernel threads and zombies. Cut at
// `bytes_max`, at a character of UTF-8.
std::string ParseCommandLine(std::string_view text, std::size_t bytes_max = 512);

// /proc/PID/io, bytes that reached storage (or will: also of a file that is deleted before it was
// written out); vitals of a process.
struct ProcIo {
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  bool operator==(const ProcIo&) const = default;
};
Result<ProcIo> ParseProcIo(std::string_view text);

// Reads one process of a root. Cheap to copy. kNotFound: no such process (or it has just ended);
// kPermission: hidden from this user (hidepid, another user's environment).
class Proc {
 public:
  // `ticks_per_second`: sysconf(_SC_CLK_TCK) of the host that the root is of.
  explicit Proc(RootFs root, double ticks_per_second = kTicksPerSecond);

  Result<ProcStat> Stat(std::uint32_t pid) const;
  Result<ProcStatus> Status(std::uint32_t pid) const;
  Result<std::string> Cgroup(std::uint32_t pid) const;       // the raw text
  Result<std::string> Environment(std::uint32_t pid) const;  // raw; may block while the process
  Result<std::string> CommandLine(std::uint32_t pid) const;  // holds its mmap lock, as this one
  Result<ProcIo> Io(std::uint32_t pid) const;
  // All PIDs, ascending.
  Result<std::vector<std::uint32_t>> Pids() const;
  // True when this user does not see the processes of others (mounted with hidepid=2): there is no
  // process 1 in a live /proc.
  bool HidesProcesses() const;
  // Threads of a process, ascending.
  Result<std::vector<std::uint32_t>> Threads(std::uint32_t pid) const;
  // Targets of its open files that start with `prefix`, each once, sorted, without " (deleted)". Of
  // a dead leader the files of its live threads: a zombie's own fd directory is empty. Of threads
  // with tables of their own the first kFileThreadsMax are looked at.
  static constexpr std::size_t kFileThreadsMax = 16;
  Result<std::vector<std::string>> OpenFiles(std::uint32_t pid, std::string_view prefix) const;
  // One of its threads, by TID: stat and status of that thread alone.
  Result<ProcStat> ThreadStat(std::uint32_t pid, std::uint32_t thread) const;
  Result<ProcStatus> ThreadStatus(std::uint32_t pid, std::uint32_t thread) const;
  // Whose cgroup, environment and command line are those of the process: itself, or of a dead
  // leader (which has none, and is in the root of every v1 hierarchy) its first live thread.
  std::uint32_t LiveThread(const ProcStat& stat) const;
  // "pid:[4026531836]"; nullopt when it cannot be read.
  std::optional<std::string> PidNamespace(std::uint32_t pid) const;

  // As cheap as can be: one open, read and close, and no allocation. Nullopt when there is no such
  // process. Never blocks. Measured: 5 microseconds.
  std::optional<ProcStat> StatQuickly(std::uint32_t pid) const;
  std::optional<Duration> StartAfterBoot(std::uint32_t pid) const;
  Duration TicksToDuration(std::uint64_t ticks) const;

 private:
  RootFs root_;
  double ticks_per_second_;
};

}  // namespace gpuassay
