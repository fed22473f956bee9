// `processes:`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/duration.h"
#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

constexpr std::array<std::string_view, 3> kTypes = {"compute", "graphics", "mps"};
constexpr std::array<std::string_view, 19> kKeys = {
    "pid",    "count",  "name",  "gpus",  "mig",      "spread",
    "type",   "start",  "end",   "for",   "memory",   "activity",
    "phases", "repeat", "owner", "state", "unlisted", "other_pid_namespace",
    "pool"};

// Instances that a GPU has at most, over its layouts in time.
std::uint32_t MigDevicesMax(const Scenario& scenario, std::uint32_t gpu) {
  std::size_t most = scenario.gpus[gpu].mig.size();
  for (const Fault& fault : scenario.faults) {
    if (fault.kind == FaultKind::kMigReconfigure && fault.gpu.value_or(gpu) == gpu) {
      most = std::max(most, fault.layout.size());
    }
  }
  return static_cast<std::uint32_t>(most);
}

std::vector<MemoryPoint> ReadMemory(Reader& reader, const YamlNode& node) {
  constexpr std::array<std::string_view, 2> kPointKeys = {"at", "size"};
  std::vector<MemoryPoint> points;
  if (node.kind == YamlNode::Kind::kScalar) {
    points.push_back({{}, reader.Bytes(node, "memory")});
    return points;
  }
  if (node.kind != YamlNode::Kind::kSequence || node.items.empty() ||
      node.items.size() > kMemoryPointsMax) {
    reader.Reject(node, fmt::format("`memory` must be a size such as 62 GiB, or a list of 1 to {} "
                                    "points such as {{at: 30s, size: 62 GiB}}",
                                    kMemoryPointsMax));
    return points;
  }
  for (const YamlNode& item : node.items) {
    MapReader map(reader, item, "a memory point", kPointKeys);
    const YamlNode* at = map.Require("at");
    const YamlNode* size = map.Require("size");
    if (at == nullptr || size == nullptr || reader.failed()) {
      break;
    }
    const MemoryPoint point = {reader.Time(*at, "at", true), reader.Bytes(*size, "size")};
    if (!points.empty() && point.at <= points.back().at) {
      reader.Reject(item, "memory points must be in order of time");
    }
    points.push_back(point);
  }
  return points;
}

void ReadWork(Reader& reader, const MapReader& map, const Profiles& profiles,
              ScenarioProcess& process) {
  if (const YamlNode* repeat = map.Find("repeat")) {
    process.repeat = reader.Flag(*repeat, "repeat");
  }
  const YamlNode* activity = map.Find("activity");
  const YamlNode* phases = map.Find("phases");
  if (activity != nullptr && phases != nullptr) {
    reader.Reject(*phases, "a process has either `activity` or `phases`, not both");
  }
  if (activity != nullptr) {
    Phase phase;
    phase.activity = ReadActivity(reader, *activity, profiles);
    process.phases.push_back(std::move(phase));
  }
  if (phases != nullptr) {
    process.phases = ReadPhases(reader, *phases, profiles, process.repeat);
  }
  if (process.repeat && phases == nullptr) {
    reader.Reject(*map.Find("repeat"), "`repeat` needs `phases`");
  }
}

// MIG devices that the entry names; empty: the whole GPU.
std::vector<std::uint32_t> ReadMigDevices(Reader& reader, const MapReader& map,
                                          const Scenario& scenario,
                                          const std::vector<std::uint32_t>& gpus) {
  const YamlNode* node = map.Find("mig");
  if (node == nullptr) {
    return {};
  }
  std::uint32_t end = kMigInstancesMax;
  for (const std::uint32_t gpu : gpus) {
    end = std::min(end, MigDevicesMax(scenario, gpu));
  }
  return reader.Indices(*node, "mig", "MIG device", end);
}

void CheckMigUse(Reader& reader, const YamlNode& node, const Scenario& scenario,
                 const ScenarioProcess& process) {
  for (const std::uint32_t gpu : process.gpus) {
    if (scenario.gpus[gpu].mig_enabled && !process.mig_index) {
      reader.Reject(node, fmt::format("GPU {} is in MIG mode; say which device with `mig`", gpu));
    }
  }
}

// All processes of the file, listed by the driver or not; `facts` and `extras` side by side.
struct ReadSoFar {
  std::vector<ScenarioProcess> processes;
  std::vector<ScenarioProcFacts> facts;
  std::vector<ProcessExtras> extras;
};

// One entry can stand for several processes: `count`, `spread`.
void Multiply(Reader& reader, const YamlNode& node, ScenarioProcess process,
              const std::vector<std::uint32_t>& gpus, const std::vector<std::uint32_t>& devices,
              bool spread, std::uint64_t count, std::vector<ScenarioProcess>& out) {
  const std::size_t groups = spread ? gpus.size() : 1;
  const std::size_t slots = spread ? std::max<std::size_t>(1, devices.size()) : 1;
  if (out.size() + groups * slots * count > kScenarioProcessesMax ||
      process.pid + groups * slots * count > kPidMax) {
    reader.Reject(node, fmt::format("more than {} processes, or PIDs above {}",
                                    kScenarioProcessesMax, kPidMax));
    return;
  }
  for (std::size_t group = 0; group < groups; ++group) {
    process.gpus = spread ? std::vector{gpus[group]} : gpus;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      process.mig_index = devices.empty() ? std::nullopt : std::optional(devices[slot]);
      for (std::uint64_t i = 0; i < count; ++i) {
        out.push_back(process);
        ++process.pid;
      }
    }
  }
}

// The driver does not know an unlisted process, so nothing it does there can be told.
void CheckUnlisted(Reader& reader, const MapReader& map) {
  for (const std::string_view key : {"type", "memory", "activity", "phases", "repeat", "mig"}) {
    if (const YamlNode* node = map.Find(key)) {
      reader.Reject(*node, fmt::format("an `unlisted` process takes no `{}`: it is not in the "
                                       "driver's list; memory that it keeps in use is the fault "
                                       "memory_leak_orphan",
                                       key));
    }
  }
}

void ReadProcessEntry(Reader& reader, const YamlNode& node, const Scenario& scenario,
                      const Profiles& profiles, ReadSoFar& so_far) {
  std::vector<ScenarioProcess>& out = so_far.processes;
  MapReader map(reader, node, "a process", kKeys);
  const YamlNode* pid = map.Require("pid");
  const YamlNode* gpu_list = map.Require("gpus");
  if (pid == nullptr || gpu_list == nullptr || reader.failed()) {
    return;
  }
  ScenarioProcess process;
  process.pid = static_cast<std::uint32_t>(reader.Integer(*pid, "pid", 1, kPidMax));
  process.name = fmt::format("process-{}", process.pid);
  if (const YamlNode* name = map.Find("name")) {
    process.name = reader.Text(*name, "name");
  }
  if (const YamlNode* type = map.Find("type")) {
    process.type = static_cast<ScenarioProcessType>(reader.Word(*type, "type", kTypes));
  }
  const auto gpus =
      reader.Indices(*gpu_list, "gpus", "GPU", static_cast<std::uint32_t>(scenario.gpus.size()));
  if (reader.failed()) {
    return;
  }
  const auto devices = ReadMigDevices(reader, map, scenario, gpus);
  const YamlNode* spread_node = map.Find("spread");
  const bool spread = spread_node != nullptr && reader.Flag(*spread_node, "spread");
  if (!spread && devices.size() > 1) {
    reader.Reject(*map.Find("mig"),
                  "one process runs on one MIG device; set `spread: true` for "
                  "one process on each");
  }
  std::uint64_t count = 1;
  if (const YamlNode* node_count = map.Find("count")) {
    count = reader.Integer(*node_count, "count", 1, kScenarioProcessesMax);
  }
  const Life life = ReadLife(reader, map, "a process");
  process.start = life.start;
  process.end = life.end;
  if (const YamlNode* memory = map.Find("memory")) {
    process.memory = ReadMemory(reader, *memory);
  }
  ReadWork(reader, map, profiles, process);
  const ProcessExtras extras = ReadProcessExtras(reader, map);
  if (extras.unlisted) {
    CheckUnlisted(reader, map);
  }
  const std::size_t first = out.size();
  Multiply(reader, node, process, gpus, devices, spread, count, out);
  const YamlNode* owner = map.Find("owner");
  for (std::size_t i = first; i < out.size() && !reader.failed(); ++i) {
    if (!extras.unlisted) {
      CheckMigUse(reader, node, scenario, out[i]);
    }
    so_far.facts.push_back(FactsOf(reader, owner != nullptr ? *owner : node, extras, out[i],
                                   i - first, scenario.world));
  }
  so_far.extras.resize(out.size(), extras);
}

bool LivesOverlap(const ScenarioProcess& a, const ScenarioProcess& b) {
  return a.start < b.end && b.start < a.end;
}

bool ShareGpu(const ScenarioProcess& a, const ScenarioProcess& b) {
  return std::ranges::any_of(
      a.gpus, [&](std::uint32_t gpu) { return std::ranges::find(b.gpus, gpu) != b.gpus.end(); });
}

// The same PID may stand twice when one life ends before the next, or when it is one program that
// does different things on different GPUs.
void CheckPids(Reader& reader, const YamlNode& node, const std::vector<ScenarioProcess>& all,
               const std::vector<std::size_t>& entry_of) {
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i].pid; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size() && all[order[j]].pid == all[order[i]].pid; ++j) {
      const ScenarioProcess& a = all[order[i]];
      const ScenarioProcess& b = all[order[j]];
      if (LivesOverlap(a, b) && (ShareGpu(a, b) || a.name != b.name)) {
        reader.Reject(node.items[entry_of[order[j]]],
                      fmt::format("PID {} is already taken at that time; give another, or the same "
                                  "`name` and other `gpus`",
                                  b.pid));
        return;
      }
    }
  }
}

// A place with memory: a GPU, or a MIG device of one.
struct Place {
  std::string name;
  double capacity = 0;
};

Place GpuPlace(const Scenario& scenario, std::uint32_t gpu) {
  const GpuModel& model = *scenario.gpus[gpu].model;
  return {fmt::format("GPU {}", gpu),
          static_cast<double>(model.memory_bytes - model.memory_reserved_bytes)};
}

// The largest that this MIG device is in any layout.
Place MigPlace(const Scenario& scenario, std::uint32_t gpu, std::uint32_t device) {
  const ScenarioGpu& config = scenario.gpus[gpu];
  Place place{fmt::format("MIG device {} of GPU {}", device, gpu), 0};
  const auto consider = [&](const std::vector<std::string>& layout) {
    const MigProfile* profile =
        device < layout.size() ? FindMigProfile(*config.model, layout[device]) : nullptr;
    if (profile != nullptr) {
      place.capacity = std::max(place.capacity, static_cast<double>(profile->memory_bytes));
    }
  };
  consider(config.mig);
  for (const Fault& fault : scenario.faults) {
    if (fault.kind == FaultKind::kMigReconfigure && fault.gpu.value_or(gpu) == gpu) {
      consider(fault.layout);
    }
  }
  return place;
}

struct Placed {
  const ScenarioProcess* process;
  const YamlNode* entry;
};

// The sum of memory over time is piecewise linear; these are its corners.
struct Corner {
  Duration at = {};
  long double jump_bytes = 0, slope_bytes_per_us = 0;  // change of the sum, and of its slope
  int alive = 0, sloped = 0;                           // change of the number of each
  const YamlNode* entry = nullptr;
};

void AddCorners(const Placed& placed, std::vector<Corner>& corners) {
  const ScenarioProcess& process = *placed.process;
  const auto bytes_at = [&](Duration t) {
    return static_cast<long double>(MemoryOf(process.memory, t - process.start));
  };
  corners.push_back({process.start, bytes_at(process.start), 0, 1, 0, placed.entry});
  for (std::size_t i = 1; i < process.memory.size(); ++i) {
    const MemoryPoint& a = process.memory[i - 1];
    const MemoryPoint& b = process.memory[i];
    const Duration from = process.start + a.at;
    const Duration to = std::min(process.start + b.at, process.end);
    if (from >= to) {
      break;
    }
    const long double slope = static_cast<long double>(b.bytes - a.bytes) /
                              static_cast<long double>((b.at - a.at).count());
    corners.push_back({from, 0, slope, 0, 1, placed.entry});
    corners.push_back({to, 0, -slope, 0, -1, placed.entry});
  }
  if (process.end != kForever) {
    corners.push_back({process.end, -bytes_at(process.end), 0, -1, 0, placed.entry});
  }
}

void RejectMemory(Reader& reader, const Place& place, const Corner& corner, long double bytes) {
  reader.Reject(*corner.entry,
                fmt::format("at {} the processes on {} hold {:.0f} MiB together, but it has {:.0f} "
                            "MiB for them",
                            FormatDuration(corner.at), place.name,
                            static_cast<double>(bytes) / 1048576, place.capacity / 1048576));
}

// One sweep over the corners: the largest sum is at one of them, just before or after it.
void CheckMemoryOf(Reader& reader, const Place& place, const std::vector<Placed>& here) {
  std::vector<Corner> corners;
  for (const Placed& placed : here) {
    if (!placed.process->memory.empty()) {
      AddCorners(placed, corners);
    }
  }
  std::ranges::stable_sort(corners, {}, &Corner::at);
  const long double most = static_cast<long double>(place.capacity) + 1024;  // of rounding
  long double sum = 0;
  long double slope = 0;
  int alive = 0;
  int sloped = 0;
  Duration before = {};
  for (std::size_t i = 0; i < corners.size() && !reader.failed();) {
    const Corner& first = corners[i];
    sum += slope * static_cast<long double>((first.at - before).count());
    before = first.at;
    if (sum > most) {
      RejectMemory(reader, place, first, sum);
    }
    const Corner* last = &first;
    for (; i < corners.size() && corners[i].at == before; ++i) {
      sum += corners[i].jump_bytes;
      slope += corners[i].slope_bytes_per_us;
      alive += corners[i].alive;
      sloped += corners[i].sloped;
      last = corners[i].jump_bytes > 0 ? &corners[i] : last;
    }
    sum = alive == 0 ? 0 : sum;  // so that rounding does not pile up
    slope = sloped == 0 ? 0 : slope;
    if (sum > most) {
      RejectMemory(reader, place, *last, sum);
    }
  }
}

void CheckMemory(Reader& reader, const YamlNode& node, const Scenario& scenario,
                 const std::vector<ScenarioProcess>& processes,
                 const std::vector<std::size_t>& entry_of) {
  for (std::uint32_t gpu = 0; gpu < scenario.gpus.size() && !reader.failed(); ++gpu) {
    std::vector<Placed> here;
    std::array<std::vector<Placed>, kMigInstancesMax> by_device;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (std::ranges::find(processes[i].gpus, gpu) != processes[i].gpus.end()) {
        here.push_back({&processes[i], &node.items[entry_of[i]]});
        if (processes[i].mig_index) {
          by_device[*processes[i].mig_index].push_back(here.back());
        }
      }
    }
    CheckMemoryOf(reader, GpuPlace(scenario, gpu), here);
    for (std::uint32_t device = 0; device < by_device.size(); ++device) {
      CheckMemoryOf(reader, MigPlace(scenario, gpu, device), by_device[device]);
    }
  }
}

// One program on several GPUs that stands there in several entries has one /proc.
void Merge(Reader& reader, const YamlNode& at, const ProcessExtras& extras,
           const ScenarioProcFacts& from, ScenarioProcFacts& into, bool into_owned) {
  if (extras.owned && into_owned && !SameOwner(from.owner, into.owner)) {
    reader.Reject(at, fmt::format("PID {} has another `owner` above; keep one", from.pid));
  }
  if (extras.owned) {
    into.owner = from.owner;
    into.other_pid_namespace = from.other_pid_namespace;
  }
  if (from.state != ScenarioProcessState::kRunning) {
    into.state = from.state;
  }
  into.gpus.insert(into.gpus.end(), from.gpus.begin(), from.gpus.end());
  std::ranges::sort(into.gpus);
  const auto same = std::ranges::unique(into.gpus);
  into.gpus.erase(same.begin(), same.end());
  into.start = std::min(into.start, from.start);
  into.end = std::max(into.end, from.end);
  if (from.pool_reserved_bytes) {
    into.pool_reserved_bytes = from.pool_reserved_bytes;
    into.pool_allocated_bytes = from.pool_allocated_bytes;
  }
}

// The listed ones into the scenario; what is said of /proc into its world, if there is one.
void Distribute(Reader& reader, const YamlNode& node, const std::vector<std::size_t>& entry_of,
                ReadSoFar so_far, Scenario& scenario) {
  ScenarioWorld& world = scenario.world;
  world.present |= std::ranges::any_of(so_far.extras, &ProcessExtras::any);
  std::map<std::uint32_t, std::vector<std::size_t>> facts_of;  // PID to indices in world.processes
  std::vector<bool> owned;                                     // beside world.processes
  for (std::size_t i = 0; i < so_far.processes.size(); ++i) {
    if (!so_far.extras[i].unlisted) {
      scenario.processes.push_back(std::move(so_far.processes[i]));
    }
    ScenarioProcFacts& facts = so_far.facts[i];
    std::vector<std::size_t>& same_pid = facts_of[facts.pid];
    const auto same = std::ranges::find_if(same_pid, [&](std::size_t index) {
      return facts.start < world.processes[index].end && world.processes[index].start < facts.end;
    });
    if (!world.present) {
      continue;
    }
    if (same != same_pid.end()) {
      Merge(reader, node.items[entry_of[i]], so_far.extras[i], facts, world.processes[*same],
            owned[*same]);
      owned[*same] = owned[*same] || so_far.extras[i].owned;
      continue;
    }
    same_pid.push_back(world.processes.size());
    world.processes.push_back(std::move(facts));
    owned.push_back(so_far.extras[i].owned);
  }
}

}  // namespace

Life ReadLife(Reader& reader, const MapReader& map, std::string_view what) {
  Life life;
  if (const YamlNode* start = map.Find("start")) {
    life.start = reader.Time(*start, "start", true);
  }
  const YamlNode* end = map.Find("end");
  const YamlNode* length = map.Find("for");
  if (end != nullptr && length != nullptr) {
    reader.Reject(*length, fmt::format("{} has either `end` or `for`, not both", what));
  }
  if (end != nullptr) {
    life.end = reader.Time(*end, "end", false);
    if (life.end <= life.start) {
      reader.Reject(*end, "`end` must be later than `start`");
    }
  }
  if (length != nullptr) {
    life.end = life.start + reader.Time(*length, "for", false);
  }
  return life;
}

double MemoryOf(const std::vector<MemoryPoint>& points, Duration since_start) {
  if (points.empty()) {
    return 0;
  }
  if (since_start <= points.front().at) {
    return points.front().bytes;
  }
  const auto next = std::ranges::upper_bound(points, since_start, {}, &MemoryPoint::at);
  if (next != points.end()) {
    const MemoryPoint& a = *(next - 1);
    return a.bytes +
           (next->bytes - a.bytes) * (Seconds(since_start - a.at) / Seconds(next->at - a.at));
  }
  return points.back().bytes;
}

void ReadProcesses(Reader& reader, const YamlNode& node, const Profiles& profiles,
                   Scenario& scenario) {
  if (node.kind != YamlNode::Kind::kSequence) {
    reader.Reject(node, "`processes` must be a list such as [{pid: 4100, gpus: all}]");
    return;
  }
  ReadSoFar so_far;
  std::vector<std::size_t> entry_of;
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); ++i) {
    ReadProcessEntry(reader, node.items[i], scenario, profiles, so_far);
    entry_of.resize(so_far.processes.size(), i);
  }
  if (reader.failed()) {
    return;
  }
  CheckPids(reader, node, so_far.processes, entry_of);
  CheckMemory(reader, node, scenario, so_far.processes, entry_of);
  Distribute(reader, node, entry_of, std::move(so_far), scenario);
}

}  // namespace gpuassay::sim
