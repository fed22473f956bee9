#include "attribution/join/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/join/holder_watch.h"
#include "attribution/join/pools.h"
#include "attribution/join/process_reader.h"
#include "attribution/join/scheduler_view.h"
#include "attribution/node/process_owners.h"
#include "base/check.h"

namespace gpuassay {
namespace {

// A container whose name no file tells yet is looked at again after this many snapshots: the
// kubelet makes the link to its log a moment after the container has started.
constexpr std::uint32_t kLookAgainAfter = 5;
constexpr std::uint32_t kLookAgainMax = 3;

// A process on a GPU.
struct Person {
  ProcessFacts facts;
  ProcessOwner owner;            // with all that the scheduler tells
  std::uint64_t generation = 0;  // of the scheduler's view it was made from
  std::uint64_t seen = 0;        // cycle
  std::uint32_t unnamed_cycles = 0;
  bool hangs = false;
};

// A PID in the driver's lists.
struct Listed {
  std::uint32_t pid = 0;
  std::size_t devices = 0;  // that list it
};

bool HasUnknownName(const ProcessOwner& owner) {
  if (owner.pod && owner.pod->name.empty()) return true;
  return owner.container && owner.container->name.empty();
}

const Pod* FindPod(const Scheduler& scheduler, const PodIdentity& identity) {
  const auto found = std::ranges::find_if(scheduler.pods, [&identity](const Pod& pod) {
    if (!identity.uid.empty() && !pod.identity.uid.empty()) {
      return pod.identity.uid == identity.uid;
    }
    return !identity.name.empty() && pod.identity.name == identity.name &&
           pod.identity.namespace_name == identity.namespace_name;
  });
  return found == scheduler.pods.end() ? nullptr : &*found;
}

// What the scheduler knows of a pod: its names, the names of its containers, who controls it.
void AddPod(const Pod& pod, ProcessOwner& owner) {
  const std::string uid = std::move(owner.pod->uid);
  owner.pod = pod.identity;
  if (!uid.empty()) owner.pod->uid = uid;
  if (owner.container && owner.container->name.empty()) {
    const auto container =
        std::ranges::find(pod.containers, owner.container->id, &PodContainer::id);
    if (container != pod.containers.end()) {
      owner.container->name = container->name;
    } else if (pod.containers.size() == 1 && pod.containers[0].id.empty()) {
      owner.container->name = pod.containers[0].name;  // the kubelet tells no ids
    }
  }
  if (!owner.job && !pod.controller.kind.empty()) owner.job = pod.controller;
}

}  // namespace

struct Join::Impl {
  explicit Impl(JoinOptions join_options)
      : options(std::move(join_options)),
        owners(options.root),
        reader(options.root),
        holders(options.root, {.self_pid = options.self_pid,
                               .interval = options.holder_interval,
                               .in_background = options.in_background}) {}

  void List(const Snapshot& snapshot);
  void LookAt(const Snapshot& snapshot);
  void Learn();
  Person& PersonOf(std::uint32_t pid) { return people[pid]; }
  void UpdateScheduler(Snapshot& snapshot);
  void FillProcess(const Gpu& gpu, GpuProcess& process);
  void CompleteOwner(Person& person);
  void AddSources(Snapshot& snapshot);
  std::string ProcTrouble() const;

  JoinOptions options;
  ProcessOwners owners;
  ProcessReader reader;
  HolderWatch holders;
  SchedulerView view;
  std::unique_ptr<Kubernetes> kubernetes;
  SchedulerPtr told;  // the last that Kubernetes has told
  SchedulerPtr scheduler;
  std::uint64_t generation = 1;  // of `scheduler`
  std::uint64_t cycle = 0;
  std::unordered_map<std::uint32_t, Person> people;  // by PID
  std::vector<Listed> listed;                        // of this snapshot, by PID
  std::size_t unknown = 0;                           // PIDs of this snapshot that are not in /proc
};

void Join::Impl::List(const Snapshot& snapshot) {
  listed.clear();
  for (const Gpu& gpu : snapshot.gpus) {
    for (const GpuProcess& process : gpu.processes) listed.push_back({process.pid, 1});
  }
  std::ranges::sort(listed, {}, &Listed::pid);
  auto end = listed.begin();
  for (const Listed& one : listed) {
    if (end != listed.begin() && std::prev(end)->pid == one.pid) {
      ++std::prev(end)->devices;
    } else {
      *end++ = one;
    }
  }
  listed.erase(end, listed.end());
}

// Finds out which PIDs are new.
void Join::Impl::LookAt(const Snapshot& snapshot) {
  ++cycle;
  owners.BeginCycle();
  List(snapshot);
  unknown = 0;
  for (const Listed& one : listed) {
    const ProcessFacts* const facts = owners.FindKnown(one.pid);
    const auto found = people.find(one.pid);
    if (facts == nullptr) {
      // A person of this PID was another process, or has ended.
      if (found != people.end()) people.erase(found);
      continue;
    }
    if (found != people.end()) found->second.seen = cycle;
  }
  std::vector<std::uint32_t> to_learn = owners.TakeToLearn();
  for (auto& [pid, person] : people) {
    if (person.seen != cycle || person.hangs || !HasUnknownName(person.owner)) continue;
    if (++person.unnamed_cycles % kLookAgainAfter != 0) continue;
    if (person.unnamed_cycles <= kLookAgainAfter * kLookAgainMax) to_learn.push_back(pid);
  }
  reader.Ask(to_learn);
}

void Join::Impl::Learn() {
  for (ProcessReader::Answer& answer : reader.Take(options.wait_for_new)) {
    if (!answer.learned) continue;
    const ProcessFacts* const facts = owners.Remember(std::move(*answer.learned));
    const auto [found, is_new] = people.try_emplace(answer.pid);
    Person& person = found->second;
    if (!is_new && person.facts.start_after_boot != facts->start_after_boot) person = Person{};
    person.facts = *facts;
    person.generation = 0;
    person.seen = cycle;
    person.hangs = answer.hangs;
  }
  for (const Listed& one : listed) unknown += people.contains(one.pid) ? 0 : 1;
  std::erase_if(people, [this](const auto& pair) { return pair.second.seen != cycle; });
}

void Join::Impl::UpdateScheduler(Snapshot& snapshot) {
  if (kubernetes) {
    if (SchedulerPtr latest = kubernetes->Latest()) told = std::move(latest);
  }
  std::vector<EnvironmentClaim> claims;
  bool unknown_pod = false;
  for (const auto& [pid, person] : people) {
    const ProcessFacts& facts = person.facts;
    if (!facts.slurm_gpus.empty() ||
        (facts.owner.container && !facts.nvidia_visible_devices.empty())) {
      claims.push_back({facts.owner, facts.nvidia_visible_devices, facts.slurm_gpus});
    }
    if (facts.owner.pod && (!told || FindPod(*told, facts.owner.pod.operator*()) == nullptr)) {
      unknown_pod = true;
    }
  }
  if (unknown_pod && kubernetes) kubernetes->Poke();
  std::ranges::sort(claims, {}, [](const EnvironmentClaim& claim) {
    return std::pair(claim.slurm_gpus + claim.visible_devices,
                     claim.owner.container ? claim.owner.container->id
                                           : (claim.owner.job ? claim.owner.job->id : ""));
  });
  const auto rest = std::ranges::unique(claims);
  claims.erase(rest.begin(), rest.end());
  SchedulerPtr resolved = view.Resolve(told, std::move(claims), snapshot.gpus);
  if (resolved != scheduler) ++generation;
  scheduler = std::move(resolved);
  snapshot.scheduler = scheduler;
}

void Join::Impl::CompleteOwner(Person& person) {
  person.generation = generation;
  person.owner = person.facts.owner;
  if (!scheduler || !person.owner.pod) return;
  if (const Pod* const pod = FindPod(*scheduler, *person.owner.pod)) AddPod(*pod, person.owner);
}

void Join::Impl::FillProcess(const Gpu& gpu, GpuProcess& process) {
  const auto found = people.find(process.pid);
  if (found == people.end()) {
    process.start_after_boot.reset();
    process.owner = {};
  } else {
    Person& person = found->second;
    if (person.generation != generation) CompleteOwner(person);
    process.start_after_boot = person.facts.start_after_boot;
    process.owner = person.owner;
    if (process.name.empty()) process.name = person.facts.name;
  }
  const std::vector<MemoryReport> reports =
      options.reports != nullptr ? options.reports->Find(process.pid, options.clock->Steady())
                                 : std::vector<MemoryReport>{};
  const auto place = std::ranges::lower_bound(listed, process.pid, {}, &Listed::pid);
  FillPool(reports, gpu, place->devices, process);
}

std::string Join::Impl::ProcTrouble() const {
  if (unknown > 0 && unknown == listed.size()) {
    return fmt::format(
        "none of the {} processes of the driver is in /proc of the root: it is of another PID "
        "namespace than the driver's; their owners are not known (run with the host's PIDs)",
        unknown);
  }
  if (reader.left() == 1) return "a process does not let itself be read: it hangs in the kernel";
  if (reader.left() > 1) {
    return fmt::format("{} processes do not let themselves be read: they hang in the kernel",
                       reader.left());
  }
  return holders.trouble();
}

void Join::Impl::AddSources(Snapshot& snapshot) {
  std::erase_if(snapshot.sources, [](const SourceStatus& source) {
    return source.name == "procfs" || source.name == "pod_resources" ||
           source.name == "kubernetes_api";
  });
  SourceStatus proc;
  proc.name = "procfs";
  proc.error = ProcTrouble();
  proc.missing = Missing::kNoPermission;
  proc.readings.up = proc.error.empty() ? 1 : 0;
  proc.last_success = snapshot.time;
  snapshot.sources.push_back(std::move(proc));
  if (!kubernetes) return;
  for (SourceStatus& source : kubernetes->Sources()) snapshot.sources.push_back(std::move(source));
}

Join::Join(JoinOptions options) {
  Check(options.reports == nullptr || options.clock != nullptr, "reports without a clock");
  impl_ = std::make_unique<Impl>(std::move(options));
}

Join::~Join() = default;

void Join::SetKubernetes(std::unique_ptr<Kubernetes> kubernetes) {
  impl_->kubernetes = std::move(kubernetes);
}

void Join::LookForHolders() { impl_->holders.Scan(); }

void Join::Apply(Snapshot& snapshot) {
  impl_->LookAt(snapshot);
  impl_->Learn();
  impl_->UpdateScheduler(snapshot);
  for (Gpu& gpu : snapshot.gpus) {
    gpu.holders.clear();
    for (GpuProcess& process : gpu.processes) impl_->FillProcess(gpu, process);
  }
  impl_->holders.Fill(snapshot);
  impl_->AddSources(snapshot);
}

}  // namespace gpuassay
