// The sections of a scenario file, each read by one function. Internal to this folder; errors go to
// the Reader.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/scenario/reader.h"
#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// Named activities of `profiles:`.
using Profiles = std::map<std::string, Activity, std::less<>>;

inline constexpr std::uint64_t kPidMax = 4'194'304;  // Linux: PID_MAX_LIMIT
inline constexpr std::size_t kScenarioGpusMax = 64;
inline constexpr std::size_t kScenarioProcessesMax = 1024;
inline constexpr std::size_t kScenarioFaultsMax = 1024;
inline constexpr std::size_t kPhasesMax = 256;        // of one process
inline constexpr std::size_t kMemoryPointsMax = 256;  // of one process
inline constexpr std::size_t kKernelsMax = 10'000;    // of one phase
inline constexpr std::size_t kProfilesMax = 256;
inline constexpr std::size_t kResourcesMax = 64;
inline constexpr std::size_t kReplicasMax = 64;
inline constexpr std::size_t kPodsMax = 1024;
inline constexpr std::size_t kRuntimeContainersMax = 1024;
inline constexpr std::size_t kJobsMax = 1024;
inline constexpr std::size_t kUsersMax = 256;
inline constexpr std::size_t kWindowsMax = 64;     // of one kind
inline constexpr std::size_t kContainersMax = 64;  // of one pod
inline constexpr std::size_t kDevicesMax = 64;     // of one container
inline constexpr std::size_t kPairsMax = 64;       // labels, annotations, requests

DriverVersion ReadDriver(Reader& reader, const YamlNode& node);
std::vector<ScenarioGpu> ReadGpus(Reader& reader, const YamlNode& node,
                                  const DriverVersion& driver);
// A layout as a list of profile names or "7 x 1g.10gb"; rejected when it does not fit the model.
std::vector<std::string> ReadMigLayout(Reader& reader, const YamlNode& node, const GpuModel& model);

Profiles ReadProfiles(Reader& reader, const YamlNode& node);
// A profile's name or a mapping.
Activity ReadActivity(Reader& reader, const YamlNode& node, const Profiles& profiles);
std::vector<Phase> ReadPhases(Reader& reader, const YamlNode& node, const Profiles& profiles,
                              bool repeat);

// What `start`, `end` and `for` say; `what` with its article.
struct Life {
  Duration start = {};
  Duration end = kForever;
};
Life ReadLife(Reader& reader, const MapReader& map, std::string_view what);

std::string ReadContainerId(Reader& reader, const YamlNode& node);
// "nvidia.com/gpu".
std::string ReadResourceName(Reader& reader, const YamlNode& node, std::string_view name);
// Rejects a user that is neither root nor in `node`.
void CheckUser(Reader& reader, const YamlNode& at, const std::string& user,
               const ScenarioWorld& world);

// `node`, `kubernetes`, `containers`, `jobs` and `pods`; `scenario` has its GPUs.
ScenarioWorld ReadWorld(Reader& reader, const MapReader& map, const Scenario& scenario);
// `scenario` has its world's users and resources.
std::vector<ScenarioPod> ReadPods(Reader& reader, const YamlNode& node, const Scenario& scenario,
                                  const ScenarioWorld& world);

// `scenario` has its GPUs. Faults before processes: they may change MIG layouts.
std::vector<Fault> ReadFaults(Reader& reader, const YamlNode& node, const Scenario& scenario);

// What an entry of `processes` says about the process outside the GPU.
struct ProcessExtras {
  bool any = false;    // at least one of these keys stands there
  bool owned = false;  // `owner` does
  bool unlisted = false;
  ScenarioProcFacts facts;  // without pid, name, GPUs and life
};
ProcessExtras ReadProcessExtras(Reader& reader, const MapReader& map);
// Of the `number`th process of the entry, which replaces `*` in the owner's names; owners that do
// not exist are rejected at `at`.
ScenarioProcFacts FactsOf(Reader& reader, const YamlNode& at, const ProcessExtras& extras,
                          const ScenarioProcess& process, std::size_t number,
                          const ScenarioWorld& world);

bool SameOwner(const ScenarioOwner& a, const ScenarioOwner& b);

// Fills `processes`, and `world.processes` when there is a world or an entry makes one. `scenario`
// has its GPUs, its faults and the rest of its world.
void ReadProcesses(Reader& reader, const YamlNode& node, const Profiles& profiles,
                   Scenario& scenario);

}  // namespace gpuassay::sim
