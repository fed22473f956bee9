#include "agent/simulated_node.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "sim/scenario/scenario.h"

namespace gpuassay {
namespace {

std::vector<Duration> ChangeTimes(const sim::ScenarioWorld& world) {
  std::vector<Duration> times;
  const auto add = [&times](Duration from, Duration to) {
    times.push_back(from);
    times.push_back(to);
  };
  for (const sim::ScenarioPod& pod : world.pods) add(pod.start, pod.end);
  for (const sim::ScenarioRuntimeContainer& container : world.containers) add({}, container.end);
  for (const sim::ScenarioProcFacts& process : world.processes) add(process.start, process.end);
  for (const std::vector<sim::Window>* const windows :
       {&world.kubelet_down, &world.kubelet_absent, &world.api_forbidden, &world.api_down}) {
    for (const sim::Window& window : *windows) {
      const bool ends = window.length < Duration::max() - window.at;
      add(window.at, ends ? window.at + window.length : Duration::max());
    }
  }
  std::ranges::sort(times);
  const auto rest = std::ranges::unique(times);
  times.erase(rest.begin(), rest.end());
  return times;
}

// Thousands of small files: in memory where there is such a file system.
Result<std::string> MakeDirectory() {
  const char* const place = std::getenv("TMPDIR");
  const char* const usual = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  std::string path = place != nullptr && *place != '\0' ? place : usual;
  path += "/gpuassay-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Fail(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return path;
}

}  // namespace

SimulatedNode::SimulatedNode(std::string directory, const sim::Scenario& scenario)
    : directory_(std::move(directory)),
      hostname_(scenario.hostname),
      changes_(ChangeTimes(scenario.world)) {}

SimulatedNode::~SimulatedNode() {
  world_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Result<std::unique_ptr<SimulatedNode>> SimulatedNode::Start(const std::string& scenario_file) {
  const Result<sim::Scenario> scenario = sim::LoadScenario(scenario_file);
  if (!scenario) return Fail(ErrorCode::kMalformed, scenario.error().what);
  if (!scenario->world.present) return nullptr;
  Result<std::string> directory = MakeDirectory();
  if (!directory) return std::unexpected(directory.error());
  std::unique_ptr<SimulatedNode> node(new SimulatedNode(std::move(*directory), *scenario));
  Result<std::unique_ptr<sim::World>> world = sim::World::Start(*scenario, node->directory_);
  if (!world) return std::unexpected(world.error());
  node->world_ = std::move(*world);
  return node;
}

bool SimulatedNode::MoveTo(Duration t) {
  world_->Update(t);
  const std::ptrdiff_t past = std::ranges::upper_bound(changes_, t) - changes_.begin();
  return std::exchange(changes_past_, past) != past;
}

void SimulatedNode::Report(SteadyTime now, MemoryReports& reports) const {
  std::unordered_map<std::uint32_t, std::vector<MemoryReport>> by_pid;
  for (const sim::PoolReport& report : world_->PoolReports()) {
    by_pid[report.pid].push_back({report.device, report.reserved_bytes, report.allocated_bytes});
  }
  for (auto& [pid, list] : by_pid) reports.Set(pid, std::move(list), now);
}

}  // namespace gpuassay
