#include "exposition/exposition.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "exposition/example_snapshot.h"
#include "model/catalogue.h"

namespace gpuassay {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The lines that begin so.
std::string Only(const std::string& text, std::string_view begin) {
  std::string out;
  for (const std::string& line : Lines(text)) {
    if (line.starts_with(begin)) out += line + "\n";
  }
  return out;
}

std::string Render(const Snapshot& snapshot, DcgmNames dcgm = DcgmNames::kOff,
                   TextFormat format = TextFormat::kPrometheus, std::size_t processes = 20) {
  return RenderMetrics(snapshot,
                       {.dcgm = dcgm, .format = format, .processes_per_gpu_max = processes});
}

// Every family once and in one piece, no series twice, each line in its place.
void ExpectWellFormed(const std::string& text) {
  std::set<std::string> families;
  std::set<std::string> series;
  std::string family;
  for (const std::string& line : Lines(text)) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << "family twice: " << family;
      continue;
    }
    if (line.starts_with("#")) {
      EXPECT_EQ(line.substr(7, family.size()), family);
      continue;
    }
    EXPECT_TRUE(line.starts_with(family)) << line;
    const std::string name_and_labels = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(series.insert(name_and_labels).second) << "series twice: " << name_and_labels;
  }
}

template <class Readings>
void Fill(Readings& readings) {
  double value = 1;
  ForEachReading(readings, [&value](Reading& reading) { reading = value += 0.5; });
}

Snapshot FullSnapshot(std::uint32_t gpus, std::uint32_t instances, std::uint32_t processes) {
  Snapshot snapshot = ExampleSnapshot();
  snapshot.gpus.clear();
  for (std::uint32_t i = 0; i < gpus; ++i) {
    Gpu gpu = ExampleGpu();
    gpu.identity.index = i;
    gpu.identity.uuid = "GPU-" + std::to_string(i);
    Fill(gpu.readings);
    for (std::uint32_t link = 0; link < 18; ++link) {
      gpu.links.push_back({.link = link, .readings = {}});
      Fill(gpu.links.back().readings);
    }
    for (std::uint32_t j = 0; j < instances; ++j) {
      MigInstance instance;
      instance.identity.index = j;
      instance.identity.gpu_instance_id = j + 7;
      instance.identity.uuid = "MIG-" + std::to_string(i) + "-" + std::to_string(j);
      instance.identity.profile = "1g.10gb";
      Fill(instance.readings);
      gpu.mig.push_back(instance);
    }
    for (std::uint32_t j = 0; j < processes; ++j) {
      GpuProcess process;
      process.pid = 1000 + j;
      process.name = "python";
      Fill(process.readings);
      process.readings.memory_used_bytes = j;
      gpu.processes.push_back(process);
    }
    OwnerUsage& usage = gpu.owners.emplace_back();
    usage.kind = OwnerKind::kContainer;
    usage.owner.pod = {"ml", "train-0", ""};
    Fill(usage.readings);
    gpu.xids = {{.xid = 31, .count = 2}, {.xid = 79, .count = 1}};
    snapshot.gpus.push_back(gpu);
  }
  return snapshot;
}

TEST(Exposition, EveryModeIsWellFormedWhenEverythingIsKnown) {
  const Snapshot snapshot = FullSnapshot(3, 7, 30);
  for (const DcgmNames dcgm : {DcgmNames::kOff, DcgmNames::k48, DcgmNames::k49}) {
    for (const TextFormat format : {TextFormat::kPrometheus, TextFormat::kOpenMetrics}) {
      ExpectWellFormed(Render(snapshot, dcgm, format));
    }
  }
}

TEST(Exposition, EveryMetricOfTheCatalogueIsThere) {
  const std::string text = Render(FullSnapshot(1, 1, 1));
  for (const MetricInfo& metric : AllMetrics()) {
    if (metric.scope == MetricScope::kSource) continue;  // RenderLiveMetrics
    EXPECT_NE(text.find("\n" + std::string(metric.name) + "{"), std::string::npos) << metric.name;
  }
}

TEST(Exposition, GpuSeriesCarryWhoAndWhere) {
  EXPECT_EQ(Only(Render(ExampleSnapshot()), "gpuassay_gpu_power_watts"),
            "gpuassay_gpu_power_watts{gpu=\"0\",uuid=\"GPU-00000000-0000-4000-8000-000000000001\","
            "pci_bus_id=\"00000000:1A:00.0\",model_name=\"NVIDIA H100 80GB HBM3\","
            "hostname=\"node1\"} 320.125\n"
            "gpuassay_gpu_power_watts{gpu=\"1\",uuid=\"GPU-00000000-0000-4000-8000-000000000002\","
            "pci_bus_id=\"00000000:3B:00.0\",model_name=\"NVIDIA H100 80GB HBM3\","
            "hostname=\"node1\"} 200\n");
}

TEST(Exposition, FixedLabelsTellFieldsOfOneMetricApart) {
  EXPECT_EQ(
      Only(Render(ExampleSnapshot()), "gpuassay_gpu_throttled_seconds_total"),
      "gpuassay_gpu_throttled_seconds_total{gpu=\"0\","
      "uuid=\"GPU-00000000-0000-4000-8000-000000000001\",pci_bus_id=\"00000000:1A:00.0\","
      "model_name=\"NVIDIA H100 80GB HBM3\",hostname=\"node1\",reason=\"power_brake\"} 1.5\n");
}

Snapshot Bare() {
  Snapshot snapshot;
  Gpu gpu;
  gpu.identity.uuid = "GPU-a";
  snapshot.gpus = {gpu};
  return snapshot;
}

TEST(Exposition, AMissingReadingHasNoSeriesAndIsCounted) {
  Snapshot snapshot = Bare();
  SetAllMissing(snapshot.gpus[0].readings, Missing::kGpuLost);
  snapshot.gpus[0].readings.up = 0;
  snapshot.gpus[0].readings.power_watts = Missing::kNotSupported;
  const std::string text = Render(snapshot, DcgmNames::k48);
  EXPECT_EQ(Only(text, "gpuassay_gpu_power"), "");
  EXPECT_EQ(Only(text, "DCGM"), "");
  EXPECT_EQ(Only(text, "gpuassay_gpu_up"), "gpuassay_gpu_up{gpu=\"0\",uuid=\"GPU-a\"} 0\n");
  std::size_t measured = 0;
  for (const MetricInfo& metric : MetricsOf(MetricScope::kGpu)) {
    measured += metric.pace != MetricPace::kDerived ? 1 : 0;
  }
  EXPECT_EQ(Only(text, "gpuassay_gpu_missing_readings"),
            "gpuassay_gpu_missing_readings{gpu=\"0\",uuid=\"GPU-a\",reason=\"not_supported\"} 1\n"
            "gpuassay_gpu_missing_readings{gpu=\"0\",uuid=\"GPU-a\",reason=\"gpu_lost\"} " +
                std::to_string(measured - 2) + "\n");
}

TEST(Exposition, XidsAreCountersByCode) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].xids = {{.xid = 31, .count = 2}, {.xid = 79, .count = 1}};
  EXPECT_EQ(Only(Render(snapshot), "gpuassay_gpu_xid_errors_total"),
            "gpuassay_gpu_xid_errors_total{gpu=\"0\",uuid=\"GPU-a\",xid=\"31\"} 2\n"
            "gpuassay_gpu_xid_errors_total{gpu=\"0\",uuid=\"GPU-a\",xid=\"79\"} 1\n");
}

GpuProcess MakeProcess(std::uint32_t pid, Reading memory_bytes) {
  GpuProcess process;
  process.pid = pid;
  process.name = "train";
  process.readings.memory_used_bytes = memory_bytes;
  process.readings.sm_utilization_seconds_total = pid;
  return process;
}

TEST(Exposition, TheLargestProcessesHaveSeriesAndTheRestIsOther) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].processes = {MakeProcess(1, 10.0), MakeProcess(2, 300.0),
                                MakeProcess(3, Missing::kNoPermission), MakeProcess(4, 200.0),
                                MakeProcess(5, 20.0)};
  const std::string text = Render(snapshot, DcgmNames::kOff, TextFormat::kPrometheus, 2);
  EXPECT_EQ(Only(text, "gpuassay_process_memory_used_bytes"),
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"2\","
            "process=\"train\",type=\"compute\"} 300\n"
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"4\","
            "process=\"train\",type=\"compute\"} 200\n"
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"other\"} 30\n");
  // The sum of the counters of a changing set would fall, so it is not there.
  EXPECT_EQ(Only(text,
                 "gpuassay_process_sm_utilization_seconds_total{gpu=\"0\",uuid=\"GPU-a\","
                 "pid=\"other\""),
            "");
}

TEST(Exposition, ExactlyAsManyProcessesAsAllowedNeedNoOther) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].processes = {MakeProcess(1, 10.0), MakeProcess(2, 300.0)};
  const std::string text = Render(snapshot, DcgmNames::kOff, TextFormat::kPrometheus, 2);
  EXPECT_EQ(text.find("other"), std::string::npos);
  EXPECT_NE(text.find("pid=\"1\""), std::string::npos);
}

TEST(Exposition, AHostileProcessNameStaysInsideItsLabel) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].processes = {MakeProcess(1, 10.0)};
  snapshot.gpus[0].processes[0].name = "a\"} 1\nb\\" + std::string(100, 'x');
  EXPECT_EQ(Only(Render(snapshot), "gpuassay_process_memory_used_bytes"),
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"1\","
            "process=\"a\\\"} 1\\nb\\\\" +
                std::string(kProcessNameBytesMax - 8, 'x') + "\",type=\"compute\"} 10\n");
}

TEST(Exposition, ThingsListedTwiceHaveSeriesOnce) {
  Snapshot snapshot = FullSnapshot(1, 2, 3);
  Gpu& gpu = snapshot.gpus[0];
  gpu.processes.push_back(gpu.processes[0]);
  gpu.mig.push_back(gpu.mig[0]);
  gpu.links.push_back(gpu.links[0]);
  snapshot.gpus.push_back(gpu);
  ExpectWellFormed(Render(snapshot, DcgmNames::k48));
}

TEST(Exposition, ProcessesInMigModeTellTheirInstance) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].processes = {MakeProcess(1, 10.0)};
  snapshot.gpus[0].processes[0].gpu_instance_id = 7;
  snapshot.gpus[0].processes[0].compute_instance_id = 0;
  EXPECT_EQ(Only(Render(snapshot), "gpuassay_process_memory_used_bytes"),
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"1\","
            "process=\"train\",type=\"compute\",gpu_instance_id=\"7\",compute_instance_id=\"0\"} "
            "10\n");
}

TEST(Exposition, ProcessesTellTheirOwner) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].processes = {MakeProcess(1, 10.0)};
  ProcessOwner& owner = snapshot.gpus[0].processes[0].owner;
  owner.container = {"4f5c", "main", "containerd"};
  owner.pod = {"team-a", "train-0", "0d5e5b4a"};
  owner.job = {"PyTorchJob", "train", ""};
  owner.user = "alice";
  owner.systemd_unit = "kubelet.service";
  EXPECT_EQ(Only(Render(snapshot), "gpuassay_process_memory_used_bytes"),
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"1\","
            "process=\"train\",type=\"compute\",container=\"main\",pod=\"train-0\","
            "namespace=\"team-a\",job_id=\"train\",user=\"alice\"} 10\n");
}

TEST(Exposition, WhatIsUnknownOfAnOwnerIsNoLabel) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].processes = {MakeProcess(1, 10.0), MakeProcess(2, 20.0)};
  snapshot.gpus[0].processes[0].owner.container = {"4f5c", "", ""};  // no name: its id
  snapshot.gpus[0].processes[1].owner.pod = {"", "", "0d5e5b4a"};
  snapshot.gpus[0].processes[1].owner.job.emplace();
  EXPECT_EQ(Only(Render(snapshot), "gpuassay_process_memory_used_bytes"),
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"1\","
            "process=\"train\",type=\"compute\",container=\"4f5c\"} 10\n"
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"2\","
            "process=\"train\",type=\"compute\"} 20\n");
}

TEST(Exposition, AHostileOwnerStaysInsideItsLabels) {
  Snapshot snapshot = Bare();
  snapshot.gpus[0].processes = {MakeProcess(1, 10.0)};
  ProcessOwner& owner = snapshot.gpus[0].processes[0].owner;
  owner.container = {"", "a\"} 1\nb", ""};
  owner.pod = {"n\\", "p\"", ""};
  owner.job = {"", std::string(kOwnerTextBytesMax + 1, 'j'), ""};
  owner.user = "u\xff";
  EXPECT_EQ(Only(Render(snapshot), "gpuassay_process_memory_used_bytes"),
            "gpuassay_process_memory_used_bytes{gpu=\"0\",uuid=\"GPU-a\",pid=\"1\","
            "process=\"train\",type=\"compute\",container=\"a\\\"} 1\\nb\",pod=\"p\\\"\","
            "namespace=\"n\\\\\",job_id=\"" +
                std::string(256, 'j') + "\",user=\"u\xEF\xBF\xBD\"} 10\n");
}

// Their labels are those of dcgm-exporter.
TEST(Exposition, SeriesWithNamesOfTheExporterDoNotChangeWithOwners) {
  Snapshot snapshot = FullSnapshot(1, 2, 3);
  const std::string without = Only(Render(snapshot, DcgmNames::k48), "DCGM");
  EXPECT_NE(without, "");
  for (GpuProcess& process : snapshot.gpus[0].processes) process.owner.user = "alice";
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM"), without);
}

TEST(Exposition, NamesOfTheExporterAreParsed) {
  EXPECT_EQ(ParseDcgmNames("4.8"), DcgmNames::k48);
  EXPECT_EQ(ParseDcgmNames("4.9"), DcgmNames::k49);
  EXPECT_EQ(ParseDcgmNames("off"), DcgmNames::kOff);
  EXPECT_EQ(ParseDcgmNames("4.7"), std::nullopt);
  EXPECT_EQ(ParseDcgmNames(""), std::nullopt);
}

}  // namespace
}  // namespace gpuassay
