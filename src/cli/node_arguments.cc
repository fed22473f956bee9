#include "cli/node_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace gpuassay {
namespace {

// "example.com/gpu": what Kubernetes calls an extended resource.
bool IsResourceName(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string::npos &&
         name.find_first_of(" \t") == std::string::npos;
}

Result<void> CheckNames(const NodeArguments& arguments) {
  for (const std::string& name : arguments.resource_names) {
    if (IsResourceName(name)) continue;
    return Fail(ErrorCode::kMalformed,
                fmt::format("--nvidia-resource-names: '{}' is not of the form DOMAIN/NAME", name));
  }
  for (const std::string& label : arguments.pod_labels) {
    if (!label.empty() && label.find('*') >= label.size() - 1) continue;
    return Fail(ErrorCode::kMalformed,
                fmt::format("--pod-labels: '{}' is not a label key; '*' may only end one", label));
  }
  return {};
}

}  // namespace

void AddNodeArguments(CLI::App& command, NodeArguments& a) {
  command.add_option("--attribution", a.attribution, "Find out who processes belong to: on or off")
      ->capture_default_str();
  command.add_option("--root", a.root, "Where the host's file system is (/)");
  command.add_option("--pod-resources-kubelet-socket", a.pod_resources_socket,
                     "The kubelet's pod-resources API, or off (that of the kubelet's directory)");
  command.add_option("--kubeconfig", a.kubeconfig,
                     "For the API server (in a pod: its service account)");
  command.add_option("--node-name", a.node_name,
                     "What Kubernetes calls this node (NODE_NAME, else the machine's name)");
  command
      .add_option("--nvidia-resource-names", a.resource_names,
                  "Resources that are GPUs besides nvidia.com/...: DOMAIN/NAME[,...]")
      ->delimiter(',');
  command
      .add_option("--pod-labels", a.pod_labels,
                  "Labels of pods to read: KEY[,...]; a * at the end of one stands for the rest")
      ->delimiter(',');
}

Result<NodeOptions> MakeNodeOptions(const NodeArguments& arguments) {
  NodeOptions options;
  if (arguments.attribution != "on" && arguments.attribution != "off") {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--attribution: '{}' is neither on nor off", arguments.attribution));
  }
  if (const Result<void> names = CheckNames(arguments); !names) {
    return std::unexpected(names.error());
  }
  options.attribution = arguments.attribution == "on";
  options.root = arguments.root;
  options.pod_resources_socket = arguments.pod_resources_socket;
  options.kubeconfig = arguments.kubeconfig;
  options.node_name = arguments.node_name;
  options.resource_names = arguments.resource_names;
  options.pod_labels = arguments.pod_labels;
  return options;
}

}  // namespace gpuassay
