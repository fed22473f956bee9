#include "sim/world/proc_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/engine/hash.h"
#include "sim/engine/identifiers.h"
#include "sim/world/cgroup_text.h"
#include "sim/world/names.h"

namespace gpuassay::sim {
namespace {

constexpr std::size_t kNameBytesMax = 15;  // Linux: TASK_COMM_LEN - 1
constexpr std::int64_t kTicksPerSecond = 100;

struct Thread {
  std::uint32_t id = 0;
  std::string name;
  char state = 'S';
  std::uint32_t parent = 1, group = 0;
  std::uint32_t threads = 1;
  std::int64_t start_ticks = 0;
  int exit_signal = 17;  // SIGCHLD; -1: nobody is told of the end of a thread
};

// Of "/usr/bin/python3 train.py" the kernel keeps "python3".
std::string CommOf(std::string_view command) {
  command = command.substr(0, command.find(' '));
  command = command.substr(command.rfind('/') + 1);  // npos + 1 is 0
  return std::string(command.substr(0, kNameBytesMax));
}

std::string CommandLineOf(std::string command) {
  std::ranges::replace(command, ' ', '\0');
  return command + '\0';
}

char StateOf(ScenarioProcessState state) {
  switch (state) {
    case ScenarioProcessState::kRunning:
      return 'R';
    case ScenarioProcessState::kSleeping:
    case ScenarioProcessState::kOrphan:
      return 'S';
    case ScenarioProcessState::kUninterruptible:
      return 'D';
    case ScenarioProcessState::kDefunctLeader:
      return 'Z';
  }
  return 'S';
}

std::string_view StateName(char state) {
  switch (state) {
    case 'R':
      return "R (running)";
    case 'D':
      return "D (disk sleep)";
    case 'Z':
      return "Z (zombie)";
    default:
      return "S (sleeping)";
  }
}

// proc_pid_stat(5): 52 fields. A zombie has no address space any more.
std::string ThreadStat(const Thread& thread) {
  const bool dead = thread.state == 'Z';
  return fmt::format(
      "{} ({}) {} {} {} {} 0 -1 4194560 1204 0 0 0 512 128 0 0 20 0 {} 0 {} {} "
      "18446744073709551615 {} 0 0 0 0 16781312 0 0 0 0 {} 1 0 0 0 0 0 {} 0\n",
      thread.id, thread.name, thread.state, thread.parent, thread.group, thread.group,
      thread.threads, thread.start_ticks, dead ? "0 0" : "24159191040 524288",
      dead ? "0 0 0" : "4198400 4763361 140723412344560", thread.exit_signal,
      dead ? "0 0 0 0 0 0 0"
           : "4937392 4960944 893165568 140723412345001 140723412345030 "
             "140723412345030 140723412348912");
}

std::string MemoryLines() {
  return "VmPeak:\t23592960 kB\nVmSize:\t23592960 kB\nVmLck:\t       0 kB\nVmPin:\t       0 kB\n"
         "VmHWM:\t 2097152 kB\nVmRSS:\t 2097152 kB\nRssAnon:\t 1572864 kB\nRssFile:\t  524288 kB\n"
         "RssShmem:\t       0 kB\nVmData:\t 8388608 kB\nVmStk:\t     132 kB\nVmExe:\t     552 kB\n"
         "VmLib:\t  262144 kB\nVmPTE:\t    6144 kB\nVmSwap:\t       0 kB\nHugetlbPages:\t       0 "
         "kB\nCoreDumping:\t0\nTHP_enabled:\t1\n";
}

// proc_pid_status(5), the lines in the kernel's order.
std::string StatusText(const Thread& leader, std::uint32_t uid, std::uint32_t inner_pid) {
  const bool dead = leader.state == 'Z';
  const auto in_namespaces = [&](std::uint32_t outer) {
    return inner_pid == 0 ? fmt::format("{}", outer) : fmt::format("{}\t{}", outer, inner_pid);
  };
  std::string text = fmt::format("Name:\t{}\n", leader.name);
  text += dead ? "" : "Umask:\t0022\n";
  text += fmt::format("State:\t{}\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t0\n",
                      StateName(leader.state), leader.id, leader.id, leader.parent);
  text += fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}\nGid:\t{0}\t{0}\t{0}\t{0}\n", uid);
  text += fmt::format("FDSize:\t{}\nGroups:\t{} \n", dead ? 0 : 256, uid);
  text += fmt::format(
      "NStgid:\t{0}\nNSpid:\t{0}\nNSpgid:\t{1}\nNSsid:\t{1}\n", in_namespaces(leader.id),
      leader.group == leader.id ? in_namespaces(leader.id) : fmt::format("{}", leader.group));
  text += dead ? "" : MemoryLines();
  text += fmt::format("Threads:\t{}\nSigQ:\t0/96369\n", leader.threads);
  for (const std::string_view set : {"SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh",
                                     "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    text += fmt::format("{}:\t0000000000000000\n", set);
  }
  return text +
         "NoNewPrivs:\t0\nSeccomp:\t0\nvoluntary_ctxt_switches:\t1024\n"
         "nonvoluntary_ctxt_switches:\t64\n";
}

std::string IoText() {
  return "rchar: 8388608\nwchar: 1048576\nsyscr: 2048\nsyscw: 256\nread_bytes: 4194304\n"
         "write_bytes: 1048576\ncancelled_write_bytes: 0\n";
}

void Add(std::string& text, std::string_view name, std::string_view value) {
  text += fmt::format("{}={}", name, value);
  text += '\0';
}

// The device plugin hands a container its devices as a list of UUIDs, replicas without their
// number.
std::string VisibleDevices(const Scenario& scenario, const ScenarioContainer& container) {
  std::vector<std::string> uuids;
  for (const ScenarioDevice& device : container.devices) {
    const std::string uuid = DeviceUuid(scenario, device.gpu, device.mig_index);
    if (std::ranges::find(uuids, uuid) == uuids.end()) {
      uuids.push_back(uuid);
    }
  }
  return fmt::format("{}", fmt::join(uuids, ","));
}

void AddJob(const ScenarioWorld& world, const ScenarioOwner& owner, std::string& text) {
  const ScenarioBatchJob* job = JobOf(world, owner.job);
  if (job == nullptr) {
    return;
  }
  const std::string gpus = fmt::format("{}", fmt::join(job->gpus, ","));
  Add(text, "SLURM_JOB_ID", job->id);
  Add(text, "SLURM_JOBID", job->id);
  Add(text, "SLURM_JOB_USER", job->user);
  Add(text, "SLURM_JOB_UID", fmt::format("{}", UserId(world, job->user)));
  Add(text, "SLURM_JOB_GPUS", gpus);
  if (owner.step.find_first_not_of("0123456789") == std::string::npos) {
    Add(text, "SLURM_STEP_ID", owner.step);
    Add(text, "SLURM_STEP_GPUS", gpus);
  }
  if (const std::size_t bar = job->array.find('_'); bar != std::string::npos) {
    Add(text, "SLURM_ARRAY_JOB_ID", job->array.substr(0, bar));
    Add(text, "SLURM_ARRAY_TASK_ID", job->array.substr(bar + 1));
  }
}

std::string EnvironmentOf(const Scenario& scenario, const ScenarioProcFacts& facts) {
  const ScenarioWorld& world = scenario.world;
  const ScenarioOwner& owner = facts.owner;
  std::string text;
  Add(text, "PATH", "/usr/local/bin:/usr/bin:/bin");
  if (const ScenarioPod* pod = owner.pod.empty() ? nullptr : PodOf(world, facts)) {
    Add(text, "HOSTNAME", pod->name);
    Add(text, "KUBERNETES_SERVICE_HOST", "10.96.0.1");
    Add(text, "KUBERNETES_SERVICE_PORT", "443");
    const ScenarioContainer* container = ContainerOf(*pod, owner.container);
    if (container != nullptr && !container->devices.empty()) {
      Add(text, "NVIDIA_VISIBLE_DEVICES", VisibleDevices(scenario, *container));
    }
    return text;
  }
  if (const ScenarioRuntimeContainer* container =
          RuntimeContainerOf(world, owner.runtime_container)) {
    Add(text, "HOSTNAME", ContainerId(scenario, *container).substr(0, 12));
    if (container->runtime == "podman") {
      Add(text, "container", "podman");
    }
    if (!container->visible_devices.empty()) {
      Add(text, "NVIDIA_VISIBLE_DEVICES", container->visible_devices);
    }
    return text;
  }
  Add(text, "USER", owner.user);
  Add(text, "HOME", owner.user == "root" ? "/root" : "/home/" + owner.user);
  AddJob(world, owner, text);
  return text;
}

std::uint64_t PidNamespaceOf(const Scenario& scenario, const ScenarioProcFacts& facts) {
  if (!facts.other_pid_namespace) {
    return kHostPidNamespace;
  }
  // One per container; inode numbers of namespaces count up from the host's.
  std::uint64_t key = Mix(scenario.seed) + facts.pid;
  if (!facts.owner.pod.empty() || !facts.owner.runtime_container.empty()) {
    key = KeyOf(scenario, CgroupText(scenario, facts));
  }
  return kHostPidNamespace + 164 + Mix(key) % 500'000;
}

std::vector<std::string> OpenFiles(const ScenarioProcFacts& facts) {
  std::vector<std::string> files = {"/dev/null", "pipe:[41233]", "pipe:[41234]", "/dev/nvidiactl",
                                    "/dev/nvidia-uvm"};
  for (const std::uint32_t gpu : facts.gpus) {
    files.push_back(fmt::format("/dev/nvidia{}", gpu));
  }
  return files;
}

}  // namespace

ProcessFiles FilesOf(const Scenario& scenario, const ScenarioProcFacts& facts,
                     const ProcessContext& context) {
  ProcessFiles files;
  files.leader_is_dead = facts.state == ScenarioProcessState::kDefunctLeader;
  Thread leader;
  leader.id = facts.pid;
  leader.name = CommOf(facts.name);
  leader.state = StateOf(facts.state);
  // An orphan's group was led by a process that is gone.
  leader.group = facts.state == ScenarioProcessState::kOrphan ? context.other_id : facts.pid;
  leader.threads = files.leader_is_dead ? 2 : 1;
  leader.start_ticks =
      std::chrono::duration_cast<std::chrono::milliseconds>(kUptimeAtStart + facts.start).count() *
      kTicksPerSecond / 1000;
  files.stat = ThreadStat(leader);
  if (files.leader_is_dead) {
    Thread thread = leader;
    thread.id = context.other_id;
    thread.name = "cuda-EvtHandlr";
    thread.state = 'S';
    thread.exit_signal = -1;
    files.thread_stat = ThreadStat(thread);
  }
  files.status =
      StatusText(leader, UserId(scenario.world, facts.owner.user), context.pid_in_namespace);
  files.cgroup = CgroupText(scenario, facts);
  files.name = leader.name + "\n";
  if (!files.leader_is_dead) {
    files.command_line = CommandLineOf(facts.name);
    files.environment = EnvironmentOf(scenario, facts);
  }
  files.io = IoText();
  files.pid_namespace = fmt::format("pid:[{}]", PidNamespaceOf(scenario, facts));
  files.files = OpenFiles(facts);
  return files;
}

ProcessFiles FilesOfInit() {
  Thread init;
  init.id = 1;
  init.name = "systemd";
  init.parent = 0;
  init.group = 1;
  init.start_ticks = 2;
  ProcessFiles files;
  files.stat = ThreadStat(init);
  files.status = StatusText(init, 0, 0);
  files.cgroup = "0::/init.scope\n";
  files.name = "systemd\n";
  files.command_line = CommandLineOf("/sbin/init");
  files.io = IoText();
  files.pid_namespace = fmt::format("pid:[{}]", kHostPidNamespace);
  files.files = {"/dev/null", "/dev/null", "/dev/null"};
  return files;
}

std::string PasswdText(const ScenarioWorld& world) {
  std::string text = "root:x:0:0:root:/root:/bin/bash\n";
  for (const auto& [name, uid] : world.users) {
    text += fmt::format("{0}:x:{1}:{1}::/home/{0}:/bin/bash\n", name, uid);
  }
  return text;
}

std::string StatText(const Scenario& scenario) {
  const auto boot = std::chrono::duration_cast<std::chrono::seconds>(
      (scenario.start - kUptimeAtStart).time_since_epoch());
  return fmt::format(
      "cpu  123456 0 65432 9876543 1234 0 321 0 0 0\ncpu0 123456 0 65432 9876543 1234 0 321 0 0 0\n"
      "intr 0\nctxt 12345678\nbtime {}\nprocesses 65536\nprocs_running 1\nprocs_blocked 0\n",
      boot.count());
}

}  // namespace gpuassay::sim
