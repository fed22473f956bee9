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

// `scenario` has its GPUs. Faults before processes: they may change MIG layouts.
std::vector<Fault> ReadFaults(Reader& reader, const YamlNode& node, const Scenario& scenario);
std::vector<ScenarioProcess> ReadProcesses(Reader& reader, const YamlNode& node,
                                           const Scenario& scenario, const Profiles& profiles);

}  // namespace gpuassay::sim
