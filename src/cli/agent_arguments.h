// The arguments that `agent` and `demo` share, and what they mean.
#pragma once

#include <string>

#include "agent/agent.h"
#include "base/result.h"
#include "cli/node_arguments.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gpuassay {

struct AgentArguments {
  std::string source = "nvml";
  std::string address = ":9400";
  std::string collect_interval = "1s";
  std::string dcgm_names = "4.8";
  std::string hostname = {};  // empty: NODE_NAME, else this machine's
  std::string port_file = {};
  std::string hang_after = {};     // empty: three intervals, at least 3 s
  std::string replace_after = {};  // empty: 20 s, at least twice hang_after
  std::string stale_after = "60s";
  std::string log_level = "info";
  double simulator_speed = 1;
  NodeArguments node = {};
  std::string report_socket = {};
};

// All but --source.
void AddAgentArguments(CLI::App& command, AgentArguments& arguments);

// kMalformed names the argument, its text and what is allowed. Sets the log level.
Result<AgentOptions> MakeAgentOptions(const AgentArguments& arguments);

}  // namespace gpuassay
