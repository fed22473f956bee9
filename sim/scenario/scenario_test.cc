#include "sim/scenario/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace gpuassay::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr double kMiB = 1024.0 * 1024.0;

Scenario Parsed(std::string_view yaml) {
  const Result<Scenario> scenario = ParseScenario(yaml, "s.yaml");
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().what);
  return scenario ? *scenario : Scenario{};
}

TEST(Scenario, DefaultsAreUsableAfterOneLine) {
  const Scenario scenario = Parsed("gpus: [{model: t4}]");
  EXPECT_EQ(scenario.name, "s");
  EXPECT_EQ(scenario.seed, 1U);
  EXPECT_EQ(scenario.noise, 0.01);
  EXPECT_EQ(scenario.length, minutes(10));
  EXPECT_EQ(scenario.hostname, "sim-node");
  EXPECT_EQ(scenario.start.time_since_epoch(), seconds(1767571200));
  EXPECT_EQ(scenario.driver.text, "570.86.15");
  EXPECT_EQ(scenario.driver.cuda, "12.8");
  ASSERT_EQ(scenario.gpus.size(), 1U);
  EXPECT_EQ(scenario.gpus[0].model->key, "t4");
  EXPECT_EQ(scenario.gpus[0].inlet_c, 25);
  EXPECT_FALSE(scenario.gpus[0].mig_enabled);
  EXPECT_TRUE(scenario.gpus[0].ecc);
}

TEST(Scenario, HeadIsRead) {
  const Scenario scenario = Parsed(R"(
name: story
description: >
  folded
  text
seed: 18446744073709551615
noise: 2.5%
start: 2026-03-01T12:30:05Z
length: 1.5h
hostname: node-7.example
driver: {version: 535.104, cuda: "12.2"}
gpus: [{model: t4}]
)");
  EXPECT_EQ(scenario.name, "story");
  EXPECT_EQ(scenario.description, "folded text");
  EXPECT_EQ(scenario.seed, 18446744073709551615U);
  EXPECT_EQ(scenario.noise, 0.025);
  EXPECT_EQ(scenario.start.time_since_epoch(), seconds(1772368205));
  EXPECT_EQ(scenario.length, minutes(90));
  EXPECT_EQ(scenario.driver.major, 535U);
}

TEST(Scenario, GpusAreMultipliedAndSetUp) {
  const Scenario scenario = Parsed(R"(
gpus:
  - {model: h100-sxm5-80gb, count: 2, inlet: 31.5 C, power_limit: 0.5 kW, persistence: off, ecc: off}
  - model: h100-sxm5-80gb
    uuid: GPU-1
    serial: "42"
    pci_bus_id: 00000000:9D:00.0
    mig: [3g.40gb, 3 x 1g.10gb]
  - {model: h100-sxm5-80gb, mig: []}
)");
  ASSERT_EQ(scenario.gpus.size(), 4U);
  EXPECT_EQ(scenario.gpus[1].inlet_c, 31.5);
  EXPECT_EQ(scenario.gpus[1].power_limit_w, 500);
  EXPECT_FALSE(scenario.gpus[1].persistence);
  EXPECT_FALSE(scenario.gpus[1].ecc);
  EXPECT_EQ(scenario.gpus[2].uuid, "GPU-1");
  EXPECT_EQ(scenario.gpus[2].serial, "42");
  EXPECT_EQ(scenario.gpus[2].pci_bus_id, "00000000:9D:00.0");
  EXPECT_EQ(scenario.gpus[2].mig,
            (std::vector<std::string>{"3g.40gb", "1g.10gb", "1g.10gb", "1g.10gb"}));
  EXPECT_TRUE(scenario.gpus[3].mig_enabled);
  EXPECT_TRUE(scenario.gpus[3].mig.empty());
}

TEST(Scenario, ProcessesAreRead) {
  const Scenario scenario = Parsed(R"(
gpus: [{model: h100-sxm5-80gb, count: 4}]
profiles:
  train: {kernel: 400us, launches: 2000/s, regular: true, sm_active: 70%, tensor: 0.5, dram: 40%,
          nvlink_transmit: 100 GB/s, pcie_receive: 1 MiB/s, encoder: 5%}
processes:
  - pid: 100
    name: python train.py
    gpus: [0, 2-3]
    type: mps
    start: 10s
    for: 1m
    memory: [{at: 0s, size: 1 GiB}, {at: 5s, size: 62 GiB}]
    repeat: true
    phases:
      - {name: compute, for: 9s, activity: train}
      - {for: 1s, activity: {like: train, tensor: 10%}}
  - {pid: 200, gpus: all, end: 1h}
)");
  ASSERT_EQ(scenario.processes.size(), 2U);
  const ScenarioProcess& process = scenario.processes[0];
  EXPECT_EQ(process.pid, 100U);
  EXPECT_EQ(process.gpus, (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_EQ(process.type, ScenarioProcessType::kMps);
  EXPECT_EQ(process.start, seconds(10));
  EXPECT_EQ(process.end, seconds(70));
  ASSERT_EQ(process.memory.size(), 2U);
  EXPECT_EQ(process.memory[1].bytes, 62 * 1024 * kMiB);
  EXPECT_TRUE(process.repeat);
  ASSERT_EQ(process.phases.size(), 2U);
  EXPECT_EQ(process.phases[0].name, "compute");
  EXPECT_EQ(process.phases[0].length, seconds(9));
  const Activity& activity = process.phases[0].activity;
  EXPECT_DOUBLE_EQ(activity.kernel_seconds, 400e-6);
  EXPECT_EQ(activity.launches_per_second, 2000);
  EXPECT_TRUE(activity.regular);
  EXPECT_DOUBLE_EQ(activity.sm_active, 0.7);
  EXPECT_DOUBLE_EQ(activity.sm_occupancy, 0.35);
  EXPECT_EQ(activity.tensor_active, 0.5);
  EXPECT_EQ(activity.nvlink_transmit_bytes_per_second, 100e9);
  EXPECT_EQ(activity.pcie_receive_bytes_per_second, kMiB);
  EXPECT_DOUBLE_EQ(activity.encoder, 0.05);
  EXPECT_DOUBLE_EQ(process.phases[1].activity.tensor_active, 0.1);
  EXPECT_DOUBLE_EQ(process.phases[1].activity.dram_active, 0.4);
  EXPECT_EQ(scenario.processes[1].name, "process-200");
  EXPECT_EQ(scenario.processes[1].gpus.size(), 4U);
  EXPECT_EQ(scenario.processes[1].end, minutes(60));
}

TEST(Scenario, KernelsMakeTheirOwnSmActivity) {
  const Scenario scenario = Parsed(
      "gpus: [{model: t4}]\n"
      "processes: [{pid: 1, gpus: 0, activity: {kernel: 1us, launches: 1000/s}}]");
  const Activity& activity = scenario.processes[0].phases[0].activity;
  EXPECT_DOUBLE_EQ(activity.sm_active, 0.001);
  EXPECT_DOUBLE_EQ(activity.sm_occupancy, 0.0005);
}

TEST(Scenario, WorkWithoutKernelsKeepsOneResident) {
  const Scenario scenario =
      Parsed("gpus: [{model: t4}]\nprocesses: [{pid: 1, gpus: 0, activity: {sm_active: 40%}}]");
  const Activity& activity = scenario.processes[0].phases[0].activity;
  EXPECT_DOUBLE_EQ(activity.kernel_seconds * activity.launches_per_second, 1);
  EXPECT_TRUE(activity.regular);
}

TEST(Scenario, SpreadMakesOneProcessPerGpuAndMigDevice) {
  const Scenario scenario = Parsed(R"(
gpus: [{model: h100-sxm5-80gb, count: 2, mig: [3g.40gb, 1g.10gb]}]
processes: [{pid: 50, gpus: all, mig: all, spread: true, count: 2}]
)");
  ASSERT_EQ(scenario.processes.size(), 8U);
  EXPECT_EQ(scenario.processes[7].pid, 57U);
  EXPECT_EQ(scenario.processes[7].gpus, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(scenario.processes[7].mig_index, 1U);
  EXPECT_EQ(scenario.processes[1].gpus, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(scenario.processes[1].mig_index, 0U);
}

TEST(Scenario, KernelListIsRead) {
  const Scenario scenario = Parsed(R"(
gpus: [{model: t4}]
processes:
  - pid: 1
    gpus: 0
    phases: [{for: 1s, kernels: [{at: 0s, length: 50us}, {at: 20 ms, length: 2us}]}]
)");
  const std::vector<Kernel>& kernels = scenario.processes[0].phases[0].kernels;
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[1].at, milliseconds(20));
  EXPECT_EQ(kernels[1].length, std::chrono::microseconds(2));
}

TEST(Scenario, EveryKindOfFaultIsRead) {
  const Scenario scenario = Parsed(R"(
gpus: [{model: h100-sxm5-80gb, count: 2, mig: []}, {model: rtx-4090}]
faults:
  - {kind: hot_inlet, at: 60s, for: 10m, gpu: 1, value: 45 C}
  - {kind: fan_dead, gpu: 2}
  - {kind: power_cap, gpu: 0, value: 400 W}
  - {kind: power_brake}
  - {kind: clocks_locked, gpu: 0, value: 1.2 GHz}
  - {kind: pcie_generation, gpu: 0, value: 1}
  - {kind: pcie_width, gpu: 0, value: 8}
  - {kind: pcie_replays, gpu: 0, value: 6/min}
  - {kind: nvlink_down, gpu: 0, link: 17}
  - {kind: nvlink_errors, gpu: 0, value: 5/s, counter: replay}
  - {kind: ecc_corrected, gpu: 0, value: 1/s}
  - {kind: ecc_uncorrected, gpu: 0, value: 2}
  - {kind: row_remap_pending, gpu: 0}
  - {kind: row_remap_failed, gpu: 0}
  - {kind: xid, gpus: 0-1, value: 79, count: 3, every: 10s}
  - {kind: gpu_lost, gpu: 0, for: ever}
  - {kind: reset_required, gpu: 0}
  - {kind: driver_hang, at: 5s}
  - {kind: garbage}
  - {kind: version_mismatch, at: 1m}
  - {kind: permission_denied, functions: [nvmlDeviceGetFieldValues]}
  - {kind: mig_reconfigure, gpu: 1, layout: [7 x 1g.10gb]}
  - {kind: memory_leak_orphan, gpu: 2, value: 4234 MiB}
  - {kind: fabric_not_ready, gpu: 0}
)");
  ASSERT_EQ(scenario.faults.size(), 25U);
  for (std::size_t i = 0; i < 14; ++i) {
    EXPECT_EQ(scenario.faults[i].kind, static_cast<FaultKind>(i));
  }
  EXPECT_EQ(scenario.faults[0].value, 45);
  EXPECT_EQ(scenario.faults[0].length, minutes(10));
  EXPECT_EQ(scenario.faults[0].gpu, 1U);
  EXPECT_EQ(scenario.faults[3].gpu, std::nullopt);
  EXPECT_EQ(scenario.faults[3].length, kForever);
  EXPECT_EQ(scenario.faults[4].value, 1200);
  EXPECT_EQ(scenario.faults[7].value, 0.1);
  EXPECT_EQ(scenario.faults[8].link, 17U);
  EXPECT_EQ(scenario.faults[9].counter, "replay");
  EXPECT_EQ(scenario.faults[15].gpu, 1U);
  EXPECT_EQ(scenario.faults[15].count, 3U);
  EXPECT_EQ(scenario.faults[16].length, kForever);
  EXPECT_EQ(scenario.faults[22].layout.size(), 7U);
  EXPECT_EQ(scenario.faults[23].value, 4234 * kMiB);
  EXPECT_EQ(FaultName(FaultKind::kMemoryLeakOrphan), "memory_leak_orphan");
}

TEST(MemoryOf, IsLinearBetweenPointsAndConstantOutside) {
  const std::vector<MemoryPoint> points = {{seconds(10), 100}, {seconds(20), 200}};
  EXPECT_EQ(MemoryOf(points, seconds(0)), 100);
  EXPECT_EQ(MemoryOf(points, seconds(15)), 150);
  EXPECT_EQ(MemoryOf(points, seconds(20)), 200);
  EXPECT_EQ(MemoryOf(points, seconds(99)), 200);
  EXPECT_EQ(MemoryOf({}, seconds(5)), 0);
}

TEST(LoadScenario, SaysWhichFileIsMissing) {
  const Result<Scenario> scenario = LoadScenario("/nonexistent/x.yaml");
  ASSERT_FALSE(scenario);
  EXPECT_EQ(scenario.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(scenario.error().what, "/nonexistent/x.yaml: No such file or directory");
  EXPECT_EQ(LoadScenario("/").error().code, ErrorCode::kIo);
}

TEST(LoadScenario, ReadsEveryStory) {
  int stories = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(GPUASSAY_SOURCE_DIR "/sim/scenarios")) {
    const Result<Scenario> scenario = LoadScenario(entry.path().string());
    EXPECT_TRUE(scenario) << scenario.error().what;
    if (scenario) {
      EXPECT_FALSE(scenario->description.empty()) << entry.path();
    }
    ++stories;
  }
  EXPECT_GE(stories, 16);
}

}  // namespace
}  // namespace gpuassay::sim
