#include "sim/device_plugin/advertised.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuassay::sim {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

constexpr char kNode[] = R"(
gpus:
  - {model: a100-sxm4-40gb, uuid: GPU-00000000-0000-0000-0000-000000000000}
  - {model: a100-sxm4-40gb, uuid: GPU-11111111-1111-1111-1111-111111111111}
  - {model: a100-sxm4-40gb, mig: [1g.5gb, 2g.10gb, 1g.5gb]}
kubernetes:
  resources:
    - {name: nvidia.com/gpu, gpus: [0]}
    - {name: nvidia.com/gpu.shared, gpus: [1], replicas: 2}
    - {name: nvidia.com/mig-1g.5gb, gpus: [2], mig: 1g.5gb}
)";

std::vector<AdvertisedResource> Resources(std::string_view yaml) {
  const Result<Scenario> scenario = ParseScenario(yaml, "s.yaml");
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().what);
  return scenario ? Advertised(*scenario) : std::vector<AdvertisedResource>{};
}

TEST(Advertised, EachResourceHasItsUnits) {
  const std::vector<AdvertisedResource> resources = Resources(kNode);
  ASSERT_EQ(resources.size(), 3U);
  EXPECT_EQ(resources[0].name, "nvidia.com/gpu");
  EXPECT_THAT(resources[0].ids, ElementsAre("GPU-00000000-0000-0000-0000-000000000000"));
  EXPECT_EQ(resources[1].name, "nvidia.com/gpu.shared");
  EXPECT_THAT(resources[1].ids, ElementsAre("GPU-11111111-1111-1111-1111-111111111111::0",
                                            "GPU-11111111-1111-1111-1111-111111111111::1"));
  EXPECT_EQ(resources[2].name, "nvidia.com/mig-1g.5gb");
  EXPECT_THAT(resources[2].ids, ElementsAre(StartsWith("MIG-"), StartsWith("MIG-")));
  EXPECT_NE(resources[2].ids[0], resources[2].ids[1]);
  EXPECT_NE(resources[0].socket, resources[1].socket);
  EXPECT_THAT(resources[0].socket, EndsWith(".sock"));
}

TEST(Advertised, ANodeWithoutKubernetesHasNothing) {
  EXPECT_TRUE(Resources("gpus: [{model: t4}]").empty());
}

TEST(Advertised, ReplicasOfOneDeviceAreVisibleAsThatDeviceOnce) {
  const std::vector<AdvertisedResource> resources = Resources(kNode);
  EXPECT_EQ(VisibleDevices(resources[1], {"GPU-11111111-1111-1111-1111-111111111111::1",
                                          "GPU-11111111-1111-1111-1111-111111111111::0"}),
            "GPU-11111111-1111-1111-1111-111111111111");
  EXPECT_EQ(VisibleDevices(resources[2], {resources[2].ids[1], resources[2].ids[0]}),
            resources[2].ids[1] + "," + resources[2].ids[0]);
}

TEST(Advertised, IdsThatNobodyAdvertisedAreNotVisible) {
  EXPECT_EQ(VisibleDevices(Resources(kNode)[0], {"GPU-99999999"}), "");
}

}  // namespace
}  // namespace gpuassay::sim
