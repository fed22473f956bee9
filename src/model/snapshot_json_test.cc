#include "model/snapshot_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "model/catalogue.h"
#include "model/random_snapshot.h"

namespace gpuassay {
namespace {

using Json = nlohmann::ordered_json;

TEST(SnapshotJson, AnEmptySnapshotHasAllKeys) {
  EXPECT_EQ(SnapshotJson(Snapshot{}),
            R"({"time":"1970-01-01T00:00:00.000Z",)"
            R"("node":{"hostname":null,"driver_version":null,"nvml_version":null,)"
            R"("cuda_version":null},)"
            R"("sources":[],"gpus":[],"events":[],"capabilities_missing":[],)"
            R"("scheduler":null})");
}

TEST(SnapshotJson, AMissingNumberIsNullWithItsReasonBesideIt) {
  Snapshot snapshot;
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.readings.power_watts = 320.5;
  gpu.readings.memory_used_bytes = 85899345920.0;
  gpu.readings.sm_active_ratio = Missing::kNotSupported;
  const Json json = Json::parse(SnapshotJson(snapshot))["gpus"][0];
  EXPECT_EQ(json["power_watts"].dump(), "320.5");
  EXPECT_EQ(json["memory_used_bytes"].dump(), "85899345920");
  EXPECT_TRUE(json["sm_active_ratio"].is_null());
  EXPECT_EQ(json["missing"]["sm_active_ratio"], "not_supported");
  EXPECT_EQ(json["missing"]["temperature_celsius"], "never_sampled");
  EXPECT_FALSE(json["missing"].contains("power_watts"));
}

TEST(SnapshotJson, NothingMissingMeansNoMissingKey) {
  Snapshot snapshot;
  NvLink& link = snapshot.gpus.emplace_back().links.emplace_back(NvLink{17, {}});
  ForEachReading(link.readings, [](Reading& reading) { reading = 1.0; });
  const Json json = Json::parse(SnapshotJson(snapshot))["gpus"][0]["links"][0];
  EXPECT_EQ(json.dump(),
            R"({"link":17,"active":1,"transmit_bytes_per_second":1,"receive_bytes_per_second":1,)"
            R"("speed_bytes_per_second":1,"replay_errors_total":1,"recovery_errors_total":1,)"
            R"("crc_errors_total":1})");
}

TEST(SnapshotJson, ProcessesEventsAndXidsAreReadable) {
  Snapshot snapshot;
  snapshot.events.push_back(
      {WallTime(std::chrono::milliseconds(1767225600123)), EventKind::kXid, "GPU-1", 79, {}});
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.processes.push_back({4242, ProcessType::kComputeAndGraphics, 9, {}, "python", {}, {}, {}});
  gpu.xids.push_back({79, 2});
  const Json json = Json::parse(SnapshotJson(snapshot));
  EXPECT_EQ(json["events"].dump(),
            R"([{"time":"2026-01-01T00:00:00.123Z","kind":"xid","gpu_uuid":"GPU-1","data":79,)"
            R"("gpu_instance_id":null}])");
  EXPECT_EQ(json["gpus"][0]["xids"].dump(), R"([{"xid":79,"count":2}])");
  EXPECT_EQ(json["gpus"][0]["processes"][0]["type"], "compute+graphics");
  EXPECT_EQ(json["gpus"][0]["processes"][0]["gpu_instance_id"], 9);
}

// The JSON of one process of which only this is known.
Json ProcessJson(const std::optional<Duration>& start_after_boot, const ProcessOwner& owner) {
  Snapshot snapshot;
  GpuProcess& process = snapshot.gpus.emplace_back().processes.emplace_back();
  process.start_after_boot = start_after_boot;
  process.owner = owner;
  return Json::parse(SnapshotJson(snapshot))["gpus"][0]["processes"][0];
}

TEST(SnapshotJson, AnOwnerTellsAllThatIsKnown) {
  ProcessOwner owner;
  owner.container = {"4f5c", "main", "containerd"};
  owner.pod = {"team-a", "train-0", "0d5e5b4a"};
  owner.job = {"slurm", "4711_3", "batch"};
  owner.user = "al\"ice";
  owner.systemd_unit = "train.service";
  const Json process = ProcessJson(Duration(1'234'560'000), owner);
  EXPECT_EQ(process["start_after_boot_seconds"].dump(), "1234.56");
  EXPECT_EQ(process["owner"].dump(),
            R"({"container":{"id":"4f5c","name":"main","runtime":"containerd"},)"
            R"("pod":{"namespace":"team-a","name":"train-0","uid":"0d5e5b4a"},)"
            R"("job":{"kind":"slurm","id":"4711_3","step":"batch"},)"
            R"("user":"al\"ice","systemd_unit":"train.service"})");
}

TEST(SnapshotJson, AnOwnerHasNoKeyForWhatIsUnknown) {
  ProcessOwner owner;
  owner.container = {"4f5c", "", ""};
  owner.job.emplace();
  const Json process = ProcessJson({}, owner);
  EXPECT_EQ(process["owner"].dump(), R"({"container":{"id":"4f5c"}})");
  EXPECT_TRUE(process["start_after_boot_seconds"].is_null());
}

TEST(SnapshotJson, AProcessWhoseOwnerNobodyKnowsHasNoSuchKey) {
  EXPECT_FALSE(ProcessJson({}, {}).contains("owner"));
}

TEST(SnapshotJson, ASourcesReasonStandsOnlyBesideItsError) {
  Snapshot snapshot;
  snapshot.sources.push_back({"nvml", WallTime{}, "", Missing::kNeverSampled, {}});
  snapshot.sources.push_back({"nvml", {}, "call hangs", Missing::kTimedOut, {}});
  const Json json = Json::parse(SnapshotJson(snapshot))["sources"];
  EXPECT_TRUE(json[0]["reason"].is_null());
  EXPECT_EQ(json[0]["last_success"], "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(json[1]["reason"], "timed_out");
  EXPECT_TRUE(json[1]["last_success"].is_null());
}

TEST(SnapshotJson, BytesThatAreNoTextAreReplaced) {
  Snapshot snapshot;
  snapshot.node.hostname = "a\xff\"b";
  EXPECT_EQ(Json::parse(SnapshotJson(snapshot))["node"]["hostname"], "a\xEF\xBF\xBD\"b");
}

// A field called like a key of the identity would be lost.
TEST(SnapshotJson, EveryFieldOfTheCatalogueIsAKeyOfItsOwn) {
  RandomSnapshots random(3);
  Snapshot snapshot;
  while (snapshot.gpus.empty() || snapshot.gpus[0].mig.empty() ||
         snapshot.gpus[0].processes.empty() || snapshot.sources.empty()) {
    snapshot = random.Next();
  }
  const Json json = Json::parse(SnapshotJson(snapshot));
  const auto extra = [](const Json& object, MetricScope scope) {
    for (const MetricInfo& metric : MetricsOf(scope)) {
      EXPECT_TRUE(object.contains(std::string(metric.field))) << metric.field;
    }
    return object.size() - MetricsOf(scope).size();
  };
  EXPECT_EQ(extra(json["sources"][0], MetricScope::kSource),
            4u + json["sources"][0].contains("missing"));
  EXPECT_EQ(extra(json["gpus"][0], MetricScope::kGpu), 16u);
  EXPECT_EQ(extra(json["gpus"][0]["mig"][0], MetricScope::kMig), 6u);
  EXPECT_EQ(extra(json["gpus"][0]["processes"][0], MetricScope::kProcess),
            6u + json["gpus"][0]["processes"][0].contains("owner") +
                json["gpus"][0]["processes"][0].contains("missing"));
}

TEST(SnapshotJson, AHolderSaysWhatItsCleanUpInterrupts) {
  Snapshot snapshot;
  DeviceHolder& holder = snapshot.gpus.emplace_back().holders.emplace_back();
  holder.pid = 27341;
  holder.name = "python";
  holder.state = 'Z';
  holder.threads_alive = 2;
  holder.kind = HolderKind::kDefunctLeader;
  holder.owner.user = "alice";
  const Json json = Json::parse(SnapshotJson(snapshot));
  EXPECT_EQ(json["gpus"][0]["holders"][0].dump(),
            R"({"pid":27341,"parent_pid":0,"name":"python","state":"Z","threads_alive":2,)"
            R"("kind":"defunct_leader","clean_up":"end_process",)"
            R"("interrupts":"Interrupts this process and nothing else.",)"
            R"("start_after_boot_seconds":null,"owner":{"user":"alice"}})");
}

TEST(SnapshotJson, AnOwnersShareHasItsKindAndNumbers) {
  Snapshot snapshot;
  OwnerUsage& usage = snapshot.gpus.emplace_back().owners.emplace_back();
  usage.kind = OwnerKind::kContainer;
  usage.owner.pod = {"ml", "training-job-1", "0d5e5b4a"};
  usage.readings.memory_used_bytes = 4439670784.0;
  const Json json = Json::parse(SnapshotJson(snapshot))["gpus"][0]["owners"][0];
  EXPECT_EQ(json["kind"], "container");
  EXPECT_EQ(json["owner"]["pod"]["name"], "training-job-1");
  EXPECT_EQ(json["memory_used_bytes"], 4439670784);
  EXPECT_EQ(json["missing"]["sm_share_ratio"], "never_sampled");
}

TEST(SnapshotJson, TheSchedulersViewIsThere) {
  Snapshot snapshot;
  auto scheduler = std::make_shared<Scheduler>();
  Allocation& allocation = scheduler->allocations.emplace_back();
  allocation.unit = {"nvidia.com/gpu", "GPU-1::2", 2, "GPU-1", ""};
  allocation.owner.pod = {"ml", "a", ""};
  scheduler->pods.emplace_back().memory_request_bytes = 8589934592.0;
  snapshot.scheduler = scheduler;
  const Json json = Json::parse(SnapshotJson(snapshot))["scheduler"];
  EXPECT_EQ(json["allocations"][0].dump(),
            R"({"resource":"nvidia.com/gpu","device_id":"GPU-1::2","replica":2,)"
            R"("gpu_uuid":"GPU-1","mig_uuid":null,"scheduler":"kubernetes","claim":null,)"
            R"("owner":{"pod":{"namespace":"ml","name":"a"}}})");
  EXPECT_EQ(json["pods"][0]["memory_request_bytes"], 8589934592);
}

TEST(TimeText, IsRfc3339WithMilliseconds) {
  EXPECT_EQ(TimeText(WallTime(std::chrono::microseconds(1767312366007999))),
            "2026-01-02T00:06:06.007Z");
}

TEST(TimeText, ATimeOutsideTheCalendarIsANumber) {
  EXPECT_EQ(TimeText(WallTime(Duration(-5))), "-5 us");
  EXPECT_EQ(TimeText(WallTime(Duration::max())), "9223372036854775807 us");
}

}  // namespace
}  // namespace gpuassay
