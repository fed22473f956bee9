// The agent: a serving process that never calls a driver, and its driver worker. Wiring, nothing
// else.
#pragma once

#include <string>

#include "agent/node_join.h"
#include "agent/supervisor.h"
#include "base/result.h"
#include "web/server.h"

namespace gpuassay {

struct AgentOptions {
  SupervisorOptions supervisor;  // clock and on_bad_input are filled in by the agent
  NodeOptions node;
  ServerOptions server;
  std::string port_file;  // when set, the port is written there once the server listens
  std::string
      greeting;  // extra lines for the terminal once the address is known; {url} is replaced
};

// Serves until SIGTERM or SIGINT. SIGUSR1 releases the devices, SIGUSR2 takes them back. Blocks
// those signals in the calling thread. kMalformed: bad input (exit code 2); others: could not run
// (1).
Result<void> RunAgent(AgentOptions options);

}  // namespace gpuassay
