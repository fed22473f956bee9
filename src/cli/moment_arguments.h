// The arguments of commands that show one moment of a source: which source, when, and the node
// around it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/node_arguments.h"
#include "cli/source_reading.h"

namespace gpuassay {

struct MomentArguments {
  std::string source = "nvml";
  std::string interval = "1s";
  std::string at = {};
  std::string timeout = "15s";
  NodeArguments node = {};
};

void AddMomentArguments(CLI::App& command, MomentArguments& arguments);

// kMalformed names the argument, its text and what is allowed.
Result<MomentRequest> MakeMomentRequest(const MomentArguments& arguments);

// kIo when the driver could not be read: what there is of the snapshot is worth showing first.
Result<void> CheckDriverWasRead(const Snapshot& snapshot);

}  // namespace gpuassay
