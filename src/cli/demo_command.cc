#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "agent/agent.h"
#include "cli/agent_arguments.h"
#include "cli/command.h"
#include "cli/scenario_files.h"
#include "sim/scenario/scenario.h"

namespace gpuassay {
namespace {

constexpr std::uint16_t kUsualPort = 9400;

// {url} is filled in by the agent once it listens.
constexpr const char* kGreeting = R"(
gpuassay demo: {title}
{story}

  {{url}}/                 what there is to see
  {{url}}/metrics          gpuassay_* and DCGM_FI_* metrics
  {{url}}/api/v1/snapshot  everything known about this moment, as JSON

  Try:  curl -s {{url}}/metrics | grep -E '^(gpuassay_gpu_(utilization|sm_active|tensor_active)_ratio|DCGM_FI_DEV_GPU_UTIL)'
        {program} snapshot --source simulator={scenario}

Ctrl-C ends it.

)";

bool UsualPortIsFree() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kUsualPort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

// So that the example can be pasted, wherever the program lies.
std::string ThisProgram() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? "gpuassay" : program.string();
}

// Braces of free text must survive the second formatting.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '{' || c == '}') out += c;
  }
  return out;
}

Result<void> RunDemo(const std::string& name, AgentArguments arguments) {
  const Result<std::string> path = FindScenario(name);
  if (!path) return std::unexpected(path.error());
  const Result<sim::Scenario> scenario = sim::LoadScenario(*path);
  if (!scenario) return Fail(ErrorCode::kMalformed, scenario.error().what);
  if (arguments.address.empty()) {
    arguments.address = UsualPortIsFree() ? fmt::format("127.0.0.1:{}", kUsualPort) : "127.0.0.1:0";
  }
  arguments.source = "simulator=" + *path;
  if (arguments.hostname.empty()) arguments.hostname = scenario->hostname;
  Result<AgentOptions> options = MakeAgentOptions(arguments);
  if (!options) return std::unexpected(options.error());
  options->greeting = fmt::format(kGreeting, fmt::arg("title", Escaped(scenario->name)),
                                  fmt::arg("story", Escaped(scenario->description)),
                                  fmt::arg("program", Escaped(ThisProgram())),
                                  fmt::arg("scenario", Escaped(*path)));
  return RunAgent(std::move(*options));
}

}  // namespace

void AddDemoCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("demo", "Show the product on simulated GPUs");
  auto arguments = std::make_shared<AgentArguments>();
  auto scenario = std::make_shared<std::string>("demo");
  arguments->address.clear();
  arguments->log_level = "warning";
  AddAgentArguments(*command, *arguments);
  command->get_option("--address")
      ->default_str(fmt::format("127.0.0.1:{} or a free port", kUsualPort));
  command->add_option("SCENARIO", *scenario, "A scenario file or the name of one that comes along")
      ->capture_default_str();
  command->callback([arguments, scenario, &context] {
    const Result<void> result = RunDemo(*scenario, *arguments);
    if (!result) context.exit_code = ReportError("demo", result.error());
  });
}

}  // namespace gpuassay
