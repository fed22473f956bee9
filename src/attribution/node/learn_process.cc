// Reads one process for process_owners.h.
#include <algorithm>
#include <functional>

#include "attribution/node/cgroup.h"
#include "attribution/node/process_owners.h"

namespace gpuassay {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

std::string_view ValueOf(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return {};
}

bool IsNumber(std::string_view text) {
  constexpr std::size_t kDigitsMax = 20;
  return !text.empty() && text.size() <= kDigitsMax &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// What the environment says of Slurm. The cgroup is the kernel's word, the environment is only what
// some process has handed down: it adds to the job of the cgroup, and counts alone where there is
// none (proctrack/linuxproc).
void AddSlurm(const Environment& environment, ProcessFacts& facts) {
  const std::string_view job_id = ValueOf(environment, "SLURM_JOB_ID");
  if (!IsNumber(job_id)) return;
  if (facts.owner.job && (facts.owner.job->kind != "slurm" || facts.owner.job->id != job_id)) {
    return;
  }
  if (!facts.owner.job) {
    const std::string_view step = ValueOf(environment, "SLURM_STEP_ID");
    facts.owner.job = JobIdentity{.kind = "slurm",
                                  .id = std::string(job_id),
                                  .step = IsNumber(step) ? SlurmStepName(step) : ""};
    facts.owner.systemd_unit.clear();
  }
  const std::string_view array = ValueOf(environment, "SLURM_ARRAY_JOB_ID");
  const std::string_view task = ValueOf(environment, "SLURM_ARRAY_TASK_ID");
  if (IsNumber(array) && IsNumber(task)) {
    facts.owner.job->id = std::string(array) + "_" + std::string(task);
  }
  const std::string_view of_step = ValueOf(environment, "SLURM_STEP_GPUS");
  facts.slurm_gpus = of_step.empty() ? ValueOf(environment, "SLURM_JOB_GPUS") : of_step;
}

void AddEnvironment(std::string_view text, ProcessFacts& facts) {
  static const std::vector<std::string_view> kNames = {
      "SLURM_JOB_ID",   "SLURM_STEP_ID",   "SLURM_ARRAY_JOB_ID",    "SLURM_ARRAY_TASK_ID",
      "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "NVIDIA_VISIBLE_DEVICES"};
  const Environment environment = ParseEnvironment(text, kNames);
  facts.nvidia_visible_devices = ValueOf(environment, "NVIDIA_VISIBLE_DEVICES");
  AddSlurm(environment, facts);
}

// "python3" of "/usr/bin/python3 train.py".
std::string ProgramName(std::string_view command_line) {
  command_line = command_line.substr(0, command_line.find(' '));
  const std::size_t slash = command_line.rfind('/');
  if (slash != std::string_view::npos) command_line.remove_prefix(slash + 1);
  return std::string(command_line.substr(0, kOwnerTextBytesMax));
}

void AddCgroup(const CgroupOwner& cgroup, ProcessOwner& owner) {
  owner.container = cgroup.container;
  if (!cgroup.pod_uid.empty()) owner.pod = PodIdentity{"", "", cgroup.pod_uid};
  owner.job = cgroup.slurm ? cgroup.slurm : cgroup.pbs;
  owner.systemd_unit = cgroup.systemd_unit;
}

// NSpid has one PID per namespace from the root's down to the process's own. Kernels before 4.1
// have none: then the links tell, where they may be read.
bool InOtherPidNamespace(const Proc& proc, std::uint32_t pid, const ProcStatus& status) {
  if (!status.namespace_pids.empty()) return status.namespace_pids.size() > 1;
  const std::optional<std::string> own = proc.PidNamespace(pid);
  const std::optional<std::string> of_root = proc.PidNamespace(1);
  return own && of_root && own != of_root;
}

}  // namespace

std::optional<LearnedProcess> LearnProcess(const Proc& proc, std::uint32_t pid, ReadDepth depth) {
  const std::optional<ProcStat> stat = proc.StatQuickly(pid);
  if (!stat) return std::nullopt;
  LearnedProcess learned{.pid = pid, .facts = {}, .real_uid = {}, .comm = stat->name};
  ProcessFacts& facts = learned.facts;
  facts.start_after_boot = proc.TicksToDuration(stat->start_ticks);
  facts.name = stat->name;
  if (const Result<ProcStatus> status = proc.Status(pid)) {
    learned.real_uid = status->real_uid;
    facts.other_pid_namespace = InOtherPidNamespace(proc, pid, *status);
  }
  // A thread is found under its own number too; a recorded root may have only the leader.
  const std::uint32_t live = proc.LiveThread(*stat);
  if (const Result<std::string> cgroup = proc.Cgroup(live)) {
    learned.cgroup_hash = std::hash<std::string>{}(*cgroup);
    AddCgroup(ParseCgroup(*cgroup), facts.owner);
  }
  if (depth == ReadDepth::kAll) {
    if (const Result<std::string> text = proc.Environment(live)) AddEnvironment(*text, facts);
    if (const Result<std::string> text = proc.CommandLine(live)) {
      const std::string name = ProgramName(ParseCommandLine(*text));
      if (!name.empty()) facts.name = name;
    }
  }
  // The PID may have been given to another process meanwhile: then all this is of nobody.
  const std::optional<ProcStat> after = proc.StatQuickly(pid);
  if (!after || after->start_ticks != stat->start_ticks) return std::nullopt;
  return learned;
}

}  // namespace gpuassay
