// What /proc says of one process of a scenario, byte for byte as the kernel writes it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// The node was booted so long before the scenario starts.
inline constexpr Duration kUptimeAtStart = std::chrono::hours(24);
inline constexpr std::uint64_t kHostPidNamespace = 4'026'531'836;

// What stands around a process, beside its own facts.
struct ProcessContext {
  // Of its second thread, where it has one; of its group's leader that is gone, of an orphan.
  std::uint32_t other_id = 0;
  std::uint32_t pid_in_namespace = 0;  // of its container; 0: it runs in the host's
};

struct ProcessFiles {
  std::string stat, status, cgroup, command_line, name, environment, io;
  std::string pid_namespace;       // "pid:[4026531836]"
  std::vector<std::string> files;  // what its file descriptors name, from 0 on
  bool leader_is_dead = false;     // then only the second thread has files
  std::string thread_stat;         // of task/TID of the second thread; empty without one
};

ProcessFiles FilesOf(const Scenario& scenario, const ScenarioProcFacts& facts,
                     const ProcessContext& context);
ProcessFiles FilesOfInit();

std::string PasswdText(const ScenarioWorld& world);
std::string StatText(const Scenario& scenario);  // /proc/stat

}  // namespace gpuassay::sim
