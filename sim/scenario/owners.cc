// What `processes:` says of a process outside the GPU: whose it is, its state in /proc, its pool.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/duration.h"
#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

constexpr std::array<std::string_view, 5> kStates = {"running", "sleeping", "uninterruptible",
                                                     "defunct_leader", "orphan"};
constexpr std::array<std::string_view, 6> kOwnerKeys = {"pod",  "container", "job",
                                                        "step", "unit",      "user"};
constexpr std::array<std::string_view, 5> kStepNames = {"batch", "extern", "interactive", "0", "1"};

// "ml/training" is namespace and name; without one, the namespace is "default".
void SplitPod(const std::string& text, ScenarioOwner& owner) {
  const std::size_t slash = text.find('/');
  owner.namespace_name = slash == std::string::npos ? "default" : text.substr(0, slash);
  owner.pod = slash == std::string::npos ? text : text.substr(slash + 1);
}

std::string ReadStep(Reader& reader, const YamlNode& node) {
  const bool digits =
      !node.text.empty() && node.text.size() < 10 &&
      std::ranges::all_of(node.text, [](char c) { return (c >= '0' && c <= '9') || c == '*'; });
  return digits ? node.text : std::string(kStepNames[reader.Word(node, "step", kStepNames)]);
}

std::string ReadUnit(Reader& reader, const YamlNode& node) {
  std::string unit = reader.Text(node, "unit");
  if ((!unit.ends_with(".service") && !unit.ends_with(".scope")) ||
      unit.find_first_of("/ ") != std::string::npos) {
    reader.Reject(node, "`unit` must look like train.service or session-3.scope");
  }
  return unit;
}

ScenarioOwner ReadOwner(Reader& reader, const YamlNode& node) {
  MapReader map(reader, node, "an owner", kOwnerKeys);
  ScenarioOwner owner;
  owner.user.clear();
  const YamlNode* pod = map.Find("pod");
  const YamlNode* container = map.Find("container");
  const YamlNode* job = map.Find("job");
  const YamlNode* unit = map.Find("unit");
  const bool in_container = pod != nullptr || container != nullptr;
  if ((in_container ? 1 : 0) + (job != nullptr ? 1 : 0) + (unit != nullptr ? 1 : 0) > 1) {
    reader.Reject(node, "an owner is one of `pod`, `container`, `job` and `unit`; keep one");
  }
  if (pod != nullptr) {
    SplitPod(reader.Text(*pod, "pod"), owner);
  }
  if (container != nullptr) {
    (pod != nullptr ? owner.container : owner.runtime_container) =
        reader.Text(*container, "container");
  }
  if (job != nullptr) {
    owner.job = reader.Text(*job, "job");
  }
  if (const YamlNode* step = map.Find("step")) {
    owner.step = ReadStep(reader, *step);
    if (job == nullptr) {
      reader.Reject(*step, "`step` belongs to a `job`");
    }
  }
  if (unit != nullptr) {
    owner.unit = ReadUnit(reader, *unit);
  }
  if (const YamlNode* user = map.Find("user")) {
    owner.user = reader.Text(*user, "user");
  }
  return owner;
}

void ReadPool(Reader& reader, const YamlNode& node, ScenarioProcFacts& facts) {
  constexpr std::array<std::string_view, 2> kKeys = {"reserved", "allocated"};
  MapReader map(reader, node, "a pool", kKeys);
  const YamlNode* reserved = map.Require("reserved");
  const YamlNode* allocated = map.Require("allocated");
  if (reserved == nullptr || allocated == nullptr) {
    return;
  }
  facts.pool_reserved_bytes = reader.Bytes(*reserved, "reserved");
  facts.pool_allocated_bytes = reader.Bytes(*allocated, "allocated");
  if (*facts.pool_allocated_bytes > *facts.pool_reserved_bytes) {
    reader.Reject(*allocated, "`allocated` lies within `reserved`, so it cannot be larger");
  }
}

void Number(std::string& text, std::size_t number) {
  const std::size_t star = text.find('*');
  if (star != std::string::npos) {
    text.replace(star, 1, std::to_string(number));
  }
}

void ResolvePod(Reader& reader, const YamlNode& at, const ScenarioProcess& process,
                const ScenarioWorld& world, ScenarioOwner& owner) {
  const auto is_named = [&](const ScenarioPod& pod) {
    return pod.name == owner.pod && pod.namespace_name == owner.namespace_name;
  };
  const auto named = std::ranges::find_if(world.pods, is_named);
  if (named == world.pods.end()) {
    reader.Reject(at,
                  fmt::format("there is no pod {}/{} in `pods`", owner.namespace_name, owner.pod));
    return;
  }
  const auto pod = std::ranges::find_if(world.pods, [&](const ScenarioPod& candidate) {
    return is_named(candidate) && candidate.start <= process.start && process.start < candidate.end;
  });
  if (pod == world.pods.end()) {
    reader.Reject(
        at, fmt::format("pod {}/{} is not there at {}, when PID {} starts", owner.namespace_name,
                        owner.pod, FormatDuration(process.start), process.pid));
    return;
  }
  if (owner.container.empty() && pod->containers.size() == 1) {
    owner.container = pod->containers.front().name;
  }
  if (std::ranges::find(pod->containers, owner.container, &ScenarioContainer::name) ==
      pod->containers.end()) {
    reader.Reject(at, owner.container.empty()
                          ? fmt::format("pod {}/{} has several containers; say which",
                                        owner.namespace_name, owner.pod)
                          : fmt::format("pod {}/{} has no container {}", owner.namespace_name,
                                        owner.pod, owner.container));
  }
}

void Resolve(Reader& reader, const YamlNode& at, const ScenarioProcess& process,
             const ScenarioWorld& world, ScenarioOwner& owner) {
  if (!owner.pod.empty()) {
    ResolvePod(reader, at, process, world, owner);
  }
  if (!owner.runtime_container.empty() &&
      std::ranges::find(world.containers, owner.runtime_container,
                        &ScenarioRuntimeContainer::name) == world.containers.end()) {
    reader.Reject(at,
                  fmt::format("there is no container {} in `containers`", owner.runtime_container));
  }
  if (!owner.job.empty()) {
    const auto job = std::ranges::find(world.jobs, owner.job, &ScenarioBatchJob::id);
    if (job == world.jobs.end()) {
      reader.Reject(at, fmt::format("there is no job {} in `jobs`", owner.job));
      return;
    }
    owner.user = owner.user.empty() ? job->user : owner.user;
    owner.step = owner.step.empty() ? "batch" : owner.step;
  }
  owner.user = owner.user.empty() ? "root" : owner.user;
  CheckUser(reader, at, owner.user, world);
}

}  // namespace

void CheckUser(Reader& reader, const YamlNode& at, const std::string& user,
               const ScenarioWorld& world) {
  if (user != "root" &&
      std::ranges::find(world.users, user, &std::pair<std::string, std::uint32_t>::first) ==
          world.users.end()) {
    reader.Reject(
        at, fmt::format("there is no user {}; add node: {{users: {{{}: 1001}}}}", user, user));
  }
}

bool SameOwner(const ScenarioOwner& a, const ScenarioOwner& b) {
  return a.pod == b.pod && a.namespace_name == b.namespace_name && a.container == b.container &&
         a.runtime_container == b.runtime_container && a.job == b.job && a.step == b.step &&
         a.unit == b.unit && a.user == b.user;
}

ProcessExtras ReadProcessExtras(Reader& reader, const MapReader& map) {
  ProcessExtras extras;
  for (const std::string_view key : {"owner", "state", "unlisted", "other_pid_namespace", "pool"}) {
    extras.any |= map.Find(key) != nullptr;
  }
  ScenarioProcFacts& facts = extras.facts;
  if (const YamlNode* owner = map.Find("owner")) {
    extras.owned = true;
    facts.owner = ReadOwner(reader, *owner);
  }
  if (const YamlNode* state = map.Find("state")) {
    facts.state = static_cast<ScenarioProcessState>(reader.Word(*state, "state", kStates));
  }
  if (const YamlNode* unlisted = map.Find("unlisted")) {
    extras.unlisted = reader.Flag(*unlisted, "unlisted");
  }
  // A container has a PID namespace of its own unless its pod shares the host's.
  facts.other_pid_namespace = !facts.owner.pod.empty() || !facts.owner.runtime_container.empty();
  if (const YamlNode* other = map.Find("other_pid_namespace")) {
    facts.other_pid_namespace = reader.Flag(*other, "other_pid_namespace");
  }
  if (const YamlNode* pool = map.Find("pool")) {
    ReadPool(reader, *pool, facts);
  }
  return extras;
}

ScenarioProcFacts FactsOf(Reader& reader, const YamlNode& at, const ProcessExtras& extras,
                          const ScenarioProcess& process, std::size_t number,
                          const ScenarioWorld& world) {
  ScenarioProcFacts facts = extras.facts;
  facts.pid = process.pid;
  facts.name = process.name;
  facts.gpus = process.gpus;
  facts.start = process.start;
  facts.end = process.end;
  for (std::string* text : {&facts.owner.pod, &facts.owner.container,
                            &facts.owner.runtime_container, &facts.owner.step}) {
    Number(*text, number);
  }
  Resolve(reader, at, process, world, facts.owner);
  return facts;
}

}  // namespace gpuassay::sim
