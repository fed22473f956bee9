#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "cli/command.h"
#include "cli/footnotes.h"
#include "cli/moment_arguments.h"
#include "cli/options.h"
#include "cli/snapshot_table.h"
#include "cli/source_reading.h"
#include "model/snapshot_json.h"
#include "views/usage.h"

namespace gpuassay {
namespace {

struct SnapshotArguments {
  MomentArguments moment;
  std::optional<std::uint32_t> gpu;
  std::string by;  // empty: the GPUs themselves
  bool json = false;
};

Result<void> KeepOnly(std::uint32_t index, Snapshot& snapshot) {
  std::set<std::uint32_t> indices;
  for (const Gpu& gpu : snapshot.gpus) indices.insert(gpu.identity.index);
  if (!indices.contains(index)) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--gpu {}: there is no such GPU; there {}", index,
                            indices.empty() ? "are none" : "is " + Ranges(indices)));
  }
  std::erase_if(snapshot.gpus, [index](const Gpu& gpu) { return gpu.identity.index != index; });
  return {};
}

void PrintUsage(const Snapshot& snapshot, UsageBy by, bool json) {
  const Usage usage = MakeUsage(snapshot, by);
  fmt::print("{}{}", json ? UsageJson(usage, 2) : UsageText(usage), json ? "\n" : "");
}

Result<void> RunSnapshot(const SnapshotArguments& arguments) {
  const Result<MomentRequest> request = MakeMomentRequest(arguments.moment);
  if (!request) return std::unexpected(request.error());
  const std::optional<UsageBy> by = ParseUsageBy(arguments.by);
  if (!by && !arguments.by.empty()) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--by: '{}' is none of pod, process, job, user", arguments.by));
  }
  Result<Snapshot> snapshot = ReadMoment(*request);
  if (!snapshot) return std::unexpected(snapshot.error());
  if (arguments.gpu) {
    const Result<void> kept = KeepOnly(*arguments.gpu, *snapshot);
    if (!kept) return kept;
  }
  if (by) {
    PrintUsage(*snapshot, *by, arguments.json);
  } else if (arguments.json) {
    fmt::print("{}\n", SnapshotJson(*snapshot, 2));
  } else if (!snapshot->gpus.empty()) {
    fmt::print("{}", SnapshotTable(*snapshot, WantsColour(STDOUT_FILENO)));
  }
  const Result<void> was_read = CheckDriverWasRead(*snapshot);
  if (!was_read) return was_read;
  if (snapshot->gpus.empty() && !arguments.json) fmt::print("The driver knows no GPU.\n");
  return {};
}

}  // namespace

void AddSnapshotCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("snapshot", "Show the GPUs now: what nvidia-smi shows and what it hides");
  auto arguments = std::make_shared<SnapshotArguments>();
  AddMomentArguments(*command, arguments->moment);
  command->add_option("--gpu", arguments->gpu, "Only the GPU with this index");
  command->add_option("--by", arguments->by,
                      "Who uses the GPUs instead: by pod, process, job or user");
  command->add_flag("--json", arguments->json, "As JSON (docs/commands.md)");
  command->callback([arguments, &context] {
    SetLogLevel(LogLevel::kError);  // warnings of the source are in what is printed
    const Result<void> result = RunSnapshot(*arguments);
    if (!result) context.exit_code = ReportError("snapshot", result.error());
  });
}

}  // namespace gpuassay
