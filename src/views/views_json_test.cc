#include "views/views_json.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace gpuassay {
namespace {

using Json = nlohmann::json;

// One GPU with one instance, handed out as two replicas, one of them to ml/train-0.
Snapshot SharedInstance() {
  Snapshot snapshot;
  Gpu gpu;
  gpu.identity.uuid = "GPU-1";
  MigInstance mig;
  mig.identity = {0, 7, 0, "MIG-1", "1g.10gb"};
  mig.readings.memory_used_bytes = 1048576;
  mig.readings.sm_active_ratio = 0.25;
  gpu.mig.push_back(mig);
  snapshot.gpus.push_back(gpu);
  Scheduler scheduler;
  const std::string resource = "nvidia.com/mig-1g.10gb";
  scheduler.allocatable = {{resource, "MIG-1::0", 0, "GPU-1", "MIG-1"},
                           {resource, "MIG-1::1", 1, "GPU-1", "MIG-1"}};
  Allocation one;
  one.unit = scheduler.allocatable[1];
  one.owner.pod = {"ml", "train-0", "uid-1"};
  scheduler.allocations.push_back(one);
  snapshot.scheduler = std::make_shared<const Scheduler>(scheduler);
  return snapshot;
}

TEST(ViewsJson, FindsTheInstanceOfAPodAndThePodOfAnInstance) {
  const Json json = Json::parse(ViewsJson(SharedInstance()));
  ASSERT_EQ(json["pods"].size(), 1U);
  EXPECT_EQ(json["pods"][0]["name"], "train-0");
  EXPECT_EQ(json["pods"][0]["units"][0]["mig_uuid"], "MIG-1");
  ASSERT_EQ(json["devices"].size(), 1U);
  EXPECT_EQ(json["devices"][0]["mig_uuid"], "MIG-1");
  const Json& allocation = json["devices"][0]["scheduler"]["allocations"][0];
  EXPECT_EQ(allocation["pod"], "ml/train-0");
  EXPECT_EQ(allocation["replica"], 1);
}

TEST(ViewsJson, CountsReplicasAgainstDevices) {
  const Json json = Json::parse(ViewsJson(SharedInstance()));
  const Json expected = {
      {"resource", "nvidia.com/mig-1g.10gb"}, {"units", 2}, {"allocated", 1}, {"devices", 1}};
  EXPECT_EQ(json["resources"][0], expected);
}

TEST(ViewsJson, AnUnknownNumberIsNullWithItsReason) {
  const Json json = Json::parse(ViewsJson(SharedInstance()));
  const Json& hardware = json["devices"][0]["hardware"];
  EXPECT_EQ(hardware["memory_used_bytes"], 1048576);
  EXPECT_EQ(hardware["sm_active_ratio"], 0.25);
  EXPECT_TRUE(hardware["memory_total_bytes"].is_null());
  EXPECT_EQ(hardware["missing"]["memory_total_bytes"], "never_sampled");
  EXPECT_FALSE(hardware["missing"].contains("memory_used_bytes"));
}

TEST(ViewsJson, EachDisagreementHasItsKindAndLine) {
  const Json json = Json::parse(ViewsJson(SharedInstance()));
  const Json& found = json["devices"][0]["disagreements"];
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0]["kind"], "held_without_process");
  EXPECT_EQ(found[0]["text"],
            "ml/train-0 was given GPU 0 MIG 0 (1g.10gb) and has no process on it");
  EXPECT_EQ(found[0]["pod"], "ml/train-0");
  EXPECT_EQ(found[1]["kind"], "units_are_one_device");
  // A quarter busy, and nothing is listed.
  EXPECT_EQ(found[2]["kind"], "busy_without_process");
  EXPECT_EQ(json["pods"][0]["disagreements"].size(), 1U);
}

TEST(ViewsJson, ReplacesBytesThatAreNoText) {
  Snapshot snapshot;
  snapshot.node.hostname = "a\xff";
  EXPECT_EQ(Json::parse(ViewsJson(snapshot))["hostname"], "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace gpuassay
