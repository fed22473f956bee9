// What every command of `gpuassay` has in common. A command is a file `<name>_command.cc` with one
// function that adds its arguments to the application; its callback sets the exit code.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gpuassay {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;   // it could not be done
inline constexpr int kExitBadInput = 2;  // what was asked for makes no sense

struct CommandContext {
  int exit_code = kExitOk;
};

// Prints `gpuassay COMMAND: message` as one line to standard error; returns the exit code for the
// error: kExitBadInput for kMalformed, kExitFailure for the rest.
int ReportError(std::string_view command, const Error& error);

// In the order of the help text; main.cc calls them all.
void AddAgentCommand(CLI::App& app, CommandContext& context);
void AddSnapshotCommand(CLI::App& app, CommandContext& context);
void AddViewsCommand(CLI::App& app, CommandContext& context);
void AddSimulateCommand(CLI::App& app, CommandContext& context);
void AddDemoCommand(CLI::App& app, CommandContext& context);
void AddMetricsCommand(CLI::App& app, CommandContext& context);
void AddExplainCommand(CLI::App& app, CommandContext& context);
void AddRecordCommand(CLI::App& app, CommandContext& context);
void AddWorkerCommand(CLI::App& app, CommandContext& context);  // hidden: the agent's driver worker

}  // namespace gpuassay
