// The stories of owners and sharing say what they are said to say: the numbers of the mission, as
// the simulated hardware shows them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/engine/test_engine.h"

namespace gpuassay::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// The mean of a process's samples over the last ten seconds.
double MeanOfSamples(const DeviceState& state, std::uint32_t pid) {
  double sum = 0;
  int count = 0;
  for (const ProcessUtilizationSample& sample : state.process_samples) {
    if (sample.pid == pid && sample.at > seconds(50)) {
      sum += sample.sm_percent;
      ++count;
    }
  }
  return count == 0 ? -1 : sum / count;
}

std::string Requests(const Scenario& scenario, std::string_view resource) {
  std::string text;
  for (const ScenarioPod& pod : scenario.world.pods) {
    for (const ScenarioRequest& request : pod.containers.at(0).requests) {
      if (request.resource == resource) {
        text += fmt::format("{} {}; ", pod.name, request.amount);
      }
    }
  }
  return text;
}

std::string Capacity(const Scenario& scenario) {
  std::string text;
  for (const ScenarioResource& resource : scenario.world.resources) {
    std::size_t held = 0;
    for (const ScenarioPod& pod : scenario.world.pods) {
      for (const ScenarioContainer& container : pod.containers) {
        held += static_cast<std::size_t>(
            std::ranges::count(container.devices, resource.name, &ScenarioDevice::resource));
      }
    }
    text +=
        fmt::format("{} {} of {}; ", resource.name, held, UnitsOf(scenario.gpus, resource).size());
  }
  return text;
}

const ScenarioProcFacts& Facts(const Scenario& scenario, std::uint32_t pid) {
  return *std::ranges::find(scenario.world.processes, pid, &ScenarioProcFacts::pid);
}

// M23: four replicas of one device, four utilisations that add up.
TEST(Stories, TimeSlicedReplicasHaveFourUtilizations) {
  Engine engine = Story("time-sliced-replicas");
  const DeviceState& state = At(engine, minutes(1));
  EXPECT_EQ(Capacity(engine.scenario()), "nvidia.com/gpu.shared 4 of 4; ");
  EXPECT_EQ(state.utilization_percent, 80U);
  EXPECT_NEAR(MeanOfSamples(state, 1101), 40, 0.5);
  EXPECT_NEAR(MeanOfSamples(state, 1102), 25, 0.5);
  EXPECT_NEAR(MeanOfSamples(state, 1103), 10, 0.5);
  EXPECT_NEAR(MeanOfSamples(state, 1104), 5, 0.5);
}

// M45: twelve processes, SM samples 45, 0, 67, 0, 23.
TEST(Stories, TwelveSharersHaveTheSamplesOfTheCase) {
  Engine engine = Story("twelve-sharers");
  EXPECT_EQ(At(engine, seconds(55)).processes.size(), 12U);
  std::string samples;
  for (int second = 55; second < 60; ++second) {
    const DeviceState& state = At(engine, seconds(second + 1));
    std::uint32_t sum = 0;
    std::uint32_t count = 0;
    std::uint32_t all = 0;
    for (const ProcessUtilizationSample& sample : state.process_samples) {
      if (sample.at == state.process_samples.back().at) {
        all += sample.sm_percent;
        sum += sample.pid == 1400 ? sample.sm_percent : 0;
        count += sample.pid == 1400 ? 1 : 0;
      }
    }
    samples += fmt::format("{} ", count == 0 ? 0 : sum / count);
    EXPECT_NEAR(all, state.utilization_percent, 1);
  }
  EXPECT_EQ(samples, "45 0 67 0 23 ");
}

// M28: units against devices, and which instance is the busy one.
TEST(Stories, OfMigHandOutTwoOneAndNone) {
  Engine engine = Story("mig-mixed-pods");
  EXPECT_EQ(Capacity(engine.scenario()),
            "nvidia.com/mig-1g.5gb 2 of 2; nvidia.com/mig-2g.10gb 1 of 1; "
            "nvidia.com/mig-3g.20gb 0 of 1; ");
  const DeviceState& state = At(engine, minutes(2));
  EXPECT_NEAR(state.mig[0].totals.graphics_engine / 120, 0.15, 1e-6);
  EXPECT_NEAR(state.mig[1].totals.graphics_engine / 120, 0.99, 1e-6);
  EXPECT_EQ(Facts(engine.scenario(), 31002).owner.pod, "slow-inference");
}

TEST(Stories, OfMigOnAnH100AreAt15And99Percent) {
  Engine engine = Story("mig-h100-pods");
  EXPECT_EQ(Capacity(engine.scenario()),
            "nvidia.com/mig-1g.10gb 2 of 2; nvidia.com/mig-2g.20gb 1 of 1; "
            "nvidia.com/mig-3g.40gb 0 of 1; ");
  const DeviceState& state = At(engine, minutes(2));
  EXPECT_NEAR(state.mig[0].totals.graphics_engine / 120, 0.15, 1e-6);
  EXPECT_NEAR(state.mig[1].totals.graphics_engine / 120, 0.99, 1e-6);
}

TEST(Stories, OfSixteenSlotsHaveFourDevices) {
  const Engine engine = Story("sixteen-slots-four-gpus");
  EXPECT_EQ(Capacity(engine.scenario()), "nvidia.com/gpu 5 of 16; ");
  EXPECT_EQ(engine.devices().size(), 4U);
}

// M25: 8192 MiB asked for, 4.00 GB reserved, 2.34 GB allocated.
TEST(Stories, OfThreeLevelsOfMemory) {
  Engine engine = Story("memory-three-levels");
  const DeviceState& state = At(engine, minutes(1));
  EXPECT_EQ(Requests(engine.scenario(), "nvidia.com/gpumem"), "bert-finetune 8192; ");
  EXPECT_EQ(state.memory_used_bytes, 4200 * kMiB);
  const ScenarioProcFacts& facts = Facts(engine.scenario(), 51234);
  EXPECT_EQ(facts.pool_reserved_bytes, 4.00e9);
  EXPECT_EQ(facts.pool_allocated_bytes, 2.34e9);
  EXPECT_LT(*facts.pool_reserved_bytes, static_cast<double>(state.memory_used_bytes));
}

// M82: 8192/2340, 8192/1890, 16384/4530, 4096/1200 MiB.
TEST(Stories, OfHamiAskForMoreThanTheyUse) {
  Engine engine = Story("hami-fractions");
  const DeviceState& state = At(engine, minutes(1));
  EXPECT_EQ(Requests(engine.scenario(), "nvidia.com/gpumem"), "a 8192; b 8192; c 16384; d 4096; ");
  EXPECT_EQ(Requests(engine.scenario(), "nvidia.com/gpu"), "a 1; b 1; c 1; d 1; ");
  std::string used;
  for (const ProcessState& process : state.processes) {
    used += fmt::format("{} ", process.memory_bytes / kMiB);
  }
  EXPECT_EQ(used, "2340 1890 4530 1200 ");
}

// M26: the pod deleted, the list empty, 4234 MiB used, <defunct> PID 27341.
TEST(Stories, OfADeletedPodKeepItsMemory) {
  for (const char* const name : {"orphan-memory-pod-deleted", "orphan-memory-no-holder"}) {
    Engine engine = Story(name);
    EXPECT_EQ(At(engine, seconds(29)).processes.size(), 1U) << name;
    EXPECT_EQ(At(engine, seconds(29)).memory_used_bytes, 4234 * kMiB) << name;
    EXPECT_EQ(At(engine, seconds(60)).processes.size(), 0U) << name;
    EXPECT_EQ(At(engine, seconds(60)).memory_used_bytes, 4234 * kMiB) << name;
    EXPECT_EQ(engine.scenario().world.pods.at(0).end, seconds(40)) << name;
  }
  const Engine engine = Story("orphan-memory-pod-deleted");
  const ScenarioProcFacts& last = engine.scenario().world.processes.back();
  EXPECT_EQ(last.pid, 27341U);
  EXPECT_EQ(last.state, ScenarioProcessState::kDefunctLeader);
  EXPECT_EQ(last.end, kForever);
}

TEST(Stories, OfHoldersHaveOneForEachGpu) {
  Engine engine = Story("orphan-memory-holders");
  engine.AdvanceTo(seconds(10));
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    EXPECT_EQ(engine.devices()[gpu].memory_used_bytes, (2000 + 1000 * gpu) * kMiB);
    EXPECT_EQ(engine.devices()[gpu].processes.size(), 0U);
    EXPECT_EQ(engine.scenario().world.processes.at(gpu).gpus,
              std::vector{static_cast<std::uint32_t>(gpu)});
  }
}

TEST(Stories, OfMpsAddUp) {
  Engine engine = Story("mps-sharing");
  const DeviceState& state = At(engine, minutes(1));
  EXPECT_EQ(Capacity(engine.scenario()), "nvidia.com/gpu.shared 3 of 10; ");
  EXPECT_EQ(std::ranges::count(state.processes, ScenarioProcessType::kMps, &ProcessState::type), 3);
  EXPECT_EQ(state.memory_used_bytes, 6030 * kMiB);
  EXPECT_NEAR(state.totals.sm_active / state.totals.seconds, 0.9, 1e-6);
  EXPECT_NEAR(MeanOfSamples(state, 4101), 40, 0.5);
  EXPECT_NEAR(MeanOfSamples(state, 4103), 20, 0.5);
}

TEST(Stories, OfUnrequestedUseHaveTwoWhoWereGivenNothing) {
  const Engine engine = Story("unrequested-gpu-use");
  const Scenario& scenario = engine.scenario();
  EXPECT_EQ(Requests(scenario, "nvidia.com/gpu"), "proper 1; holder 1; ");
  EXPECT_EQ(Facts(scenario, 2002).owner.pod, "freeloader");
  EXPECT_EQ(Facts(scenario, 2003).owner.unit, "session-3.scope");
}

TEST(Stories, OfSlurmHaveStepsAndAnArray) {
  const Engine engine = Story("slurm-and-docker");
  const Scenario& scenario = engine.scenario();
  EXPECT_FALSE(scenario.world.kubernetes);
  EXPECT_EQ(Facts(scenario, 5001).owner.step, "0");
  EXPECT_EQ(Facts(scenario, 5001).owner.user, "alice");
  EXPECT_EQ(scenario.world.jobs.at(1).array, "4712_1");
  EXPECT_EQ(Facts(scenario, 5003).owner.runtime_container, "jupyter");
}

TEST(Stories, OfADegradedNodeLeaveNoTimeWithTwoTroubles) {
  const Engine engine = Story("degraded-kubernetes");
  const ScenarioWorld& world = engine.scenario().world;
  EXPECT_EQ(world.api_forbidden.at(0).at, seconds(20));
  EXPECT_EQ(world.kubelet_down.at(0).at, seconds(40));
  EXPECT_EQ(world.kubelet_absent.at(0).at, seconds(60));
  EXPECT_EQ(world.api_down.at(0).at + world.api_down.at(0).length, seconds(100));
}

// Everybody in the stories of the demo and the benchmarks has an owner, on a device it was given.
TEST(Stories, OfTheDemoAndTheBenchmarksGiveEveryProcessItsPod) {
  const std::map<std::string, std::size_t> processes = {
      {"demo", 8}, {"bench-8x64", 64}, {"bench-8x500", 500}, {"t4-three-processes", 3}};
  for (const auto& [name, count] : processes) {
    const Engine engine = Story(name);
    const ScenarioWorld& world = engine.scenario().world;
    EXPECT_EQ(engine.scenario().processes.size(), count) << name;
    EXPECT_EQ(world.processes.size(), count) << name;
    for (const ScenarioProcFacts& facts : world.processes) {
      const auto pod = std::ranges::find_if(world.pods, [&](const ScenarioPod& candidate) {
        return candidate.name == facts.owner.pod &&
               candidate.namespace_name == facts.owner.namespace_name;
      });
      ASSERT_NE(pod, world.pods.end()) << name << " " << facts.pid;
      for (const std::uint32_t gpu : facts.gpus) {
        EXPECT_TRUE(
            std::ranges::any_of(pod->containers.at(0).devices,
                                [&](const ScenarioDevice& device) { return device.gpu == gpu; }))
            << name << " " << facts.pid;
      }
    }
  }
}

}  // namespace
}  // namespace gpuassay::sim
