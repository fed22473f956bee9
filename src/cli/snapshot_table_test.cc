#include "cli/snapshot_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "model/catalogue.h"

namespace gpuassay {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

Gpu Busy(std::uint32_t index) {
  Gpu gpu;
  gpu.identity = {index, "GPU-1", "00000000:1B:00.0", "NVIDIA H100 80GB HBM3",
                  "",    "",      "Hopper",           {}};
  GpuReadings& r = gpu.readings;
  ForEachReading(r, [](Reading& reading) { reading = 0.0; });
  r.up = 1.0;
  r.temperature_celsius = 62.0;
  r.temperature_slowdown_celsius = 90.0;
  r.power_watts = 320.4;
  r.power_limit_watts = 700.0;
  r.sm_clock_hertz = 1755e6;
  r.sm_clock_max_hertz = 1980e6;
  r.fan_speed_ratio = Missing::kNotSupported;
  r.utilization_ratio = 0.96;
  r.utilization_mean_ratio = 0.96;
  r.sm_active_ratio = 0.82;
  r.sm_occupancy_ratio = 0.41;
  r.tensor_active_ratio = 0.051;
  r.dram_active_ratio = 0.35;
  r.memory_used_bytes = 62 * kGib;
  r.memory_reserved_bytes = 0.5 * kGib;
  r.memory_total_bytes = 80 * kGib;
  r.process_count = 1.0;
  r.pcie_link_generation = 5.0;
  r.pcie_link_width = 16.0;
  r.pcie_link_generation_max = 5.0;
  r.pcie_link_width_max = 16.0;
  r.pcie_transmit_bytes_per_second = 1.25e9;
  r.pcie_receive_bytes_per_second = 2.5e9;
  r.nvlink_links = 18.0;
  r.nvlink_links_active = 18.0;
  r.nvlink_transmit_bytes_per_second = 120e9;
  r.nvlink_receive_bytes_per_second = 119e9;
  GpuProcess& process = gpu.processes.emplace_back();
  process.pid = 4242;
  process.name = "python3";
  process.readings.memory_used_bytes = 61 * kGib;
  process.readings.sm_utilization_ratio = 0.8;
  process.owner.pod = {"ml", "train-0", ""};
  process.owner.container = {"4f5c", "main", "containerd"};
  return gpu;
}

Snapshot Node() {
  Snapshot snapshot;
  snapshot.time = WallTime(std::chrono::seconds(1767225600));
  snapshot.node = {"node-1", "570.86.15", "12.570.86.15", "12.8"};
  snapshot.gpus.push_back(Busy(0));
  return snapshot;
}

TEST(SnapshotTable, AnswersWhatNvidiaSmiAnswersAndWhatItHides) {
  EXPECT_EQ(SnapshotTable(Node(), false),
            R"(node-1  2026-01-01T00:00:00.000Z  driver 570.86.15  CUDA 12.8  1 GPU

GPU  Name            Bus id            Temp/slow C  Power/limit W  SM clock/max MHz  P  Fan
  0  H100 80GB HBM3  00000000:1B:00.0        62/90        320/700         1755/1980  0    -

GPU  Util  SM active  Occupancy  Tensor  DRAM  Used GiB  Reserved  Total  Processes
  0   96%        82%        41%    5.1%   35%      62.0       0.5   80.0          1

GPU  PCIe now  PCIe max  PCIe out/in GB/s  Replays  NVLinks up  NVLink out/in GB/s
  0  Gen5 x16  Gen5 x16           1.2/2.5        0       18/18         120.0/119.0

GPU  State  Clocks held by  ECC corr/uncorr  Remapped corr/uncorr  Xid   MIG
  0  ok     none                        0/0  0/0                   none  off

GPU  GI   PID  Type      GiB   SM  Process  Owner
  0      4242  compute  61.0  80%  python3  ml/train-0 (main)

-   not supported: fan (GPU 0): this GPU model, or its present mode (for example MIG), does not have
    it.
)");
}

TEST(SnapshotTable, SaysWhenUtilisationHidesThatNothingWorks) {
  Snapshot snapshot = Node();
  snapshot.gpus[0].readings.utilization_mean_ratio = 0.87;
  snapshot.gpus[0].readings.sm_active_ratio = 0.0009;
  EXPECT_NE(SnapshotTable(snapshot, false)
                .find("!   GPU 0: 87% utilised, but only 0.09% of its SM time worked; see gpuassay "
                      "explain util.\n"),
            std::string::npos);
  snapshot.gpus[0].readings.sm_active_ratio = 0.1;
  EXPECT_EQ(SnapshotTable(snapshot, false).find("utilised"), std::string::npos);
}

TEST(SnapshotTable, ALostGpuSaysSoAndHasNoNumbers) {
  Snapshot snapshot = Node();
  SetAllMissing(snapshot.gpus[0].readings, Missing::kGpuLost);
  snapshot.gpus[0].readings.up = 0.0;
  snapshot.gpus[0].xids.push_back({79, 1});
  snapshot.gpus[0].processes.clear();
  const std::string text = SnapshotTable(snapshot, false);
  EXPECT_NE(text.find("  0  gpu lost  -"), std::string::npos) << text;
  EXPECT_NE(text.find("79"), std::string::npos);
  EXPECT_NE(text.find("No processes."), std::string::npos);
  EXPECT_NE(text.find("-   gpu lost: "), std::string::npos);
  EXPECT_EQ(text.find("0%"), std::string::npos);
}

TEST(SnapshotTable, SourceErrorsAreShown) {
  Snapshot snapshot;
  snapshot.sources.push_back({"nvml", {}, "driver not loaded", Missing::kDriverError, {}});
  EXPECT_EQ(SnapshotTable(snapshot, false),
            "1970-01-01T00:00:00.000Z  0 GPUs\n\n!   source nvml: driver not loaded\n");
}

TEST(SnapshotTable, ProcessesBeyondTheShownOnesAreSummed) {
  Snapshot snapshot = Node();
  auto& processes = snapshot.gpus[0].processes;
  processes[0].readings.memory_used_bytes = 1 * kGib;
  processes.resize(18, processes[0]);
  processes[17].name = "largest";
  processes[17].readings.memory_used_bytes = 9 * kGib;
  std::string text = SnapshotTable(snapshot, false);
  EXPECT_NE(text.find("  0      4242  compute  9.0  80%  largest  ml/train-0 (main)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  0                     2.0       2 more\n"), std::string::npos) << text;
  processes[3].readings.memory_used_bytes = Missing::kNoPermission;
  text = SnapshotTable(snapshot, false);
  EXPECT_NE(text.find("  0                       -       2 more\n"), std::string::npos) << text;
}

TEST(SnapshotTable, NoLineIsLongerThan100Columns) {
  Snapshot snapshot = Node();
  Gpu& gpu = snapshot.gpus[0];
  gpu.identity.name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition";
  gpu.processes[0].name = std::string(200, 'x');
  ForEachReading(gpu.readings, [](Reading& reading) {
    if (!reading) reading = Missing::kDriverTooOld;
  });
  gpu.readings.row_remap_failed = 1.0;
  gpu.readings.clock_event_hardware_thermal = 1.0;
  gpu.readings.clock_event_power_brake = 1.0;
  gpu.xids = {{13, 100}, {31, 2}, {48, 7}, {79, 1}};
  std::istringstream lines(SnapshotTable(snapshot, false));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(SnapshotTable, ColourMarksOnlyWhatIsWrong) {
  Snapshot snapshot = Node();
  const auto marks = [&snapshot] {
    const std::string text = SnapshotTable(snapshot, true);
    return std::pair(text.find("\x1b[33m") != std::string::npos,
                     text.find("\x1b[31m") != std::string::npos);
  };
  EXPECT_EQ(marks(), std::pair(false, false));
  snapshot.gpus[0].readings.temperature_celsius = 85.0;  // 5 degrees below slowdown
  EXPECT_EQ(marks(), std::pair(true, false));
  snapshot.gpus[0].readings.temperature_celsius = 84.0;
  snapshot.gpus[0].readings.ecc_uncorrected_errors_total = 1.0;
  EXPECT_EQ(marks(), std::pair(false, true));
}

TEST(PercentText, KeepsSmallSharesVisible) {
  EXPECT_EQ(PercentText(0), "0%");
  EXPECT_EQ(PercentText(0.00046), "0.05%");
  EXPECT_EQ(PercentText(0.0099), "0.99%");
  EXPECT_EQ(PercentText(0.051), "5.1%");
  EXPECT_EQ(PercentText(0.457), "46%");
  EXPECT_EQ(PercentText(1), "100%");
}

TEST(ClockReasonsText, NamesThemOrSaysThatNobodyKnows) {
  GpuReadings readings;
  EXPECT_EQ(ClockReasonsText(readings), "");
  readings.clock_event_idle = 0.0;
  EXPECT_EQ(ClockReasonsText(readings), "none");
  readings.clock_event_software_power_cap = 1.0;
  readings.clock_event_hardware_thermal = 1.0;
  EXPECT_EQ(ClockReasonsText(readings), "power cap, hardware thermal");
}

}  // namespace
}  // namespace gpuassay
