#include "exposition/dcgm.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "exposition/example_snapshot.h"

namespace gpuassay {
namespace {

std::string Render(const Snapshot& snapshot, DcgmNames names) {
  std::string out;
  TextWriter writer(TextFormat::kPrometheus, out);
  WriteDcgmMetrics(writer, snapshot, names);
  return out;
}

// The lines that begin so.
std::string Only(const std::string& text, std::string_view begin) {
  std::string out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(begin)) out += line + "\n";
  }
  return out;
}

constexpr std::string_view kGolden48 = R"(# HELP DCGM_FI_DEV_FB_FREE Device memory nobody has (MiB).
# TYPE DCGM_FI_DEV_FB_FREE gauge
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 17550
# HELP DCGM_FI_DEV_FB_RESERVED Device memory the driver keeps for itself (MiB).
# TYPE DCGM_FI_DEV_FB_RESERVED gauge
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 520
# HELP DCGM_FI_DEV_FB_TOTAL Device memory, all of it (MiB).
# TYPE DCGM_FI_DEV_FB_TOTAL gauge
DCGM_FI_DEV_FB_TOTAL{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 81559
# HELP DCGM_FI_DEV_FB_USED Device memory handed out to processes (MiB).
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 63488
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 300
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 700
# HELP DCGM_FI_DEV_FB_USED_PERCENT Used share of the device memory that is not reserved (0-1).
# TYPE DCGM_FI_DEV_FB_USED_PERCENT gauge
DCGM_FI_DEV_FB_USED_PERCENT{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 0.783425
# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (C).
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 41
# HELP DCGM_FI_DEV_GPU_UTIL Share of time in which any kernel was resident (%).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 96
# HELP DCGM_FI_DEV_POWER_USAGE Board power (W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 320.125000
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 200.000000
# HELP DCGM_FI_DEV_POWER_VIOLATION Time throttled by the power limit since the driver was loaded (ns).
# TYPE DCGM_FI_DEV_POWER_VIOLATION counter
DCGM_FI_DEV_POWER_VIOLATION{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 2500000000
# HELP DCGM_FI_DEV_SM_CLOCK SM clock (MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 1980
# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy since the driver was loaded (mJ).
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 123456789
# HELP DCGM_FI_DEV_XID_ERRORS Code of the last Xid since the agent started; it stays until the next one and says nothing about how many there were, see gpuassay_gpu_xid_errors_total (0 is none).
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15",err_code="0",err_msg="No Error"} 0
# HELP DCGM_FI_PROF_SM_ACTIVE Share of SM-time with at least one warp resident (0-1).
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 0.874213
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 0.250000
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1",hostname="node1",DCGM_FI_DRIVER_VERSION="570.86.15"} 0.250000
)";

constexpr std::string_view kGolden49 =
    R"(# HELP DCGM_FI_DEV_FB_FREE_BYTES Device memory nobody has (bytes).
# TYPE DCGM_FI_DEV_FB_FREE_BYTES gauge
DCGM_FI_DEV_FB_FREE_BYTES{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 18403556376
# HELP DCGM_FI_DEV_FB_RESERVED_BYTES Device memory the driver keeps for itself (bytes).
# TYPE DCGM_FI_DEV_FB_RESERVED_BYTES gauge
DCGM_FI_DEV_FB_RESERVED_BYTES{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 545259520
# HELP DCGM_FI_DEV_FB_CAPACITY_BYTES Device memory, all of it (bytes).
# TYPE DCGM_FI_DEV_FB_CAPACITY_BYTES gauge
DCGM_FI_DEV_FB_CAPACITY_BYTES{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 85520809984
# HELP DCGM_FI_DEV_FB_USED_BYTES Device memory handed out to processes (bytes).
# TYPE DCGM_FI_DEV_FB_USED_BYTES gauge
DCGM_FI_DEV_FB_USED_BYTES{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 66571994088
DCGM_FI_DEV_FB_USED_BYTES{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 314572800
DCGM_FI_DEV_FB_USED_BYTES{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 734003200
# HELP DCGM_FI_DEV_FB_USED_RATIO Used share of the device memory that is not reserved (0-1).
# TYPE DCGM_FI_DEV_FB_USED_RATIO gauge
DCGM_FI_DEV_FB_USED_RATIO{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 0.783425
# HELP DCGM_FI_DEV_GPU_TEMP_CELSIUS GPU temperature (C).
# TYPE DCGM_FI_DEV_GPU_TEMP_CELSIUS gauge
DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 41
# HELP DCGM_FI_DEV_GPU_UTIL_RATIO Share of time in which any kernel was resident (0-1).
# TYPE DCGM_FI_DEV_GPU_UTIL_RATIO gauge
DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 0.960000
# HELP DCGM_FI_DEV_BOARD_POWER_WATTS Board power (W).
# TYPE DCGM_FI_DEV_BOARD_POWER_WATTS gauge
DCGM_FI_DEV_BOARD_POWER_WATTS{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 320.125000
DCGM_FI_DEV_BOARD_POWER_WATTS{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 200.000000
# HELP DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL Time throttled by the power limit since the driver was loaded (s).
# TYPE DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL counter
DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 2.500000
# HELP DCGM_FI_DEV_SM_CLOCK_HERTZ SM clock (Hz).
# TYPE DCGM_FI_DEV_SM_CLOCK_HERTZ gauge
DCGM_FI_DEV_SM_CLOCK_HERTZ{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 1980000000
# HELP DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL Energy since the driver was loaded (J).
# TYPE DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL counter
DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 123456
# HELP DCGM_FI_DEV_XID_ERROR Code of the last Xid since the agent started; it stays until the next one and says nothing about how many there were, see gpuassay_gpu_xid_errors_total (0 is none).
# TYPE DCGM_FI_DEV_XID_ERROR gauge
DCGM_FI_DEV_XID_ERROR{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15",err_code="0",err_msg="No Error"} 0
# HELP DCGM_FI_PROF_SM_UTIL_RATIO Share of SM-time with at least one warp resident (0-1).
# TYPE DCGM_FI_PROF_SM_UTIL_RATIO gauge
DCGM_FI_PROF_SM_UTIL_RATIO{gpu="0",UUID="GPU-00000000-0000-4000-8000-000000000001",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 0.874213
DCGM_FI_PROF_SM_UTIL_RATIO{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 0.250000
DCGM_FI_PROF_SM_UTIL_RATIO{gpu="1",UUID="GPU-00000000-0000-4000-8000-000000000002",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1",hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="570.86.15"} 0.250000
)";

TEST(DcgmNames, PrintWhatExporter48Prints) {
  EXPECT_EQ(Render(ExampleSnapshot(), DcgmNames::k48), kGolden48);
}

TEST(DcgmNames, PrintTheNamesAndUnitsOf49) {
  EXPECT_EQ(Render(ExampleSnapshot(), DcgmNames::k49), kGolden49);
}

TEST(DcgmNames, OffPrintsNothing) { EXPECT_EQ(Render(ExampleSnapshot(), DcgmNames::kOff), ""); }

Snapshot OneGpu() {
  Snapshot snapshot;
  Gpu gpu;
  gpu.identity.uuid = "GPU-a";
  gpu.readings.up = 1;
  snapshot.gpus = {gpu};
  return snapshot;
}

constexpr std::string_view kLabels =
    "{gpu=\"0\",UUID=\"GPU-a\",pci_bus_id=\"\",device=\"nvidia0\",modelName=\"\"";

TEST(DcgmNames, HostAndDriverAreLeftOutWhenUnknown) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].readings.temperature_celsius = 41;
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_GPU_TEMP"),
            "DCGM_FI_DEV_GPU_TEMP" + std::string(kLabels) + "} 41\n");
}

TEST(DcgmNames, AnXidNamesItselfAndStays) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].readings.observed_seconds_total = 1;
  snapshot.gpus[0].readings.last_xid = 79;
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_XID_ERRORS"),
            "DCGM_FI_DEV_XID_ERRORS" + std::string(kLabels) +
                ",err_code=\"79\",err_msg=\"GPU has fallen off the bus\"} 79\n");
}

TEST(DcgmNames, AnXidWithoutANameIsAnUnknownError) {
  EXPECT_EQ(DcgmXidMessage(0), "No Error");
  EXPECT_EQ(DcgmXidMessage(999), "Unknown Error");
}

TEST(DcgmNames, NoXidIsZeroOnlyOnceTheGpuIsWatched) {
  EXPECT_EQ(Render(OneGpu(), DcgmNames::k48), "");
}

TEST(DcgmNames, MemoryIsCutToWholeMebibytes) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].readings.memory_used_bytes = 5 * kMebibyte - 1;
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_FB_USED"),
            "DCGM_FI_DEV_FB_USED" + std::string(kLabels) + "} 4\n");
}

TEST(DcgmNames, NvLinkRateIsOfBothDirectionsInTheExportersMegabytes) {
  Snapshot snapshot = OneGpu();
  snapshot.gpus[0].readings.nvlink_transmit_bytes_per_second = 1024 * 1000 * 40.0;
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_NVLINK"), "");
  snapshot.gpus[0].readings.nvlink_receive_bytes_per_second = 1024 * 1000 * 2.0;
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_NVLINK"),
            "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" + std::string(kLabels) + "} 42\n");
}

TEST(DcgmNames, LinkErrorsAreSummedWhenEveryLinkIsKnown) {
  Snapshot snapshot = OneGpu();
  for (std::uint32_t link = 0; link < 2; ++link) {
    snapshot.gpus[0].links.push_back({.link = link, .readings = {}});
    snapshot.gpus[0].links[link].readings.crc_errors_total = 3;
  }
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_NVLINK"),
            "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL" + std::string(kLabels) + "} 6\n");
  snapshot.gpus[0].links[1].readings.crc_errors_total = Missing::kTimedOut;
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_NVLINK"), "");
}

TEST(DcgmNames, ClockEventReasonsAreABitMaskOnceAllAreKnown) {
  Snapshot snapshot = OneGpu();
  GpuReadings& readings = snapshot.gpus[0].readings;
  readings.clock_event_idle = 0;
  readings.clock_event_application_clocks = 0;
  readings.clock_event_software_power_cap = 1;
  readings.clock_event_hardware_slowdown = 0;
  readings.clock_event_sync_boost = 0;
  readings.clock_event_software_thermal = 1;
  readings.clock_event_hardware_thermal = 0;
  readings.clock_event_power_brake = 0;
  EXPECT_EQ(Render(snapshot, DcgmNames::k48), "");
  readings.clock_event_display = 0;
  EXPECT_EQ(Only(Render(snapshot, DcgmNames::k48), "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
            "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" + std::string(kLabels) + "} 36\n");
}

TEST(DcgmNames, AreUniqueAndSortedByTheirOldName) {
  std::set<std::string_view> old_names;
  std::set<std::string_view> new_names;
  std::string_view last;
  for (const DcgmNamePair& pair : DcgmNamePairs()) {
    EXPECT_LT(last, pair.name48);
    last = pair.name48;
    EXPECT_TRUE(old_names.insert(pair.name48).second) << pair.name48;
    EXPECT_TRUE(new_names.insert(pair.name49).second) << pair.name49;
  }
}

// The page lists each pair with how well the new name is known.
TEST(DcgmNames, AreAllInTheDocumentation) {
  std::ifstream file(GPUASSAY_SOURCE_DIR "/docs/dcgm-compatibility.md");
  std::stringstream content;
  content << file.rdbuf();
  const std::string page = content.str();
  for (const DcgmNamePair& pair : DcgmNamePairs()) {
    std::string_view evidence;
    switch (pair.evidence49) {
      case DcgmEvidence::kHeader:
        evidence = "header";
        break;
      case DcgmEvidence::kReleaseNotes:
        evidence = "release notes";
        break;
      case DcgmEvidence::kReported:
        evidence = "reported";
        break;
      case DcgmEvidence::kInferred:
        evidence = "inferred";
        break;
    }
    const std::string row = "| `" + std::string(pair.name48) + "` | `" + std::string(pair.name49) +
                            "` | " + std::string(evidence) + " |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace gpuassay
