#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/metrics_text.h"

namespace gpuassay {

void AddMetricsCommand(CLI::App& app, CommandContext&) {
  CLI::App* command = app.add_subcommand("metrics", "List every metric with its unit and meaning");
  auto json = std::make_shared<bool>(false);
  auto markdown = std::make_shared<bool>(false);
  CLI::Option* json_flag = command->add_flag("--json", *json, "As JSON");
  command->add_flag("--markdown", *markdown, "As docs/metrics.md")->excludes(json_flag);
  command->callback([json, markdown] {
    fmt::print("{}", *json ? MetricsJson() : *markdown ? MetricsMarkdown() : MetricsTable());
  });
}

}  // namespace gpuassay
