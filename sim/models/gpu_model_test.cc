#include "sim/models/gpu_model.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gpuassay::sim {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

TEST(GpuModels, AreTheThirteenThatScenariosName) {
  std::string keys;
  for (const GpuModel& model : AllGpuModels()) {
    keys += std::string(model.key) + " ";
  }
  EXPECT_EQ(keys,
            "tesla-k80 gtx-1080-ti rtx-4090 t4 v100-sxm2-32gb v100-sxm2-16gb a100-sxm4-40gb "
            "a100-sxm4-80gb h100-sxm5-80gb h200 l40s b200 gb200 ");
}

TEST(GpuModels, EachRowIsConsistent) {
  std::set<std::uint32_t> devices;
  for (const GpuModel& model : AllGpuModels()) {
    SCOPED_TRACE(model.key);
    EXPECT_EQ(FindGpuModel(model.key), &model);
    EXPECT_EQ(model.pci_device_id & 0xFFFFU, 0x10DEU);
    EXPECT_TRUE(devices.insert(model.pci_device_id).second);
    EXPECT_EQ(model.vbios_version.size(), 14U);
    EXPECT_GE(model.driver_major_min, 340U);
    EXPECT_TRUE(model.driver_major_max == 0 || model.driver_major_max >= model.driver_major_min);
    EXPECT_EQ(model.cores % model.multiprocessors, 0U);
    EXPECT_LT(model.memory_reserved_bytes, model.memory_bytes / 30);
    EXPECT_EQ(model.memory_bytes % kMiB, 0U);
    EXPECT_LT(model.sm_clock_idle_mhz, model.sm_clock_base_mhz);
    EXPECT_LT(model.sm_clock_base_mhz, model.sm_clock_max_mhz);
    EXPECT_LE(model.memory_clock_idle_mhz, model.memory_clock_max_mhz);
    EXPECT_LT(model.video_clock_idle_mhz, model.video_clock_max_mhz);
    EXPECT_LT(model.power_idle_w, model.power_limit_min_w);
    EXPECT_LE(model.power_limit_min_w, model.power_limit_default_w);
    EXPECT_LE(model.power_limit_default_w, model.power_limit_max_w);
    EXPECT_LT(model.temperature_max_operating_c, model.temperature_slowdown_c);
    EXPECT_LT(model.temperature_slowdown_c, model.temperature_shutdown_c);
    EXPECT_EQ(model.features.memory_temperature, model.memory_temperature_max_c.has_value());
    EXPECT_EQ(model.nvlink_links == 0, model.nvlink_bytes_per_second_per_link == 0);
    EXPECT_FALSE(model.features.row_remapping && model.features.page_retirement);
    // In normal air the card stays below its operating limit.
    EXPECT_LT(25 + model.thermal_rise_c, model.temperature_max_operating_c);
  }
}

// As the driver tells the clock, a memory moves two bits per clock and line.
TEST(GpuModels, BandwidthFollowsFromClockAndBus) {
  for (const GpuModel& model : AllGpuModels()) {
    SCOPED_TRACE(model.key);
    const double per_clock = 2 * model.memory_clock_max_mhz * 1e6 * model.memory_bus_bits / 8;
    EXPECT_NEAR(model.memory_bandwidth_bytes_per_second / per_clock, 1.0, 0.03);
  }
}

TEST(GpuModels, TellWhatTheyCannotDo) {
  EXPECT_FALSE(FindGpuModel("tesla-k80")->features.energy);
  EXPECT_FALSE(FindGpuModel("tesla-k80")->features.process_utilization);
  EXPECT_FALSE(FindGpuModel("gtx-1080-ti")->features.ecc);
  EXPECT_FALSE(FindGpuModel("gtx-1080-ti")->features.energy);
  EXPECT_TRUE(FindGpuModel("gtx-1080-ti")->features.fan);
  EXPECT_FALSE(FindGpuModel("t4")->features.fan);
  EXPECT_FALSE(FindGpuModel("t4")->features.memory_temperature);
  EXPECT_TRUE(FindGpuModel("v100-sxm2-32gb")->features.page_retirement);
  EXPECT_TRUE(FindGpuModel("v100-sxm2-32gb")->features.power_instant_field);
  EXPECT_FALSE(FindGpuModel("v100-sxm2-32gb")->features.power_averaged);
  EXPECT_FALSE(FindGpuModel("a100-sxm4-80gb")->features.power_averaged);
  EXPECT_FALSE(FindGpuModel("a100-sxm4-80gb")->features.gpm);
  EXPECT_TRUE(FindGpuModel("h100-sxm5-80gb")->features.gpm);
  EXPECT_TRUE(FindGpuModel("h100-sxm5-80gb")->features.margin_temperature);
  EXPECT_TRUE(FindGpuModel("l40s")->features.margin_temperature);
  EXPECT_FALSE(FindGpuModel("l40s")->features.gpm);
  EXPECT_EQ(FindGpuModel("no-such-card"), nullptr);
}

TEST(MigProfiles, FitTheirModel) {
  int models = 0;
  for (const GpuModel& model : AllGpuModels()) {
    SCOPED_TRACE(model.key);
    models += model.mig_profiles.empty() ? 0 : 1;
    for (const MigProfile& profile : model.mig_profiles) {
      SCOPED_TRACE(profile.name);
      EXPECT_LE(profile.multiprocessors, model.multiprocessors);
      EXPECT_LE(profile.memory_bytes,
                model.memory_bytes - model.memory_reserved_bytes + 200 * kMiB);
      EXPECT_EQ(profile.name.substr(0, 1), std::to_string(profile.compute_slices));
      // As many as the model claims can really be placed.
      const std::vector<const MigProfile*> most(profile.instances_max, &profile);
      EXPECT_TRUE(PlaceMigInstances(model, most));
      const std::vector<const MigProfile*> more(profile.instances_max + 1, &profile);
      EXPECT_FALSE(PlaceMigInstances(model, more));
    }
  }
  EXPECT_EQ(models, 6);
}

std::string Placed(std::string_view key, const std::vector<std::string_view>& names) {
  const GpuModel& model = *FindGpuModel(key);
  std::vector<const MigProfile*> profiles;
  for (const std::string_view name : names) {
    profiles.push_back(FindMigProfile(model, name));
  }
  const auto placed = PlaceMigInstances(model, profiles);
  if (!placed) {
    return "does not fit";
  }
  std::string out;
  for (const MigPlacement& placement : *placed) {
    out += std::to_string(placement.start) + ":" + std::to_string(placement.gpu_instance_id) + " ";
  }
  return out;
}

TEST(MigPlacement, FindsRoomAsTheDriverDoes) {
  EXPECT_EQ(Placed("a100-sxm4-40gb", {"1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"}),
            "0:7 1:8 2:3 4:1 ");
  EXPECT_EQ(Placed("h100-sxm5-80gb", {"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}),
            "4:1 0:3 2:7 3:8 ");
  EXPECT_EQ(Placed("a100-sxm4-40gb", {"4g.20gb", "3g.20gb"}), "0:1 4:2 ");
  EXPECT_EQ(Placed("a100-sxm4-40gb", {"7g.40gb"}), "0:0 ");
  EXPECT_EQ(Placed("a100-sxm4-40gb", {}), "");
}

TEST(MigPlacement, RefusesWhatDoesNotFit) {
  EXPECT_EQ(Placed("a100-sxm4-40gb", {"4g.20gb", "4g.20gb"}), "does not fit");
  EXPECT_EQ(Placed("a100-sxm4-40gb", {"3g.20gb", "3g.20gb", "1g.5gb"}), "does not fit");
  EXPECT_EQ(Placed("a100-sxm4-40gb", {"7g.40gb", "1g.5gb"}), "does not fit");
  EXPECT_EQ(Placed("a100-sxm4-40gb", {"2g.10gb", "2g.10gb", "2g.10gb", "1g.5gb", "1g.5gb"}),
            "does not fit");
  EXPECT_EQ(Placed("t4", {}), "does not fit");
}

}  // namespace
}  // namespace gpuassay::sim
