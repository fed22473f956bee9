// What a GPU model really is: limits, clocks, memory, links, thresholds, and what it does not
// support. One row per model in gpu_models.cc, each with its sources. Shared by the engine
// (physics), the simulated driver (answers) and, later, the roofline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace gpuassay::sim {

enum class Architecture { kKepler, kPascal, kVolta, kTuring, kAmpere, kAda, kHopper, kBlackwell };

// A MIG profile of a model. `slices` of memory and compute as the driver counts them.
struct MigProfile {
  std::string_view name;  // "1g.10gb"
  std::uint32_t compute_slices;
  std::uint32_t memory_slices;
  std::uint32_t multiprocessors;
  std::uint64_t memory_bytes;
  std::uint32_t instances_max;
};

// What the model can answer. False means NVML_ERROR_NOT_SUPPORTED.
struct Features {
  bool utilization = true;
  bool power = true;                // power usage and limits
  bool energy = true;               // total energy: Volta and newer
  bool power_averaged = true;       // 1 s average (Ampere but GA100, and newer), else a moment
  bool power_instant_field = true;  // field 186
  bool ecc = true;
  bool row_remapping = true;  // Ampere data centre and newer; else page retirement
  bool page_retirement = false;
  bool memory_temperature = true;
  bool margin_temperature = false;  // T.Limit: thresholds are margins, classic ones not reported
  bool fan = false;                 // actively cooled
  bool process_utilization = true;
  bool encoder_decoder = true;
  bool gpm = false;  // Hopper and newer
  bool clock_event_reasons = true;
  bool application_clocks = true;
  bool serial = true;
  bool pcie_throughput = true;
};

struct GpuModel {
  std::string_view key;   // in scenarios: "h100-sxm5-80gb"
  std::string_view name;  // as the driver says it: "NVIDIA H100 80GB HBM3"
  Architecture architecture;
  std::uint32_t compute_capability_major;
  std::uint32_t compute_capability_minor;
  std::uint32_t pci_device_id;  // device << 16 | vendor 0x10DE
  std::uint32_t pci_subsystem_id;
  std::string_view vbios_version;
  std::uint32_t driver_major_min;  // first driver branch that knows the model
  std::uint32_t driver_major_max;  // last one; 0: still supported
  std::uint32_t multiprocessors;
  std::uint32_t cores;  // CUDA cores
  std::uint32_t warps_per_sm_max;
  std::uint64_t memory_bytes;           // total as the driver reports it
  std::uint64_t memory_reserved_bytes;  // the driver's own
  std::uint64_t bar1_bytes;
  std::uint32_t memory_bus_bits;
  double memory_bandwidth_bytes_per_second;
  double sm_clock_idle_mhz, sm_clock_base_mhz, sm_clock_max_mhz;
  double memory_clock_idle_mhz, memory_clock_max_mhz;
  double video_clock_idle_mhz, video_clock_max_mhz;
  double power_idle_w, power_limit_default_w, power_limit_min_w, power_limit_max_w;
  double temperature_max_operating_c, temperature_slowdown_c, temperature_shutdown_c;
  std::optional<double> memory_temperature_max_c;
  std::uint32_t pcie_generation, pcie_width;
  std::uint32_t nvlink_links;
  std::uint32_t nvlink_version;
  double nvlink_bytes_per_second_per_link;  // one direction
  double utilization_period_s;              // of the driver's sampler, 1/6 or 1
  double thermal_rise_c;                    // steady rise over the inlet at the default power limit
  bool pcie_idles_down;                     // the link falls to generation 1 when the GPU idles
  bool clocks_idle_in_p0;                   // stays in P0 with full memory clock when it idles
  Features features;
  std::span<const MigProfile> mig_profiles;  // empty: no MIG
};

std::span<const GpuModel> AllGpuModels();
const GpuModel* FindGpuModel(std::string_view key);  // nullptr when unknown
std::string_view ArchitectureName(Architecture architecture);

// Finds a profile of the model by name; nullptr when it has none of that name.
const MigProfile* FindMigProfile(const GpuModel& model, std::string_view name);

// Where an instance lies: its first memory slice, and the GPU instance ID that the driver gives it
// (7g: 0; 4g and 3g: 1, 2; 2g: 3..6; 1g: 7..14, as seen on A100 and H100).
struct MigPlacement {
  std::uint32_t start = 0;
  std::uint32_t gpu_instance_id = 0;
};
inline constexpr std::size_t kMigInstancesMax = 7;
// Places the instances in the order given; nullopt when the layout does not fit on the model. Rules
// of the MIG user guide: eight memory slices; instances of 2 start at even slices, of 4 at 0 and 4,
// "4g" only at 0, "2g" not at 6, "1g" of one slice not at 7.
std::optional<std::vector<MigPlacement>> PlaceMigInstances(
    const GpuModel& model, std::span<const MigProfile* const> profiles);

}  // namespace gpuassay::sim
