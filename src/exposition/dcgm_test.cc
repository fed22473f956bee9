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

std::string File(const std::string& path) {
  std::ifstream file(std::string(GPUASSAY_SOURCE_DIR) + "/" + path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
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

TEST(DcgmNames, PrintWhatExporter48Prints) {
  EXPECT_EQ(Render(ExampleSnapshot(), DcgmNames::k48), File("src/exposition/golden/dcgm_4.8.prom"));
}

TEST(DcgmNames, PrintTheNamesAndUnitsOf49) {
  EXPECT_EQ(Render(ExampleSnapshot(), DcgmNames::k49), File("src/exposition/golden/dcgm_4.9.prom"));
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
  const std::string page = File("docs/dcgm-compatibility.md");
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
