// The arguments that say where the node around a source is: its file system, kubelet and API
// server.
#pragma once

#include <string>
#include <vector>

#include "agent/node_join.h"
#include "base/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gpuassay {

struct NodeArguments {
  std::string attribution = "on";
  std::string root = {};
  std::string pod_resources_socket = {};
  std::string kubeconfig = {};
  std::string node_name = {};
  std::vector<std::string> resource_names = {};
  std::vector<std::string> pod_labels = {};
};

void AddNodeArguments(CLI::App& command, NodeArguments& arguments);

// kMalformed names the argument, its text and what is allowed.
Result<NodeOptions> MakeNodeOptions(const NodeArguments& arguments);

}  // namespace gpuassay
