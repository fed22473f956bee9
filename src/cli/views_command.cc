#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/log.h"
#include "cli/command.h"
#include "cli/moment_arguments.h"
#include "cli/options.h"
#include "views/views.h"
#include "views/views_json.h"
#include "views/views_text.h"

namespace gpuassay {
namespace {

struct ViewsArguments {
  MomentArguments moment;
  bool json = false;
};

Result<void> RunViews(const ViewsArguments& arguments) {
  const Result<MomentRequest> request = MakeMomentRequest(arguments.moment);
  if (!request) return std::unexpected(request.error());
  const Result<Snapshot> snapshot = ReadMoment(*request);
  if (!snapshot) return std::unexpected(snapshot.error());
  const Views views = MakeViews(*snapshot);
  if (arguments.json) {
    fmt::print("{}\n", ViewsJson(views, 2));
  } else {
    fmt::print("{}", ViewsText(views, WantsColour(STDOUT_FILENO)));
  }
  return CheckDriverWasRead(*snapshot);
}

}  // namespace

void AddViewsCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "views", "Hardware, scheduler and processes side by side, and where they disagree");
  auto arguments = std::make_shared<ViewsArguments>();
  AddMomentArguments(*command, arguments->moment);
  command->add_flag("--json", arguments->json, "As JSON, as /api/v1/views");
  command->callback([arguments, &context] {
    SetLogLevel(LogLevel::kError);  // warnings of the source are in what is printed
    const Result<void> result = RunViews(*arguments);
    if (!result) context.exit_code = ReportError("views", result.error());
  });
}

}  // namespace gpuassay
