// A world of a story in a directory of its own, for this folder's tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "base/root_fs.h"
#include "sim/world/world.h"

namespace gpuassay::sim {

class WorldAt {
 public:
  WorldAt(std::string_view yaml, Duration t) {
    const Result<Scenario> scenario = ParseScenario(yaml, "story.yaml");
    EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().what);
    Start(*scenario, t);
  }
  WorldAt(const Scenario& scenario, Duration t) { Start(scenario, t); }
  ~WorldAt() {
    world_.reset();
    EXPECT_TRUE(std::filesystem::is_empty(directory_));
    std::filesystem::remove_all(directory_);
  }
  WorldAt(const WorldAt&) = delete;
  WorldAt& operator=(const WorldAt&) = delete;

  World& world() { return *world_; }
  const std::string& directory() const { return directory_; }

  std::string Read(std::string_view path) const {
    const Result<std::string> text = RootFs::Open(world_->root())->Read(path);
    return text ? *text : "no " + std::string(path);
  }
  // Targets of the links of a directory, in the order of their names as numbers.
  std::string Links(std::string_view path) const {
    const RootFs root = *RootFs::Open(world_->root());
    Result<std::vector<std::string>> names = root.List(path);
    if (!names) {
      return "no " + std::string(path);
    }
    std::ranges::sort(*names, {}, [](const std::string& name) { return atoi(name.c_str()); });
    std::string targets;
    for (const std::string& name : *names) {
      targets += (targets.empty() ? "" : " ") + *root.ReadLink(fmt::format("{}/{}", path, name));
    }
    return targets;
  }

 private:
  void Start(const Scenario& scenario, Duration t) {
    directory_ = (std::filesystem::temp_directory_path() / "gpuassay-world-XXXXXX").string();
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    Result<std::unique_ptr<World>> world = World::Start(scenario, directory_);
    EXPECT_TRUE(world) << (world ? "" : world.error().what);
    world_ = std::move(*world);
    world_->Update(t);
  }

  std::string directory_;
  std::unique_ptr<World> world_;
};

}  // namespace gpuassay::sim
