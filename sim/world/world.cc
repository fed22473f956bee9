#include "sim/world/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "sim/engine/identifiers.h"
#include "sim/world/api_server.h"
#include "sim/world/kubelet.h"
#include "sim/world/names.h"
#include "sim/world/node_files.h"
#include "sim/world/proc_text.h"
#include "sim/world/root_directory.h"

namespace gpuassay::sim {
namespace {

bool Alive(const ScenarioProcFacts& facts, Duration t) { return facts.start <= t && t < facts.end; }

// Ids that no process of the scenario has: the second thread of a dead leader, or the leader that
// an orphan has lost.
class SpareIds {
 public:
  explicit SpareIds(const ScenarioWorld& world) {
    for (const ScenarioProcFacts& facts : world.processes) {
      taken_.insert(facts.pid);
    }
  }
  std::uint32_t After(std::uint32_t pid) {
    while (!taken_.insert(pid).second) {
      ++pid;
    }
    return pid;
  }

 private:
  std::set<std::uint32_t> taken_ = {1};
};

class WorldImpl final : public World {
 public:
  WorldImpl(const Scenario& scenario, std::filesystem::path directory, RootDirectory root)
      : scenario_(scenario), directory_(std::move(directory)), root_(std::move(root)) {
    SpareIds spare(scenario_.world);
    std::map<std::string, std::uint32_t> in_container;
    for (const ScenarioProcFacts& facts : scenario_.world.processes) {
      const ScenarioOwner& owner = facts.owner;
      ProcessContext context;
      if (facts.state == ScenarioProcessState::kDefunctLeader ||
          facts.state == ScenarioProcessState::kOrphan) {
        context.other_id = spare.After(facts.pid);
      }
      if (facts.other_pid_namespace) {
        context.pid_in_namespace =
            ++in_container[fmt::format("{}/{}/{}/{}", owner.namespace_name, owner.pod,
                                       owner.container, owner.runtime_container)];
      }
      contexts_.push_back(context);
    }
    CollectChanges();
  }
  ~WorldImpl() override {
    api_.reset();
    kubelet_.reset();
    std::error_code ignored;
    std::filesystem::remove(kubeconfig(), ignored);
    std::filesystem::remove_all(root_.path(), ignored);
    std::filesystem::remove_all(directory_ / "staging", ignored);
  }

  // What is the same at all times.
  Result<void> WriteBasics() {
    const Result<void> results[] = {root_.Write("etc/passwd", PasswdText(scenario_.world)),
                                    root_.Write("proc/stat", StatText(scenario_)),
                                    root_.AddProcess(1, FilesOfInit(), 0)};
    for (const Result<void>& result : results) {
      if (!result) {
        return result;
      }
    }
    return {};
  }

  Result<void> StartServers() {
    if (!scenario_.world.kubernetes) {
      return {};
    }
    Result<std::unique_ptr<Kubelet>> kubelet = Kubelet::Start(scenario_, pod_resources_socket());
    if (!kubelet) {
      return std::unexpected(kubelet.error());
    }
    kubelet_ = std::move(*kubelet);
    Result<std::unique_ptr<ApiServer>> api = ApiServer::Start(scenario_);
    if (!api) {
      return std::unexpected(api.error());
    }
    api_ = std::move(*api);
    std::ofstream file(kubeconfig());
    file << api_->Kubeconfig();
    file.close();
    if (!file) {
      return Fail(ErrorCode::kIo, fmt::format("{}: cannot be written", kubeconfig()));
    }
    return {};
  }

  void Update(Duration t) override {
    time_ = t;
    const auto next = changes_.upper_bound(t);
    if (next == next_change_ && updated_) {
      return;
    }
    next_change_ = next;
    updated_ = true;
    UpdateProcesses(t);
    NodeFiles files = NodeFilesAt(scenario_, t);
    if (root_.Change(files_, files)) {
      files_ = std::move(files);
    }
    if (kubelet_) {
      kubelet_->Update(t);
    }
    if (api_) {
      api_->Update(t);
    }
  }

  std::string root() const override { return root_.path(); }
  std::string pod_resources_socket() const override {
    return scenario_.world.kubernetes ? directory_ / "kubelet.sock" : "";
  }
  std::string kubeconfig() const override {
    return scenario_.world.kubernetes ? directory_ / "kubeconfig" : "";
  }

  std::vector<PoolReport> PoolReports() const override {
    std::vector<PoolReport> reports;
    for (const ScenarioProcFacts& facts : scenario_.world.processes) {
      if (!facts.pool_reserved_bytes || !Alive(facts, time_)) {
        continue;
      }
      for (const std::uint32_t gpu : facts.gpus) {
        PoolReport report;
        report.pid = facts.pid;
        report.device = DeviceUuid(scenario_, gpu, MigIndexOf(facts, gpu));
        report.reserved_bytes = static_cast<std::uint64_t>(*facts.pool_reserved_bytes);
        report.allocated_bytes = static_cast<std::uint64_t>(facts.pool_allocated_bytes.value_or(0));
        reports.push_back(report);
      }
    }
    return reports;
  }

 private:
  void CollectChanges() {
    const ScenarioWorld& world = scenario_.world;
    for (const ScenarioProcFacts& facts : world.processes) {
      changes_.insert({facts.start, facts.end});
    }
    for (const ScenarioPod& pod : world.pods) {
      const bool ends = pod.end < Duration::max() - kPodLogsStay;
      changes_.insert({pod.start, pod.end, ends ? pod.end + kPodLogsStay : Duration::max()});
    }
    for (const ScenarioRuntimeContainer& container : world.containers) {
      changes_.insert(container.end);
    }
    for (const std::vector<Window>* const windows :
         {&world.kubelet_down, &world.kubelet_absent, &world.api_forbidden, &world.api_down}) {
      for (const Window& window : *windows) {
        const bool ends = window.length < Duration::max() - window.at;
        changes_.insert({window.at, ends ? window.at + window.length : Duration::max()});
      }
    }
  }

  std::optional<std::uint32_t> MigIndexOf(const ScenarioProcFacts& facts, std::uint32_t gpu) const {
    for (const ScenarioProcess& process : scenario_.processes) {
      if (process.pid == facts.pid && process.start < facts.end && facts.start < process.end &&
          std::ranges::find(process.gpus, gpu) != process.gpus.end()) {
        return process.mig_index;
      }
    }
    return std::nullopt;
  }

  // First those that end: the PID may be another's now.
  void UpdateProcesses(Duration t) {
    const std::vector<ScenarioProcFacts>& all = scenario_.world.processes;
    std::erase_if(shown_, [&](std::size_t i) {
      return !Alive(all[i], t) && root_.RemoveProcess(all[i].pid).has_value();
    });
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (Alive(all[i], t) && !shown_.contains(i) &&
          root_
              .AddProcess(all[i].pid, FilesOf(scenario_, all[i], contexts_[i]),
                          contexts_[i].other_id)
              .has_value()) {
        shown_.insert(i);
      }
    }
  }

  Scenario scenario_;
  std::filesystem::path directory_;
  RootDirectory root_;
  std::vector<ProcessContext> contexts_;  // of world.processes
  std::set<std::size_t> shown_;           // of world.processes: in the root now
  std::set<Duration> changes_;            // when anything begins or ends
  std::set<Duration>::const_iterator next_change_;
  bool updated_ = false;
  Duration time_ = {};
  NodeFiles files_;  // in the root now
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<ApiServer> api_;
};

}  // namespace

Result<std::unique_ptr<World>> World::Start(const Scenario& scenario, std::string directory) {
  Result<RootDirectory> root = RootDirectory::Create(directory);
  if (!root) {
    return std::unexpected(root.error());
  }
  auto world = std::make_unique<WorldImpl>(scenario, directory, std::move(*root));
  if (const Result<void> written = world->WriteBasics(); !written) {
    return std::unexpected(written.error());
  }
  if (const Result<void> started = world->StartServers(); !started) {
    return std::unexpected(started.error());
  }
  world->Update({});
  return world;
}

}  // namespace gpuassay::sim
