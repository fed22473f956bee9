#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command.h"

namespace {

// CLI11 explains with the whole help text; we say one line and where to read more.
int ReportUsage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string command;
  for (const CLI::App* sub : app.get_subcommands()) command = " " + sub->get_name();
  std::fprintf(stderr, "gpuassay%s: %s; see gpuassay%s --help\n", command.c_str(), error.what(),
               command.c_str());
  return gpuassay::kExitBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("gpuassay tells what GPUs are really doing.", "gpuassay");
  app.set_version_flag("--version", "gpuassay " GPUASSAY_VERSION);
  app.require_subcommand(1);
  gpuassay::CommandContext context;
  gpuassay::AddAgentCommand(app, context);
  gpuassay::AddSnapshotCommand(app, context);
  gpuassay::AddViewsCommand(app, context);
  gpuassay::AddSimulateCommand(app, context);
  gpuassay::AddDemoCommand(app, context);
  gpuassay::AddMetricsCommand(app, context);
  gpuassay::AddExplainCommand(app, context);
  gpuassay::AddRecordCommand(app, context);
  gpuassay::AddWorkerCommand(app, context);
  const auto is_first = [argv](const CLI::App* sub) { return sub->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_first).empty()) {
    std::fprintf(stderr, "gpuassay: there is no command '%s'; see gpuassay --help\n", argv[1]);
    return gpuassay::kExitBadInput;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportUsage(app, error);
  }
  return context.exit_code;
}
