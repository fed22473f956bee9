#include "model/snapshot_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "model/catalogue.h"
#include "model/random_snapshot.h"

namespace gpuassay {
namespace {

std::string Encoded(const Snapshot& snapshot) {
  std::string bytes;
  EncodeSnapshot(snapshot, bytes);
  return bytes;
}

Snapshot OneGpu() {
  Snapshot snapshot;
  snapshot.time = WallTime(std::chrono::seconds(1767225600));
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.identity.uuid = "GPU-1";
  gpu.readings.power_watts = 320.5;
  gpu.readings.sm_active_ratio = Missing::kNotSupported;
  return snapshot;
}

// Position of the five field counts: behind the version byte.
constexpr std::size_t kGpuFieldsAt = 1;

TEST(SnapshotCodec, ReadsBackWhatItWrote) {
  const auto snapshot = DecodeSnapshot(Encoded(OneGpu()));
  ASSERT_TRUE(snapshot) << snapshot.error().what;
  EXPECT_EQ(snapshot->time, WallTime(std::chrono::seconds(1767225600)));
  ASSERT_EQ(snapshot->gpus.size(), 1u);
  EXPECT_EQ(snapshot->gpus[0].identity.uuid, "GPU-1");
  EXPECT_EQ(snapshot->gpus[0].identity.minor_number, std::nullopt);
  EXPECT_EQ(snapshot->gpus[0].readings.power_watts, Reading(320.5));
  EXPECT_EQ(snapshot->gpus[0].readings.sm_active_ratio, Reading(Missing::kNotSupported));
}

// The encoding is canonical, so equal bytes mean equal snapshots; single members are compared above
// and below.
TEST(SnapshotCodec, RoundTripsTwoHundredRandomSnapshots) {
  RandomSnapshots random(20260101);
  for (int i = 0; i < 200; ++i) {
    const Snapshot snapshot = random.Next();
    const std::string bytes = Encoded(snapshot);
    const auto decoded = DecodeSnapshot(bytes);
    ASSERT_TRUE(decoded) << decoded.error().what;
    ASSERT_EQ(Encoded(*decoded), bytes);
    ASSERT_EQ(decoded->gpus.size(), snapshot.gpus.size());
    for (std::size_t g = 0; g < snapshot.gpus.size(); ++g) {
      const auto members = Members(&snapshot.gpus[g].readings);
      for (const auto member : members) {
        ASSERT_EQ(decoded->gpus[g].readings.*member, snapshot.gpus[g].readings.*member);
      }
      ASSERT_EQ(decoded->gpus[g].processes.size(), snapshot.gpus[g].processes.size());
      for (std::size_t p = 0; p < snapshot.gpus[g].processes.size(); ++p) {
        const GpuProcess& process = snapshot.gpus[g].processes[p];
        ASSERT_EQ(decoded->gpus[g].processes[p].owner, process.owner);
        ASSERT_EQ(decoded->gpus[g].processes[p].start_after_boot, process.start_after_boot);
      }
      ASSERT_EQ(decoded->gpus[g].holders, snapshot.gpus[g].holders);
    }
    ASSERT_EQ(decoded->scheduler != nullptr, snapshot.scheduler != nullptr);
    if (snapshot.scheduler) {
      ASSERT_EQ(*decoded->scheduler, *snapshot.scheduler);
    }
  }
}

TEST(SnapshotCodec, KeepsEveryMemberOfEventsSourcesProcessesAndInstances) {
  Snapshot snapshot = OneGpu();
  snapshot.steady = SteadyTime(Duration(42));
  snapshot.node = {"host", "570.86.15", "12.570.86.15", "12.8"};
  snapshot.sources.push_back(
      {"nvml", WallTime(Duration(7)), "driver error 15", Missing::kGpuLost, {}});
  snapshot.events.push_back({WallTime(Duration(9)), EventKind::kXid, "GPU-1", 79, 3});
  snapshot.capabilities_missing = {"nvmlGpmSampleGet"};
  Gpu& gpu = snapshot.gpus[0];
  gpu.identity = {7, "GPU-2", "00000000:1A:00.0", "NVIDIA H100", "165", "96.00", "Hopper", 7};
  gpu.links.push_back({17, {}});
  gpu.mig.push_back({{1, 9, 0, "MIG-1", "1g.10gb"}, {}});
  gpu.processes.push_back({4242, ProcessType::kMps, 9, 0, "python", {}, {}, {}});
  gpu.processes_dropped = 3;
  gpu.xids.push_back({79, 2});

  const auto read = DecodeSnapshot(Encoded(snapshot));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->steady, SteadyTime(Duration(42)));
  EXPECT_EQ(read->node.nvml_version, "12.570.86.15");
  EXPECT_EQ(read->node.cuda_version, "12.8");
  EXPECT_EQ(read->sources[0].last_success, WallTime(Duration(7)));
  EXPECT_EQ(read->sources[0].error, "driver error 15");
  EXPECT_EQ(read->sources[0].missing, Missing::kGpuLost);
  EXPECT_EQ(read->events[0].data, 79u);
  EXPECT_EQ(read->events[0].gpu_instance_id, 3u);
  EXPECT_EQ(read->capabilities_missing[0], "nvmlGpmSampleGet");
  EXPECT_EQ(read->gpus[0].identity.architecture, "Hopper");
  EXPECT_EQ(read->gpus[0].identity.minor_number, 7u);
  EXPECT_EQ(read->gpus[0].links[0].link, 17u);
  EXPECT_EQ(read->gpus[0].mig[0].identity.profile, "1g.10gb");
  EXPECT_EQ(read->gpus[0].mig[0].identity.gpu_instance_id, 9u);
  EXPECT_EQ(read->gpus[0].processes[0].type, ProcessType::kMps);
  EXPECT_EQ(read->gpus[0].processes[0].name, "python");
  EXPECT_EQ(read->gpus[0].processes_dropped, 3u);
  EXPECT_EQ(read->gpus[0].xids[0].count, 2u);
}

GpuProcess OwnedProcess() {
  GpuProcess process;
  process.pid = 4242;
  process.start_after_boot = Duration(1'234'560'000);
  process.owner.container = {"4f5c", "main", "containerd"};
  process.owner.pod = {"team-a", "train-0", "0d5e5b4a"};
  process.owner.job = {"slurm", "4711_3", "batch"};
  process.owner.user = "alice";
  process.owner.systemd_unit = "train.service";
  return process;
}

TEST(SnapshotCodec, KeepsStartAndOwnerOfAProcess) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].processes = {OwnedProcess(), {}};
  const auto read = DecodeSnapshot(Encoded(snapshot));
  ASSERT_TRUE(read) << read.error().what;
  const GpuProcess& process = read->gpus[0].processes[0];
  EXPECT_EQ(process.start_after_boot, Duration(1'234'560'000));
  EXPECT_EQ(process.owner.container, (ContainerIdentity{"4f5c", "main", "containerd"}));
  EXPECT_EQ(process.owner.pod, (PodIdentity{"team-a", "train-0", "0d5e5b4a"}));
  EXPECT_EQ(process.owner.job, (JobIdentity{"slurm", "4711_3", "batch"}));
  EXPECT_EQ(process.owner.user, "alice");
  EXPECT_EQ(process.owner.systemd_unit, "train.service");
  EXPECT_EQ(read->gpus[0].processes[1].start_after_boot, std::nullopt);
  EXPECT_EQ(read->gpus[0].processes[1].owner, ProcessOwner{});
}

TEST(SnapshotCodec, KeepsWhatTheSchedulerTold) {
  Snapshot snapshot = OneGpu();
  auto scheduler = std::make_shared<Scheduler>();
  scheduler->allocatable.push_back({"nvidia.com/gpu", "GPU-1::3", 3, "GPU-1", ""});
  Pod& pod = scheduler->pods.emplace_back();
  pod.identity = {"ml", "notebook-3", "0d5e5b4a"};
  pod.requests.push_back({"main", "nvidia.com/gpumem", 8192});
  pod.memory_request_bytes = 8589934592.0;
  snapshot.scheduler = scheduler;
  const auto read = DecodeSnapshot(Encoded(snapshot));
  ASSERT_TRUE(read) << read.error().what;
  ASSERT_NE(read->scheduler, nullptr);
  EXPECT_EQ(read->scheduler->allocatable[0].replica, 3u);
  EXPECT_EQ(read->scheduler->pods[0].requests[0].amount, 8192);
  EXPECT_EQ(read->scheduler->pods[0].memory_request_bytes, 8589934592.0);
  EXPECT_EQ(DecodeSnapshot(Encoded(OneGpu()))->scheduler, nullptr);
}

TEST(SnapshotCodec, CountsWhatIsOverTheBoundOfAScheduler) {
  Snapshot snapshot = OneGpu();
  auto scheduler = std::make_shared<Scheduler>();
  scheduler->allocatable.resize(kAllocatableMax + 2);
  scheduler->pods.resize(kPodsMax + 1);
  scheduler->dropped = 4;
  snapshot.scheduler = scheduler;
  const auto read = DecodeSnapshot(Encoded(snapshot));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->scheduler->allocatable.size(), kAllocatableMax);
  EXPECT_EQ(read->scheduler->pods.size(), kPodsMax);
  EXPECT_EQ(read->scheduler->dropped, 7u);
}

TEST(SnapshotCodec, KeepsEachPartOfAnOwnerThatIsKnownAlone) {
  const GpuProcess all = OwnedProcess();
  for (int part = 0; part < 6; ++part) {
    Snapshot snapshot = OneGpu();
    GpuProcess& process = snapshot.gpus[0].processes.emplace_back();
    if (part == 0) process.start_after_boot = all.start_after_boot;
    if (part == 1) process.owner.container = all.owner.container;
    if (part == 2) process.owner.pod = all.owner.pod;
    if (part == 3) process.owner.job = all.owner.job;
    if (part == 4) process.owner.user = all.owner.user;
    if (part == 5) process.owner.systemd_unit = all.owner.systemd_unit;
    const auto read = DecodeSnapshot(Encoded(snapshot));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->gpus[0].processes[0].owner, process.owner) << part;
    EXPECT_EQ(read->gpus[0].processes[0].start_after_boot, process.start_after_boot) << part;
  }
}

// Bytes of the encoded form that this process adds to a GPU without any.
std::size_t BytesOf(const GpuProcess& process) {
  Snapshot snapshot = OneGpu();
  const std::size_t without = Encoded(snapshot).size();
  snapshot.gpus[0].processes = {process};
  return Encoded(snapshot).size() - without;
}

TEST(SnapshotCodec, AProcessWithoutOwnerCostsOneByteForIt) {
  const std::size_t fields = MetricsOf(MetricScope::kProcess).size();
  const std::size_t readings = (fields + 7) / 8 + fields;  // all missing
  // PID, type, two ids that are absent, a name without bytes, the byte.
  EXPECT_EQ(BytesOf({}), 4 + 1 + 1 + 1 + 2 + 1 + readings);
  GpuProcess process;
  process.owner.user = "alice";
  EXPECT_EQ(BytesOf(process), BytesOf({}) + 2 + 5);
}

// Where the bits of the only process stand: before its readings and the end of the snapshot.
std::size_t OwnerBitsAt(const std::string& bytes) {
  const std::size_t fields = MetricsOf(MetricScope::kProcess).size();
  const std::size_t behind = 5 * 4 + 1;  // dropped, Xids, holders; events, functions, scheduler
  return bytes.size() - behind - (fields + 7) / 8 - fields - 1;
}

TEST(SnapshotCodec, PartsOfAnOwnerThatNobodyKnowsAreAnError) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].processes.resize(1);
  std::string bytes = Encoded(snapshot);
  const std::size_t at = OwnerBitsAt(bytes);
  bytes[at] = 0x40;
  const auto decoded = DecodeSnapshot(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().what,
            "snapshot: byte " + std::to_string(at) + ": owner bits 64, at most 63 is known");
}

TEST(SnapshotCodec, ATextOfAnOwnerIsCutAtItsBoundAndALongerOneIsRefused) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].processes.resize(1);
  const std::size_t at = OwnerBitsAt(Encoded(snapshot)) + 1;  // a length stands behind the bits
  ProcessOwner& owner = snapshot.gpus[0].processes[0].owner;
  owner.user = std::string(kOwnerTextBytesMax + 1, 'u');
  std::string bytes = Encoded(snapshot);
  auto decoded = DecodeSnapshot(bytes);
  ASSERT_TRUE(decoded) << decoded.error().what;
  EXPECT_EQ(decoded->gpus[0].processes[0].owner.user, std::string(256, 'u'));

  bytes[at] = 1;  // 257, a byte that stands behind is taken for the text
  decoded = DecodeSnapshot(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().what,
            "snapshot: byte " + std::to_string(at) + ": user: 257 bytes, at most 256 are allowed");
}

// Two GPUs, and a process of which everything is known.
Snapshot RandomSnapshotWithOwners(std::uint64_t seed) {
  RandomSnapshots random(seed);
  Snapshot snapshot;
  while (snapshot.gpus.size() < 2) snapshot = random.Next();
  snapshot.gpus[0].processes.push_back(OwnedProcess());
  return snapshot;
}

TEST(SnapshotCodec, EveryTruncationIsAnErrorThatNamesAByte) {
  const Snapshot snapshot = RandomSnapshotWithOwners(7);
  const std::string bytes = Encoded(snapshot);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = DecodeSnapshot(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(decoded) << size;
    ASSERT_EQ(decoded.error().code, ErrorCode::kMalformed);
    ASSERT_TRUE(decoded.error().what.starts_with("snapshot: byte ")) << decoded.error().what;
  }
}

TEST(SnapshotCodec, EveryFlippedByteIsReadOrRefusedWithoutACrash) {
  const Snapshot snapshot = RandomSnapshotWithOwners(11);
  const std::string bytes = Encoded(snapshot);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    const auto decoded = DecodeSnapshot(damaged);
    if (!decoded) continue;
    ASSERT_TRUE(DecodeSnapshot(Encoded(*decoded))) << at;
  }
}

TEST(SnapshotCodec, BytesAfterTheSnapshotAreAnError) {
  const std::string bytes = Encoded(OneGpu());
  const auto decoded = DecodeSnapshot(bytes + "x");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().what, "snapshot: byte " + std::to_string(bytes.size()) +
                                      ": 1 bytes too many after the snapshot");
}

TEST(SnapshotCodec, AnotherVersionIsAnError) {
  std::string bytes = Encoded(OneGpu());
  bytes[0] = 9;
  const auto decoded = DecodeSnapshot(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().what,
            "snapshot: byte 0: snapshot version 9, this program reads version 2");
}

// A snapshot without GPUs ends with three counts (GPUs, events, functions) and no scheduler.
TEST(SnapshotCodec, ACountOverTheBoundIsRefusedBeforeMemoryIsTaken) {
  std::string bytes = Encoded(Snapshot{});
  const std::size_t gpus_at = bytes.size() - 13;
  bytes[gpus_at] = 65;
  auto decoded = DecodeSnapshot(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().what, "snapshot: byte " + std::to_string(gpus_at) +
                                      ": number of GPUs 65, at most 64 are allowed");
  bytes[gpus_at] = 64;
  decoded = DecodeSnapshot(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().what, "snapshot: byte " + std::to_string(gpus_at) +
                                      ": number of GPUs 64, but only 9 bytes are left");
}

TEST(SnapshotCodec, MoreFieldsThanAllowedAreRefused) {
  std::string bytes = Encoded(Snapshot{});
  bytes[kGpuFieldsAt] = 1;
  bytes[kGpuFieldsAt + 1] = 4;  // 1025
  const auto decoded = DecodeSnapshot(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().what, "snapshot: byte 1: 1025 fields, at most 1024 are allowed");
}

// The readings of a source as bytes, with a number of fields that another version would write:
// field i is known and i, or missing because of a time-out.
std::string SourceReadingsAsBytes(std::size_t fields, std::size_t missing_field) {
  std::string bitmap((fields + 7) / 8, '\0');
  std::string values;
  for (std::size_t i = 0; i < fields; ++i) {
    if (i == missing_field) {
      values += static_cast<char>(Missing::kTimedOut);
      continue;
    }
    bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (1 << (i % 8)));
    const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(i));
    for (std::size_t b = 0; b < 8; ++b) values += static_cast<char>(bits >> (8 * b));
  }
  return bitmap + values;
}

// A snapshot with one source whose readings have `fields` fields, `missing_field` of them missing.
std::string WrittenWithSourceFields(std::size_t fields, std::size_t missing_field) {
  Snapshot snapshot;
  snapshot.sources.emplace_back();
  snapshot.capabilities_missing = {"behind"};
  std::string bytes = Encoded(snapshot);
  const std::size_t here = MetricsOf(MetricScope::kSource).size();
  const std::size_t readings_here = (here + 7) / 8 + here;  // all missing: a byte each
  // Counts of GPUs, events, functions; "behind"; no scheduler.
  const std::size_t tail = 4 + 4 + 4 + 2 + 6 + 1;
  bytes.replace(bytes.size() - tail - readings_here, readings_here,
                SourceReadingsAsBytes(fields, missing_field));
  bytes[kGpuFieldsAt + 8] = static_cast<char>(fields);
  return bytes;
}

TEST(SnapshotCodec, FieldsThatAnOlderWriterDidNotHaveAreNeverSampled) {
  const auto decoded = DecodeSnapshot(WrittenWithSourceFields(2, 1));
  ASSERT_TRUE(decoded) << decoded.error().what;
  const SourceReadings& readings = decoded->sources[0].readings;
  EXPECT_EQ(readings.up, Reading(0.0));
  EXPECT_EQ(readings.duration_seconds, Reading(Missing::kTimedOut));
  EXPECT_EQ(readings.reads_total, Reading(Missing::kNeverSampled));
  EXPECT_EQ(readings.failures_total, Reading(Missing::kNeverSampled));
  EXPECT_EQ(decoded->capabilities_missing, std::vector<std::string>{"behind"});
}

TEST(SnapshotCodec, FieldsOfANewerWriterAreSkipped) {
  const std::size_t here = MetricsOf(MetricScope::kSource).size();
  for (const std::size_t more : {1, 2, 9}) {
    const auto decoded = DecodeSnapshot(WrittenWithSourceFields(here + more, here));
    ASSERT_TRUE(decoded) << decoded.error().what;
    EXPECT_EQ(decoded->sources[0].readings.failures_total, Reading(3.0));
    EXPECT_EQ(decoded->capabilities_missing, std::vector<std::string>{"behind"});
  }
}

TEST(SnapshotCodec, AReasonThatANewerWriterKnowsIsADriverError) {
  Snapshot snapshot;
  snapshot.gpus.emplace_back();
  std::string bytes = Encoded(snapshot);
  // Five counts and dropped processes of the GPU, two more counts, no scheduler.
  const std::size_t behind = 6 * 4 + 2 * 4 + 1;
  bytes[bytes.size() - behind - 1] = '\xf0';
  const auto decoded = DecodeSnapshot(bytes);
  ASSERT_TRUE(decoded) << decoded.error().what;
  EXPECT_EQ(decoded->gpus[0].readings.*Members(&decoded->gpus[0].readings).back(),
            Reading(Missing::kDriverError));
}

TEST(SnapshotCodec, ValuesThatAreNoNumbersReadAsImplausible) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].readings.power_watts = std::numeric_limits<double>::quiet_NaN();
  snapshot.gpus[0].readings.temperature_celsius = std::numeric_limits<double>::infinity();
  const auto decoded = DecodeSnapshot(Encoded(snapshot));
  ASSERT_TRUE(decoded) << decoded.error().what;
  EXPECT_EQ(decoded->gpus[0].readings.power_watts, Reading(Missing::kImplausible));
  EXPECT_EQ(decoded->gpus[0].readings.temperature_celsius, Reading(Missing::kImplausible));
}

TEST(SnapshotCodec, WhatIsOverABoundIsLeftOutAndProcessesAreCounted) {
  Snapshot snapshot = OneGpu();
  snapshot.node.hostname = std::string(kTextBytesMax + 1, 'h');
  snapshot.events.resize(kEventsMax + 1);
  snapshot.gpus[0].processes.resize(kProcessesPerGpuMax + 2);
  snapshot.gpus[0].processes_dropped = 5;
  const auto decoded = DecodeSnapshot(Encoded(snapshot));
  ASSERT_TRUE(decoded) << decoded.error().what;
  EXPECT_EQ(decoded->node.hostname, std::string(1024, 'h'));
  EXPECT_EQ(decoded->events.size(), 256u);
  EXPECT_EQ(decoded->gpus[0].processes.size(), 4096u);
  EXPECT_EQ(decoded->gpus[0].processes_dropped, 7u);
}

TEST(SnapshotCodec, AppendsToWhatIsThere) {
  std::string bytes = "before";
  EncodeSnapshot(OneGpu(), bytes);
  EXPECT_EQ(bytes, "before" + Encoded(OneGpu()));
}

}  // namespace
}  // namespace gpuassay
