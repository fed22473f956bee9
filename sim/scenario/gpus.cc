// `driver:` and `gpus:`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

constexpr std::uint64_t kDriverMajorMin = 340;
constexpr std::uint64_t kDriverMajorMax = 999;

struct CudaOfDriver {
  std::uint32_t major;
  std::string_view cuda;
};
// CUDA version that `nvidia-smi` of a branch prints (NVIDIA's compatibility table).
constexpr std::array<CudaOfDriver, 23> kCudaVersions = {
    {{340, "6.5"},  {352, "7.5"},  {375, "8.0"},  {384, "9.0"},  {390, "9.1"},  {396, "9.2"},
     {410, "10.0"}, {418, "10.1"}, {440, "10.2"}, {450, "11.0"}, {460, "11.2"}, {470, "11.4"},
     {510, "11.6"}, {515, "11.7"}, {520, "11.8"}, {525, "12.0"}, {535, "12.2"}, {550, "12.4"},
     {560, "12.6"}, {570, "12.8"}, {575, "12.9"}, {580, "13.0"}, {590, "13.1"}}};

std::string CudaVersion(std::uint32_t major) {
  std::string_view cuda = kCudaVersions.front().cuda;
  for (const CudaOfDriver& row : kCudaVersions) {
    if (row.major <= major) {
      cuda = row.cuda;
    }
  }
  return std::string(cuda);
}

// "570.86.15": groups of digits, the first of them the branch.
std::optional<std::uint32_t> BranchOf(std::string_view version) {
  std::uint32_t major = 0;
  bool dot = false;
  bool digit = false;
  for (const char c : version) {
    if (c >= '0' && c <= '9') {
      digit = true;
      if (!dot) {
        major = std::min(major * 10 + static_cast<std::uint32_t>(c - '0'), 100'000U);
      }
    } else if (c == '.' && digit) {
      dot = true;
      digit = false;
    } else {
      return std::nullopt;
    }
  }
  return dot && digit ? std::optional(major) : std::nullopt;
}

const GpuModel* ReadModel(Reader& reader, const YamlNode& node, const DriverVersion& driver) {
  std::vector<std::string_view> keys;
  for (const GpuModel& model : AllGpuModels()) {
    keys.push_back(model.key);
  }
  const GpuModel& model = AllGpuModels()[reader.Word(node, "model", keys)];
  if (driver.major < model.driver_major_min) {
    reader.Reject(node, fmt::format("driver {} does not know {} yet; it needs {} or newer",
                                    driver.text, model.key, model.driver_major_min));
  }
  if (model.driver_major_max != 0 && driver.major > model.driver_major_max) {
    reader.Reject(node, fmt::format("driver {} no longer knows {}; the last branch is {}",
                                    driver.text, model.key, model.driver_major_max));
  }
  return &model;
}

// "00000000:1B:00.0", as the driver prints it.
std::string ReadBusId(Reader& reader, const YamlNode& node) {
  constexpr std::string_view kShape = "XXXXXXXX:XX:XX.0";
  const std::string text = reader.Text(node, "pci_bus_id");
  bool good = text.size() == kShape.size();
  for (std::size_t i = 0; good && i < text.size(); ++i) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'A' && text[i] <= 'F');
    good = kShape[i] == 'X' ? hex : text[i] == kShape[i];
  }
  if (!good) {
    reader.Reject(node, "`pci_bus_id` must look like 00000000:1B:00.0, with capital letters");
  }
  return text;
}

// Identifiers belong to one GPU.
void ReadIdentity(Reader& reader, const MapReader& map, bool several, ScenarioGpu& gpu) {
  for (const std::string_view key : {"uuid", "serial", "pci_bus_id"}) {
    const YamlNode* node = map.Find(key);
    if (node != nullptr && several) {
      reader.Reject(*node,
                    fmt::format("`{}` cannot be the same for several GPUs; leave `count`", key));
    }
  }
  if (const YamlNode* node = map.Find("uuid")) {
    gpu.uuid = reader.Text(*node, "uuid", 80);
    if (!gpu.uuid.starts_with("GPU-")) {
      reader.Reject(*node, "`uuid` must start with GPU-");
    }
  }
  if (const YamlNode* node = map.Find("serial")) {
    gpu.serial = reader.Text(*node, "serial", 29);
  }
  if (const YamlNode* node = map.Find("pci_bus_id")) {
    gpu.pci_bus_id = ReadBusId(reader, *node);
  }
}

void ReadSettings(Reader& reader, const MapReader& map, ScenarioGpu& gpu) {
  const GpuModel& model = *gpu.model;
  if (const YamlNode* node = map.Find("mig")) {
    gpu.mig_enabled = true;
    gpu.mig = ReadMigLayout(reader, *node, model);
  }
  if (const YamlNode* node = map.Find("inlet")) {
    gpu.inlet_c = reader.Celsius(*node, "inlet", {0, 90});
  }
  if (const YamlNode* node = map.Find("persistence")) {
    gpu.persistence = reader.Flag(*node, "persistence");
  }
  gpu.ecc = model.features.ecc;
  if (const YamlNode* node = map.Find("ecc")) {
    gpu.ecc = reader.Flag(*node, "ecc");
    if (gpu.ecc && !model.features.ecc) {
      reader.Reject(*node, fmt::format("{} has no ECC", model.key));
    }
  }
  if (const YamlNode* node = map.Find("power_limit")) {
    gpu.power_limit_w =
        reader.Watts(*node, "power_limit", {model.power_limit_min_w, model.power_limit_max_w});
  }
}

void ReadGpuEntry(Reader& reader, const YamlNode& node, const DriverVersion& driver,
                  std::vector<ScenarioGpu>& gpus) {
  constexpr std::array<std::string_view, 10> kKeys = {
      "model", "count", "uuid", "serial",      "pci_bus_id",
      "mig",   "inlet", "ecc",  "persistence", "power_limit"};
  MapReader map(reader, node, "a GPU", kKeys);
  const YamlNode* model = map.Require("model");
  if (model == nullptr || reader.failed()) {
    return;
  }
  ScenarioGpu gpu;
  gpu.model = ReadModel(reader, *model, driver);
  std::uint64_t count = 1;
  if (const YamlNode* node_count = map.Find("count")) {
    count = reader.Integer(*node_count, "count", 1, kScenarioGpusMax);
  }
  ReadIdentity(reader, map, count > 1, gpu);
  ReadSettings(reader, map, gpu);
  if (gpus.size() + count > kScenarioGpusMax) {
    reader.Reject(node, fmt::format("more than {} GPUs", kScenarioGpusMax));
    return;
  }
  gpus.insert(gpus.end(), count, gpu);
}

}  // namespace

DriverVersion ReadDriver(Reader& reader, const YamlNode& node) {
  constexpr std::array<std::string_view, 2> kKeys = {"version", "cuda"};
  DriverVersion driver;
  const YamlNode* version = &node;
  const YamlNode* cuda = nullptr;
  if (node.kind != YamlNode::Kind::kScalar) {
    MapReader map(reader, node, "the driver", kKeys);
    version = map.Require("version");
    cuda = map.Find("cuda");
  }
  if (version == nullptr) {
    return driver;
  }
  driver.text = reader.Text(*version, "version", 79);
  const std::optional<std::uint32_t> major = BranchOf(driver.text);
  if (!major || *major < kDriverMajorMin || *major > kDriverMajorMax) {
    reader.Reject(*version, fmt::format("the driver's version must look like 570.86.15, with a "
                                        "branch from {} to {}",
                                        kDriverMajorMin, kDriverMajorMax));
    return driver;
  }
  driver.major = *major;
  driver.cuda = CudaVersion(driver.major);
  if (cuda != nullptr) {
    driver.cuda = reader.Text(*cuda, "cuda", 8);
    if (!BranchOf(driver.cuda) || std::ranges::count(driver.cuda, '.') != 1) {
      reader.Reject(*cuda, "`cuda` must look like 12.8");
    }
  }
  return driver;
}

std::vector<ScenarioGpu> ReadGpus(Reader& reader, const YamlNode& node,
                                  const DriverVersion& driver) {
  std::vector<ScenarioGpu> gpus;
  if (node.kind != YamlNode::Kind::kSequence || node.items.empty()) {
    reader.Reject(node, "`gpus` must be a list such as [{model: h100-sxm5-80gb, count: 8}]");
    return gpus;
  }
  std::set<std::string> uuids;
  std::set<std::string> bus_ids;
  for (const YamlNode& item : node.items) {
    ReadGpuEntry(reader, item, driver, gpus);
    if (reader.failed()) {
      break;
    }
    const ScenarioGpu& gpu = gpus.back();
    if (!gpu.uuid.empty() && !uuids.insert(gpu.uuid).second) {
      reader.Reject(item, fmt::format("two GPUs have the uuid {}", gpu.uuid));
    }
    if (!gpu.pci_bus_id.empty() && !bus_ids.insert(gpu.pci_bus_id).second) {
      reader.Reject(item, fmt::format("two GPUs have the pci_bus_id {}", gpu.pci_bus_id));
    }
  }
  return gpus;
}

std::vector<std::string> ReadMigLayout(Reader& reader, const YamlNode& node,
                                       const GpuModel& model) {
  std::vector<std::string> layout;
  if (model.mig_profiles.empty()) {
    reader.Reject(node, fmt::format("{} cannot do MIG", model.key));
    return layout;
  }
  if (node.kind != YamlNode::Kind::kSequence) {
    reader.Reject(node,
                  "`mig` must be a list of profiles, such as [1g.10gb, 3g.40gb]; [] is MIG "
                  "on with no instances");
    return layout;
  }
  std::vector<std::string_view> names;
  for (const MigProfile& profile : model.mig_profiles) {
    names.push_back(profile.name);
  }
  std::vector<const MigProfile*> profiles;
  for (const YamlNode& item : node.items) {
    YamlNode name = item;
    std::size_t count = 1;
    const std::size_t times = item.text.find(" x ");
    if (times == 1 && item.text[0] >= '1' && item.text[0] <= '7') {
      count = static_cast<std::size_t>(item.text[0] - '0');
      name.text = item.text.substr(times + 3);
    }
    profiles.insert(profiles.end(), count, &model.mig_profiles[reader.Word(name, "mig", names)]);
    if (reader.failed() || profiles.size() > kMigInstancesMax) {
      break;
    }
  }
  if (!reader.failed() && !PlaceMigInstances(model, profiles)) {
    reader.Reject(node, fmt::format("these MIG instances do not fit together on {}; it has 7 "
                                    "compute and 8 memory slices",
                                    model.key));
    return layout;
  }
  for (const MigProfile* profile : profiles) {
    layout.emplace_back(profile->name);
  }
  return layout;
}

}  // namespace gpuassay::sim
