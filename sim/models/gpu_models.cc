// The table of GPU models.
//
// Sources, by mark in the rows:
//   [q]    a public `nvidia-smi -q` or `-q -x` of that very card (captures of
//          utkuozdemir/nvidia_gpu_exporter and NVIDIA/k8s-test-infra, logs in public issues)
//   [d]    a public dcgm-exporter scrape of that card (run-ai/fake-gpu-operator, NVIDIA/aicr)
//   [s]    NVIDIA's data sheet or white paper of the product
//   [mig]  NVIDIA's MIG user guide
//   [?]    not verified: taken from the nearest card of the family or from memory
// Hopper and newer report thermal thresholds as margins; the absolute limits here are the reported
// temperature + margin (H100: 41 + 46 = 87 and 29 + 58 = 87), less the margins of the thresholds.
#include <algorithm>
#include <array>

#include "sim/models/gpu_model.h"
#include "sim/models/model_parts.h"

namespace gpuassay::sim {
namespace {

using namespace parts;

constexpr double kGB = 1e9;
constexpr double kSixth = 1.0 / 6.0;

// One half of the board: a K80 is two GPUs. Name, ids, VBIOS [q]; limits and clocks [s]; the last
// branch is 470 (NVIDIA's Kepler end-of-support notice); thresholds, idle values [?].
constexpr GpuModel kK80 = {
    .key = "tesla-k80",
    .name = "Tesla K80",
    .architecture = Architecture::kKepler,
    .compute_capability_major = 3,
    .compute_capability_minor = 7,
    .pci_device_id = 0x102D10DE,
    .pci_subsystem_id = 0x106C10DE,
    .vbios_version = "80.21.1F.00.02",
    .driver_major_min = 340,
    .driver_major_max = 470,
    .multiprocessors = 13,
    .cores = 2496,
    .warps_per_sm_max = 64,
    .memory_bytes = 11441 * kMiB,
    .memory_reserved_bytes = 62 * kMiB,
    .bar1_bytes = 16384 * kMiB,
    .memory_bus_bits = 384,
    .memory_bandwidth_bytes_per_second = 240.5 * kGB,
    .sm_clock_idle_mhz = 324,
    .sm_clock_base_mhz = 562,
    .sm_clock_max_mhz = 875,
    .memory_clock_idle_mhz = 324,
    .memory_clock_max_mhz = 2505,
    .video_clock_idle_mhz = 405,
    .video_clock_max_mhz = 540,
    .power_idle_w = 26,
    .power_limit_default_w = 149,
    .power_limit_min_w = 100,
    .power_limit_max_w = 175,
    .temperature_max_operating_c = 82,
    .temperature_slowdown_c = 88,
    .temperature_shutdown_c = 93,
    .memory_temperature_max_c = std::nullopt,
    .pcie_generation = 3,
    .pcie_width = 16,
    .nvlink_links = 0,
    .nvlink_version = 0,
    .nvlink_bytes_per_second_per_link = 0,
    .utilization_period_s = 1,
    .thermal_rise_c = 45,
    .pcie_idles_down = true,
    .clocks_idle_in_p0 = false,
    .features = KeplerFeatures(),
    .mig_profiles = {},
};

// Clocks, power limits, thresholds, VBIOS [q]; cores, bandwidth [s]; maximum operating temperature
// is the target temperature (84) because the card reports none [q]; 580 is the last branch
// (NVIDIA's notice for Maxwell, Pascal, Volta); reserve [?].
constexpr GpuModel kGtx1080Ti = {
    .key = "gtx-1080-ti",
    .name = "NVIDIA GeForce GTX 1080 Ti",
    .architecture = Architecture::kPascal,
    .compute_capability_major = 6,
    .compute_capability_minor = 1,
    .pci_device_id = 0x1B0610DE,
    .pci_subsystem_id = 0x120F10DE,
    .vbios_version = "86.02.39.00.01",
    .driver_major_min = 378,
    .driver_major_max = 580,
    .multiprocessors = 28,
    .cores = 3584,
    .warps_per_sm_max = 64,
    .memory_bytes = 11264 * kMiB,
    .memory_reserved_bytes = 86 * kMiB,
    .bar1_bytes = 256 * kMiB,
    .memory_bus_bits = 352,
    .memory_bandwidth_bytes_per_second = 484.4 * kGB,
    .sm_clock_idle_mhz = 139,
    .sm_clock_base_mhz = 1480,
    .sm_clock_max_mhz = 1911,
    .memory_clock_idle_mhz = 405,
    .memory_clock_max_mhz = 5505,
    .video_clock_idle_mhz = 544,
    .video_clock_max_mhz = 1620,
    .power_idle_w = 9,
    .power_limit_default_w = 250,
    .power_limit_min_w = 125,
    .power_limit_max_w = 300,
    .temperature_max_operating_c = 84,
    .temperature_slowdown_c = 93,
    .temperature_shutdown_c = 96,
    .memory_temperature_max_c = std::nullopt,
    .pcie_generation = 3,
    .pcie_width = 16,
    .nvlink_links = 0,
    .nvlink_version = 0,
    .nvlink_bytes_per_second_per_link = 0,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 54,
    .pcie_idles_down = true,
    .clocks_idle_in_p0 = false,
    .features = PascalGeForceFeatures(),
    .mig_profiles = {},
};

// Cores, bandwidth, 450 W [s]; 10501 MHz, 150-600 W and P-states from public captures [q];
// thresholds are the RTX 4080 SUPER's (101/96/90) [?]; subsystem is a Founders Edition's [?].
constexpr GpuModel kRtx4090 = {
    .key = "rtx-4090",
    .name = "NVIDIA GeForce RTX 4090",
    .architecture = Architecture::kAda,
    .compute_capability_major = 8,
    .compute_capability_minor = 9,
    .pci_device_id = 0x268410DE,
    .pci_subsystem_id = 0x167C10DE,
    .vbios_version = "95.02.18.80.5F",
    .driver_major_min = 520,
    .driver_major_max = 0,
    .multiprocessors = 128,
    .cores = 16384,
    .warps_per_sm_max = 48,
    .memory_bytes = 24564 * kMiB,
    .memory_reserved_bytes = 483 * kMiB,
    .bar1_bytes = 32768 * kMiB,
    .memory_bus_bits = 384,
    .memory_bandwidth_bytes_per_second = 1008 * kGB,
    .sm_clock_idle_mhz = 210,
    .sm_clock_base_mhz = 2235,
    .sm_clock_max_mhz = 3105,
    .memory_clock_idle_mhz = 405,
    .memory_clock_max_mhz = 10501,
    .video_clock_idle_mhz = 1185,
    .video_clock_max_mhz = 2415,
    .power_idle_w = 24,
    .power_limit_default_w = 450,
    .power_limit_min_w = 150,
    .power_limit_max_w = 600,
    .temperature_max_operating_c = 90,
    .temperature_slowdown_c = 96,
    .temperature_shutdown_c = 101,
    .memory_temperature_max_c = std::nullopt,
    .pcie_generation = 4,
    .pcie_width = 16,
    .nvlink_links = 0,
    .nvlink_version = 0,
    .nvlink_bytes_per_second_per_link = 0,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 42,
    .pcie_idles_down = true,
    .clocks_idle_in_p0 = false,
    .features = AdaGeForceFeatures(),
    .mig_profiles = {},
};

// Ids, VBIOS, thresholds 85/93/96, memory, clocks [q]; idle power, reserve [d]; the rest [s].
constexpr GpuModel kT4 = {
    .key = "t4",
    .name = "Tesla T4",
    .architecture = Architecture::kTuring,
    .compute_capability_major = 7,
    .compute_capability_minor = 5,
    .pci_device_id = 0x1EB810DE,
    .pci_subsystem_id = 0x12A210DE,
    .vbios_version = "90.04.84.00.06",
    .driver_major_min = 410,
    .driver_major_max = 0,
    .multiprocessors = 40,
    .cores = 2560,
    .warps_per_sm_max = 32,
    .memory_bytes = 15360 * kMiB,
    .memory_reserved_bytes = 448 * kMiB,
    .bar1_bytes = 256 * kMiB,
    .memory_bus_bits = 256,
    .memory_bandwidth_bytes_per_second = 320 * kGB,
    .sm_clock_idle_mhz = 300,
    .sm_clock_base_mhz = 585,
    .sm_clock_max_mhz = 1590,
    .memory_clock_idle_mhz = 405,
    .memory_clock_max_mhz = 5001,
    .video_clock_idle_mhz = 540,
    .video_clock_max_mhz = 1470,
    .power_idle_w = 14.5,
    .power_limit_default_w = 70,
    .power_limit_min_w = 60,
    .power_limit_max_w = 70,
    .temperature_max_operating_c = 85,
    .temperature_slowdown_c = 93,
    .temperature_shutdown_c = 96,
    .memory_temperature_max_c = std::nullopt,
    .pcie_generation = 3,
    .pcie_width = 16,
    .nvlink_links = 0,
    .nvlink_version = 0,
    .nvlink_bytes_per_second_per_link = 0,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 48,
    .pcie_idles_down = true,
    .clocks_idle_in_p0 = false,
    .features = TuringFeatures(),
    .mig_profiles = {},
};

// Thresholds 83/87/90 and 85, power limits, clocks [q] (V100-SXM2); ids, VBIOS of the 32 GB board
// and the reserve [?]; the rest [s]. 580 is the last branch (NVIDIA's notice).
constexpr GpuModel kV100Of32 = {
    .key = "v100-sxm2-32gb",
    .name = "Tesla V100-SXM2-32GB",
    .architecture = Architecture::kVolta,
    .compute_capability_major = 7,
    .compute_capability_minor = 0,
    .pci_device_id = 0x1DB510DE,
    .pci_subsystem_id = 0x124910DE,
    .vbios_version = "88.00.48.00.02",
    .driver_major_min = 390,
    .driver_major_max = 580,
    .multiprocessors = 80,
    .cores = 5120,
    .warps_per_sm_max = 64,
    .memory_bytes = 32768 * kMiB,
    .memory_reserved_bytes = 270 * kMiB,
    .bar1_bytes = 32768 * kMiB,
    .memory_bus_bits = 4096,
    .memory_bandwidth_bytes_per_second = 898 * kGB,
    .sm_clock_idle_mhz = 135,
    .sm_clock_base_mhz = 1290,
    .sm_clock_max_mhz = 1530,
    .memory_clock_idle_mhz = 877,
    .memory_clock_max_mhz = 877,
    .video_clock_idle_mhz = 555,
    .video_clock_max_mhz = 1372,
    .power_idle_w = 42,
    .power_limit_default_w = 300,
    .power_limit_min_w = 150,
    .power_limit_max_w = 300,
    .temperature_max_operating_c = 83,
    .temperature_slowdown_c = 87,
    .temperature_shutdown_c = 90,
    .memory_temperature_max_c = 85,
    .pcie_generation = 3,
    .pcie_width = 16,
    .nvlink_links = 6,
    .nvlink_version = 2,
    .nvlink_bytes_per_second_per_link = 25.781 * kGB,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 42,
    .pcie_idles_down = false,
    .clocks_idle_in_p0 = true,
    .features = kTesla,
    .mig_profiles = {},
};

constexpr GpuModel V100Of16() {
  GpuModel model = kV100Of32;
  model.key = "v100-sxm2-16gb";
  model.name = "Tesla V100-SXM2-16GB";
  model.pci_device_id = 0x1DB110DE;
  model.pci_subsystem_id = 0x121210DE;
  model.vbios_version = "88.00.18.00.01";  // [q]
  model.memory_bytes = 16384 * kMiB;
  model.bar1_bytes = 16384 * kMiB;
  return model;
}

// All [q] but cores, bandwidth, NVLink [s].
constexpr GpuModel kA100Of40 = {
    .key = "a100-sxm4-40gb",
    .name = "NVIDIA A100-SXM4-40GB",
    .architecture = Architecture::kAmpere,
    .compute_capability_major = 8,
    .compute_capability_minor = 0,
    .pci_device_id = 0x20B010DE,
    .pci_subsystem_id = 0x134F10DE,
    .vbios_version = "92.00.45.00.03",
    .driver_major_min = 450,
    .driver_major_max = 0,
    .multiprocessors = 108,
    .cores = 6912,
    .warps_per_sm_max = 64,
    .memory_bytes = 40960 * kMiB,
    .memory_reserved_bytes = 518 * kMiB,
    .bar1_bytes = 65536 * kMiB,
    .memory_bus_bits = 5120,
    .memory_bandwidth_bytes_per_second = 1555 * kGB,
    .sm_clock_idle_mhz = 210,
    .sm_clock_base_mhz = 1095,
    .sm_clock_max_mhz = 1410,
    .memory_clock_idle_mhz = 1215,
    .memory_clock_max_mhz = 1215,
    .video_clock_idle_mhz = 585,
    .video_clock_max_mhz = 1290,
    .power_idle_w = 48,
    .power_limit_default_w = 400,
    .power_limit_min_w = 100,
    .power_limit_max_w = 400,
    .temperature_max_operating_c = 85,
    .temperature_slowdown_c = 89,
    .temperature_shutdown_c = 92,
    .memory_temperature_max_c = 95,
    .pcie_generation = 4,
    .pcie_width = 16,
    .nvlink_links = 12,
    .nvlink_version = 3,
    .nvlink_bytes_per_second_per_link = 25 * kGB,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 42,
    .pcie_idles_down = false,
    .clocks_idle_in_p0 = true,
    .features = kGa100,
    .mig_profiles = kMigA100Of40,
};

// Clocks, power limits [q]; ids, VBIOS, reserve [?]; memory, bandwidth [s].
constexpr GpuModel A100Of80() {
  GpuModel model = kA100Of40;
  model.key = "a100-sxm4-80gb";
  model.name = "NVIDIA A100-SXM4-80GB";
  model.pci_device_id = 0x20B210DE;
  model.pci_subsystem_id = 0x147F10DE;
  model.vbios_version = "92.00.9E.00.01";
  model.memory_bytes = 81920 * kMiB;
  model.memory_reserved_bytes = 669 * kMiB;
  model.bar1_bytes = 131072 * kMiB;
  model.memory_bandwidth_bytes_per_second = 2039 * kGB;
  model.sm_clock_base_mhz = 1155;
  model.memory_clock_idle_mhz = 1593;
  model.memory_clock_max_mhz = 1593;
  model.power_idle_w = 58;
  model.mig_profiles = kMigA100Of80;
  return model;
}

// All [q] but cores, bandwidth, base clock [s]; memory limit 95 [?] (only a margin is reported).
// Rise over the inlet: a public 3 Hz trace of eight 700 W cards (karpathy/nanoGPT pull request
// 643).
constexpr GpuModel kH100Of80 = {
    .key = "h100-sxm5-80gb",
    .name = "NVIDIA H100 80GB HBM3",
    .architecture = Architecture::kHopper,
    .compute_capability_major = 9,
    .compute_capability_minor = 0,
    .pci_device_id = 0x233010DE,
    .pci_subsystem_id = 0x16C110DE,
    .vbios_version = "96.00.99.00.01",
    .driver_major_min = 525,
    .driver_major_max = 0,
    .multiprocessors = 132,
    .cores = 16896,
    .warps_per_sm_max = 64,
    .memory_bytes = 81559 * kMiB,
    .memory_reserved_bytes = 479 * kMiB,
    .bar1_bytes = 131072 * kMiB,
    .memory_bus_bits = 5120,
    .memory_bandwidth_bytes_per_second = 3352 * kGB,
    .sm_clock_idle_mhz = 345,
    .sm_clock_base_mhz = 1590,
    .sm_clock_max_mhz = 1980,
    .memory_clock_idle_mhz = 2619,
    .memory_clock_max_mhz = 2619,
    .video_clock_idle_mhz = 765,
    .video_clock_max_mhz = 1545,
    .power_idle_w = 68,
    .power_limit_default_w = 700,
    .power_limit_min_w = 200,
    .power_limit_max_w = 700,
    .temperature_max_operating_c = 87,
    .temperature_slowdown_c = 89,
    .temperature_shutdown_c = 95,
    .memory_temperature_max_c = 95,
    .pcie_generation = 5,
    .pcie_width = 16,
    .nvlink_links = 18,
    .nvlink_version = 4,
    .nvlink_bytes_per_second_per_link = 26.562 * kGB,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 46,
    .pcie_idles_down = false,
    .clocks_idle_in_p0 = true,
    .features = kHopper,
    .mig_profiles = kMigH100Of80,
};

// All [q] but cores, bandwidth [s].
constexpr GpuModel H200() {
  GpuModel model = kH100Of80;
  model.key = "h200";
  model.name = "NVIDIA H200";
  model.pci_device_id = 0x233510DE;
  model.pci_subsystem_id = 0x18BE10DE;
  model.vbios_version = "96.00.A5.00.03";
  model.driver_major_min = 550;
  model.memory_bytes = 143771 * kMiB;
  model.memory_reserved_bytes = 614 * kMiB;
  model.bar1_bytes = 262144 * kMiB;
  model.memory_bus_bits = 6144;
  model.memory_bandwidth_bytes_per_second = 4917 * kGB;
  model.memory_clock_idle_mhz = 3201;
  model.memory_clock_max_mhz = 3201;
  model.power_idle_w = 77;
  model.mig_profiles = kMigH200;
  return model;
}

// All [q] but cores, bandwidth [s]; idle clocks, power [d].
constexpr GpuModel kL40S = {
    .key = "l40s",
    .name = "NVIDIA L40S",
    .architecture = Architecture::kAda,
    .compute_capability_major = 8,
    .compute_capability_minor = 9,
    .pci_device_id = 0x26B910DE,
    .pci_subsystem_id = 0x185110DE,
    .vbios_version = "95.02.66.00.15",
    .driver_major_min = 535,
    .driver_major_max = 0,
    .multiprocessors = 142,
    .cores = 18176,
    .warps_per_sm_max = 48,
    .memory_bytes = 46068 * kMiB,
    .memory_reserved_bytes = 609 * kMiB,
    .bar1_bytes = 65536 * kMiB,
    .memory_bus_bits = 384,
    .memory_bandwidth_bytes_per_second = 864 * kGB,
    .sm_clock_idle_mhz = 210,
    .sm_clock_base_mhz = 1110,
    .sm_clock_max_mhz = 2520,
    .memory_clock_idle_mhz = 405,
    .memory_clock_max_mhz = 9001,
    .video_clock_idle_mhz = 1185,
    .video_clock_max_mhz = 1965,
    .power_idle_w = 35,
    .power_limit_default_w = 350,
    .power_limit_min_w = 100,
    .power_limit_max_w = 350,
    .temperature_max_operating_c = 88,
    .temperature_slowdown_c = 90,
    .temperature_shutdown_c = 93,
    .memory_temperature_max_c = std::nullopt,
    .pcie_generation = 4,
    .pcie_width = 16,
    .nvlink_links = 0,
    .nvlink_version = 0,
    .nvlink_bytes_per_second_per_link = 0,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 46,
    .pcie_idles_down = false,
    .clocks_idle_in_p0 = false,
    .features = AdaFeatures(),
    .mig_profiles = {},
};

// All [q] but cores, bandwidth [s]; video maximum, memory limit [?].
constexpr GpuModel kGb200 = {
    .key = "gb200",
    .name = "NVIDIA GB200",
    .architecture = Architecture::kBlackwell,
    .compute_capability_major = 10,
    .compute_capability_minor = 0,
    .pci_device_id = 0x294110DE,
    .pci_subsystem_id = 0x204610DE,
    .vbios_version = "97.00.B9.00.69",
    .driver_major_min = 570,
    .driver_major_max = 0,
    .multiprocessors = 152,
    .cores = 19456,
    .warps_per_sm_max = 64,
    .memory_bytes = 189471 * kMiB,
    .memory_reserved_bytes = 742 * kMiB,
    .bar1_bytes = 262144 * kMiB,
    .memory_bus_bits = 8192,
    .memory_bandwidth_bytes_per_second = 8000 * kGB,
    .sm_clock_idle_mhz = 120,
    .sm_clock_base_mhz = 1665,
    .sm_clock_max_mhz = 2062,
    .memory_clock_idle_mhz = 3996,
    .memory_clock_max_mhz = 3996,
    .video_clock_idle_mhz = 600,
    .video_clock_max_mhz = 1890,
    .power_idle_w = 164,
    .power_limit_default_w = 1200,
    .power_limit_min_w = 200,
    .power_limit_max_w = 1200,
    .temperature_max_operating_c = 87,
    .temperature_slowdown_c = 89,
    .temperature_shutdown_c = 92,
    .memory_temperature_max_c = 95,
    .pcie_generation = 5,
    .pcie_width = 16,
    .nvlink_links = 18,
    .nvlink_version = 5,
    .nvlink_bytes_per_second_per_link = 53.125 * kGB,
    .utilization_period_s = kSixth,
    .thermal_rise_c = 40,
    .pcie_idles_down = false,
    .clocks_idle_in_p0 = true,
    .features = kHopper,
    .mig_profiles = kMigGb200,
};

// 1000 W, memory, bandwidth [s]; ids, VBIOS, clocks, idle power [?]: near GB200's.
constexpr GpuModel B200() {
  GpuModel model = kGb200;
  model.key = "b200";
  model.name = "NVIDIA B200";
  model.pci_device_id = 0x290110DE;
  model.pci_subsystem_id = 0x199910DE;
  model.vbios_version = "97.00.88.00.0F";
  model.multiprocessors = 148;
  model.cores = 18944;
  model.memory_bytes = 183359 * kMiB;
  model.memory_reserved_bytes = 718 * kMiB;
  model.sm_clock_max_mhz = 1965;
  model.power_idle_w = 142;
  model.power_limit_default_w = 1000;
  model.power_limit_max_w = 1000;
  model.mig_profiles = kMigB200;
  return model;
}

constexpr std::array<GpuModel, 13> kModels = {
    kK80,       kGtx1080Ti, kRtx4090, kT4,   kV100Of32, V100Of16(), kA100Of40,
    A100Of80(), kH100Of80,  H200(),   kL40S, B200(),    kGb200,
};

}  // namespace

std::span<const GpuModel> AllGpuModels() { return kModels; }

const GpuModel* FindGpuModel(std::string_view key) {
  const auto found = std::ranges::find(kModels, key, &GpuModel::key);
  return found == kModels.end() ? nullptr : &*found;
}

std::string_view ArchitectureName(Architecture architecture) {
  switch (architecture) {
    case Architecture::kKepler:
      return "Kepler";
    case Architecture::kPascal:
      return "Pascal";
    case Architecture::kVolta:
      return "Volta";
    case Architecture::kTuring:
      return "Turing";
    case Architecture::kAmpere:
      return "Ampere";
    case Architecture::kAda:
      return "Ada Lovelace";
    case Architecture::kHopper:
      return "Hopper";
    case Architecture::kBlackwell:
      return "Blackwell";
  }
  return "unknown";
}

}  // namespace gpuassay::sim
