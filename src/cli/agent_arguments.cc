#include "cli/agent_arguments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/duration.h"
#include "base/log.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Below this the driver's samplers have nothing new and GPM has no interval (100 ms).
constexpr Duration kIntervalMin = milliseconds(100);
constexpr Duration kIntervalMax = std::chrono::minutes(5);
constexpr Duration kHangAfterMin = seconds(3);
constexpr Duration kReplaceAfterMin = seconds(20);

Result<Duration> Argument(const char* name, const std::string& text, Duration bare_unit) {
  const Result<Duration> duration = ParseDuration(text, bare_unit);
  if (duration) return *duration;
  return Fail(ErrorCode::kMalformed, fmt::format("{}: {}", name, duration.error().what));
}

// dcgm-exporter's --collect-interval is in milliseconds, so a bare number is.
Result<Duration> Interval(const std::string& text) {
  const Result<Duration> interval = Argument("--collect-interval", text, milliseconds(1));
  if (interval && (*interval < kIntervalMin || *interval > kIntervalMax)) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--collect-interval: '{}' is not between {} and {}", text,
                            FormatDuration(kIntervalMin), FormatDuration(kIntervalMax)));
  }
  return interval;
}

std::string Hostname(const std::string& given) {
  if (!given.empty()) return given;
  // What Kubernetes calls the node, by way of the downward API.
  if (const char* node = std::getenv("NODE_NAME"); node != nullptr && *node != '\0') return node;
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

Result<LogLevel> ParseLogLevel(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, LogLevel>, 4> kLevels = {
      {{"error", LogLevel::kError},
       {"warning", LogLevel::kWarning},
       {"info", LogLevel::kInfo},
       {"debug", LogLevel::kDebug}}};
  for (const auto& [name, level] : kLevels) {
    if (name == text) return level;
  }
  return Fail(ErrorCode::kMalformed,
              fmt::format("--log-level: '{}' is none of error, warning, info, debug", text));
}

Result<void> SetTimes(const AgentArguments& arguments, SupervisorOptions& options) {
  const Duration interval = options.worker.interval;
  WorkerPolicyOptions& policy = options.policy;
  policy.hang_after = std::max(kHangAfterMin, 3 * interval);
  if (!arguments.hang_after.empty()) {
    const Result<Duration> after = Argument("--hang-after", arguments.hang_after, seconds(1));
    if (!after) return std::unexpected(after.error());
    policy.hang_after = *after;
  }
  policy.replace_after = std::max(kReplaceAfterMin, 2 * policy.hang_after);
  if (!arguments.replace_after.empty()) {
    const Result<Duration> after = Argument("--replace-after", arguments.replace_after, seconds(1));
    if (!after) return std::unexpected(after.error());
    policy.replace_after = *after;
  }
  if (policy.hang_after <= interval || policy.replace_after < policy.hang_after) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--hang-after {} must be longer than --collect-interval {} and not "
                            "longer than --replace-after {}",
                            FormatDuration(policy.hang_after), FormatDuration(interval),
                            FormatDuration(policy.replace_after)));
  }
  const Result<Duration> stale = Argument("--stale-after", arguments.stale_after, seconds(1));
  if (!stale) return std::unexpected(stale.error());
  options.stale_after = *stale;
  return {};
}

}  // namespace

void AddAgentArguments(CLI::App& command, AgentArguments& a) {
  command.add_option("-a,--address", a.address, "[HOST]:PORT to serve on")->capture_default_str();
  command
      .add_option("-c,--collect-interval", a.collect_interval,
                  "Time between readings; a bare number is in milliseconds")
      ->capture_default_str();
  command
      .add_option("--dcgm-names", a.dcgm_names,
                  "Also export dcgm-exporter's names and units as of 4.8 or 4.9, or off")
      ->capture_default_str();
  command.add_option("--hostname", a.hostname, "Name of this node (NODE_NAME, else the machine's)");
  command.add_option("--port-file", a.port_file, "Write the port here once the server listens");
  command.add_option("--hang-after", a.hang_after,
                     "No reading for this long: not ready (three intervals, at least 3s)");
  command.add_option("--replace-after", a.replace_after,
                     "Hanging for this long: try another driver worker (20s)");
  command.add_option("--stale-after", a.stale_after, "Values older than this are not shown")
      ->capture_default_str();
  command.add_option("--log-level", a.log_level, "error, warning, info or debug")
      ->capture_default_str();
  command.add_option("--simulator-speed", a.simulator_speed, "Simulated seconds per second")
      ->check(CLI::Range(0.001, 10000.0))
      ->capture_default_str();
  command.add_option("--report-socket", a.report_socket,
                     "Listen here for what jobs report of their memory pools");
  AddNodeArguments(command, a.node);
}

Result<AgentOptions> MakeAgentOptions(const AgentArguments& arguments) {
  const Result<SourceSpec> source = ParseSourceSpec(arguments.source);
  if (!source) return std::unexpected(source.error());
  const Result<Duration> interval = Interval(arguments.collect_interval);
  if (!interval) return std::unexpected(interval.error());
  const Result<LogLevel> level = ParseLogLevel(arguments.log_level);
  if (!level) return std::unexpected(level.error());
  const std::optional<DcgmNames> dcgm = ParseDcgmNames(arguments.dcgm_names);
  if (!dcgm) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("--dcgm-names: '{}' is none of 4.8, 4.9, off", arguments.dcgm_names));
  }
  Result<NodeOptions> node = MakeNodeOptions(arguments.node);
  if (!node) return std::unexpected(node.error());
  SetLogLevel(*level);
  AgentOptions options;
  options.node = std::move(*node);
  options.node.report_socket = arguments.report_socket;
  options.supervisor.program = "/proc/self/exe";
  options.supervisor.worker.source = *source;
  options.supervisor.worker.interval = *interval;
  options.supervisor.worker.simulator_speed = arguments.simulator_speed;
  options.supervisor.worker.hostname = Hostname(arguments.hostname);
  const Result<void> times = SetTimes(arguments, options.supervisor);
  if (!times) return std::unexpected(times.error());
  options.server.address = arguments.address;
  options.server.exposition.dcgm = *dcgm;
  options.port_file = arguments.port_file;
  return options;
}

}  // namespace gpuassay
