// How devices and their units are called, in each form.
#include "sim/engine/identifiers.h"

#include <gtest/gtest.h>

namespace gpuassay::sim {
namespace {

Scenario Story(std::string_view driver, std::string_view ids) {
  const Result<Scenario> scenario = ParseScenario(
      "driver: " + std::string(driver) +
          "\ngpus: [{model: t4, uuid: GPU-0a0b0c0d-0000-1111-2222-333344445555},\n"
          "  {model: a100-sxm4-40gb, uuid: GPU-1a0b0c0d-0000-1111-2222-333344445555,\n"
          "   mig: [1g.5gb, 3g.20gb]}]\n"
          "kubernetes: {resources: [{name: nvidia.com/gpu, gpus: 0, replicas: 2, ids: " +
          std::string(ids) + "}, {name: nvidia.com/mig-3g.20gb, gpus: 1, mig: 3g.20gb, ids: " +
          std::string(ids) + "}]}\n",
      "story.yaml");
  EXPECT_TRUE(scenario) << scenario.error().what;
  return *scenario;
}

std::vector<std::string> Units(const Scenario& scenario, std::size_t resource) {
  std::vector<std::string> ids;
  for (const ScenarioDevice& unit : UnitsOf(scenario.gpus, scenario.world.resources.at(resource))) {
    ids.push_back(UnitId(scenario, scenario.world.resources[resource], unit));
  }
  return ids;
}

TEST(Identifiers, OfUnitsAreUuidsAndReplicasHaveTheirNumber) {
  const Scenario scenario = Story("570.86.15", "uuid");
  EXPECT_EQ(Units(scenario, 0),
            (std::vector<std::string>{"GPU-0a0b0c0d-0000-1111-2222-333344445555::0",
                                      "GPU-0a0b0c0d-0000-1111-2222-333344445555::1"}));
  EXPECT_EQ(Units(scenario, 1), std::vector<std::string>{MigUuid(scenario, 1, 1, 0)});
  EXPECT_EQ(MigUuid(scenario, 1, 1, 0).substr(0, 4), "MIG-");
  EXPECT_NE(MigUuid(scenario, 1, 1, 0), MigUuid(scenario, 1, 1, 1));
  EXPECT_NE(MigUuid(scenario, 1, 1, 0), MigUuid(scenario, 1, 0, 0));
}

TEST(Identifiers, OfAResourceWithoutGpusAreOfAllThatFit) {
  const Scenario scenario = *ParseScenario(
      "gpus: [{model: t4}, {model: a100-sxm4-40gb, mig: [1g.5gb, 3g.20gb]}, {model: t4}]\n"
      "kubernetes: {resources: [{name: nvidia.com/gpu}, {name: nvidia.com/mig-1g.5gb, mig: "
      "1g.5gb}]}\n",
      "story.yaml");
  EXPECT_EQ(Units(scenario, 0),
            (std::vector<std::string>{GpuUuid(scenario, 0), GpuUuid(scenario, 2)}));
  EXPECT_EQ(Units(scenario, 1), std::vector<std::string>{MigUuid(scenario, 1, 0, 0)});
}

TEST(Identifiers, OfAnOldDriverNameTheParent) {
  EXPECT_EQ(Units(Story("460.32.03", "uuid"), 1),
            std::vector<std::string>{"MIG-GPU-1a0b0c0d-0000-1111-2222-333344445555/1/0"});
}

TEST(Identifiers, OfGkeAreDeviceFiles) {
  const Scenario scenario = Story("570.86.15", "gke");
  EXPECT_EQ(Units(scenario, 0), (std::vector<std::string>{"nvidia0/vgpu0", "nvidia0/vgpu1"}));
  EXPECT_EQ(Units(scenario, 1), std::vector<std::string>{"nvidia1/gi1"});
}

}  // namespace
}  // namespace gpuassay::sim
