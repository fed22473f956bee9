// `faults:`.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

enum class Unit { kNone, kCelsius, kWatts, kMegahertz, kRate, kBytes, kWhole };

// What a kind of fault takes. `keys`: beside kind, at and gpu.
struct FaultSpec {
  FaultKind kind;
  std::string_view name;
  Unit unit = Unit::kNone;
  double min = 0, max = 0;
  bool lasts = true;     // takes `for`
  bool on_gpu = true;    // takes `gpu`
  bool on_link = false;  // takes `link`
};

constexpr std::array<FaultSpec, 24> kFaults = {{
    {FaultKind::kHotInlet, "hot_inlet", Unit::kCelsius, 0, 90},
    {FaultKind::kFanDead, "fan_dead"},
    {FaultKind::kPowerCap, "power_cap", Unit::kWatts, 1, 10'000},
    {FaultKind::kPowerBrake, "power_brake"},
    {FaultKind::kClocksLocked, "clocks_locked", Unit::kMegahertz, 1, 10'000},
    {FaultKind::kPcieGeneration, "pcie_generation", Unit::kWhole, 1, 7},
    {FaultKind::kPcieWidth, "pcie_width", Unit::kWhole, 1, 16},
    {FaultKind::kPcieReplays, "pcie_replays", Unit::kRate},
    {FaultKind::kNvlinkDown, "nvlink_down", Unit::kNone, 0, 0, true, true, true},
    {FaultKind::kNvlinkErrors, "nvlink_errors", Unit::kRate, 0, 0, true, true, true},
    {FaultKind::kEccCorrected, "ecc_corrected", Unit::kRate},
    {FaultKind::kEccUncorrected, "ecc_uncorrected", Unit::kWhole, 1, 1'000'000, false},
    {FaultKind::kRowRemapPending, "row_remap_pending"},
    {FaultKind::kRowRemapFailed, "row_remap_failed"},
    {FaultKind::kXid, "xid", Unit::kWhole, 1, 999, false},
    {FaultKind::kGpuLost, "gpu_lost"},
    {FaultKind::kResetRequired, "reset_required"},
    {FaultKind::kDriverHang, "driver_hang"},
    {FaultKind::kGarbage, "garbage"},
    {FaultKind::kVersionMismatch, "version_mismatch", Unit::kNone, 0, 0, true, false},
    {FaultKind::kPermissionDenied, "permission_denied", Unit::kNone, 0, 0, true, false},
    {FaultKind::kMigReconfigure, "mig_reconfigure"},
    {FaultKind::kMemoryLeakOrphan, "memory_leak_orphan", Unit::kBytes},
    {FaultKind::kFabricNotReady, "fabric_not_ready"},
}};

constexpr std::array<std::string_view, 3> kCounters = {"replay", "recovery", "crc"};

bool Takes(const FaultSpec& spec, std::string_view key) {
  if (key == "kind" || key == "at") {
    return true;
  }
  if (key == "gpu" || key == "gpus") {
    return spec.on_gpu;
  }
  if (key == "for") {
    return spec.lasts;
  }
  if (key == "value") {
    return spec.unit != Unit::kNone;
  }
  if (key == "link") {
    return spec.on_link;
  }
  if (key == "counter") {
    return spec.kind == FaultKind::kNvlinkErrors;
  }
  if (key == "functions") {
    return spec.kind == FaultKind::kPermissionDenied;
  }
  if (key == "layout") {
    return spec.kind == FaultKind::kMigReconfigure;
  }
  return spec.kind == FaultKind::kXid;  // count, every
}

double ReadValue(Reader& reader, const YamlNode& node, const FaultSpec& spec) {
  switch (spec.unit) {
    case Unit::kNone:
      return 0;
    case Unit::kCelsius:
      return reader.Celsius(node, "value", {spec.min, spec.max});
    case Unit::kWatts:
      return reader.Watts(node, "value", {spec.min, spec.max});
    case Unit::kMegahertz:
      return reader.Megahertz(node, "value", {spec.min, spec.max});
    case Unit::kRate:
      return reader.PerSecond(node, "value");
    case Unit::kBytes:
      return reader.Bytes(node, "value");
    case Unit::kWhole:
      return static_cast<double>(reader.Integer(node, "value", static_cast<std::uint64_t>(spec.min),
                                                static_cast<std::uint64_t>(spec.max)));
  }
  return 0;
}

// The limits that the GPU sets; empty when the fault is possible on it.
std::string Impossible(const Fault& fault, const ScenarioGpu& gpu) {
  const GpuModel& model = *gpu.model;
  const auto outside = [&](double min, double max, std::string_view unit) {
    return fault.value >= min && fault.value <= max
               ? std::string()
               : fmt::format("{} takes {:g} to {:g}{}", model.key, min, max, unit);
  };
  if (fault.kind == FaultKind::kPowerCap) {
    return outside(model.power_limit_min_w, model.power_limit_max_w, " W");
  }
  if (fault.kind == FaultKind::kClocksLocked) {
    return outside(model.sm_clock_idle_mhz, model.sm_clock_max_mhz, " MHz");
  }
  if (fault.kind == FaultKind::kPcieGeneration) {
    return outside(1, model.pcie_generation, "");
  }
  if (fault.kind == FaultKind::kPcieWidth) {
    const bool power_of_two = fault.value == 1 || fault.value == 2 || fault.value == 4 ||
                              fault.value == 8 || fault.value == 16;
    return power_of_two ? outside(1, model.pcie_width, " lanes") : "lanes are 1, 2, 4, 8 or 16";
  }
  const bool nvlink =
      fault.kind == FaultKind::kNvlinkDown || fault.kind == FaultKind::kNvlinkErrors;
  if (nvlink && model.nvlink_links == 0) {
    return fmt::format("{} has no NVLink", model.key);
  }
  if (nvlink && fault.link.value_or(0) >= model.nvlink_links) {
    return fmt::format("{} has links 0 to {}", model.key, model.nvlink_links - 1);
  }
  const bool ecc =
      fault.kind == FaultKind::kEccCorrected || fault.kind == FaultKind::kEccUncorrected;
  if (ecc && !(model.features.ecc && gpu.ecc)) {
    return fmt::format("{} has no ECC, or it is off", model.key);
  }
  const bool remap =
      fault.kind == FaultKind::kRowRemapPending || fault.kind == FaultKind::kRowRemapFailed;
  if (remap && !model.features.row_remapping) {
    return fmt::format("{} has no row remapping", model.key);
  }
  if (fault.kind == FaultKind::kFanDead && !model.features.fan) {
    return fmt::format("{} has no fan of its own; use hot_inlet", model.key);
  }
  if (fault.kind == FaultKind::kMigReconfigure && !gpu.mig_enabled) {
    return "the GPU is not in MIG mode; give it `mig` in `gpus`";
  }
  return "";
}

void ReadFunctions(Reader& reader, const YamlNode& node, Fault& fault) {
  constexpr std::size_t kFunctionsMax = 256;
  if (node.kind != YamlNode::Kind::kSequence || node.items.empty() ||
      node.items.size() > kFunctionsMax) {
    reader.Reject(node, "`functions` must be a list such as [nvmlDeviceGetFieldValues]");
    return;
  }
  for (const YamlNode& item : node.items) {
    fault.functions.push_back(reader.Text(item, "functions"));
    if (!fault.functions.back().starts_with("nvml")) {
      reader.Reject(item, "a function's name starts with nvml");
    }
  }
}

void ReadDetails(Reader& reader, const MapReader& map, const FaultSpec& spec, Fault& fault) {
  if (const YamlNode* at = map.Find("at")) {
    fault.at = reader.Time(*at, "at", true);
  }
  if (const YamlNode* length = map.Find("for")) {
    fault.length = length->text == "ever" ? kForever : reader.Time(*length, "for", false);
  }
  if (const YamlNode* value = map.Find("value")) {
    fault.value = ReadValue(reader, *value, spec);
  }
  if (const YamlNode* link = map.Find("link")) {
    fault.link = static_cast<std::uint32_t>(reader.Integer(*link, "link", 0, 17));
  }
  if (const YamlNode* count = map.Find("count")) {
    fault.count = static_cast<std::uint32_t>(reader.Integer(*count, "count", 1, 10'000));
  }
  if (const YamlNode* every = map.Find("every")) {
    fault.every = reader.Time(*every, "every", false);
  }
  if (spec.kind == FaultKind::kNvlinkErrors) {
    fault.counter = "crc";
    if (const YamlNode* counter = map.Find("counter")) {
      fault.counter = kCounters[reader.Word(*counter, "counter", kCounters)];
    }
  }
  if (const YamlNode* functions = map.Find("functions")) {
    ReadFunctions(reader, *functions, fault);
  }
}

const FaultSpec* ReadKind(Reader& reader, MapReader& map) {
  const YamlNode* kind = map.Require("kind");
  if (kind == nullptr || reader.failed()) {
    return nullptr;
  }
  std::vector<std::string_view> names;
  for (const FaultSpec& spec : kFaults) {
    names.push_back(spec.name);
  }
  const FaultSpec& spec = kFaults[reader.Word(*kind, "kind", names)];
  return reader.failed() ? nullptr : &spec;
}

// Which GPUs; empty: all.
std::vector<std::uint32_t> ReadTargets(Reader& reader, const MapReader& map,
                                       const Scenario& scenario) {
  const YamlNode* one = map.Find("gpu");
  const YamlNode* several = map.Find("gpus");
  if (one != nullptr && several != nullptr) {
    reader.Reject(*several, "`gpu` and `gpus` mean the same; keep one");
  }
  const YamlNode* node = one != nullptr ? one : several;
  if (node == nullptr || node->text == "all") {
    return {};
  }
  return reader.Indices(*node, "gpu", "GPU", static_cast<std::uint32_t>(scenario.gpus.size()));
}

void ReadFaultEntry(Reader& reader, const YamlNode& node, const Scenario& scenario,
                    std::vector<Fault>& out) {
  constexpr std::array<std::string_view, 11> kKeys = {"kind",  "at",      "for",      "gpu",
                                                      "gpus",  "value",   "link",     "count",
                                                      "every", "counter", "functions"};
  std::vector<std::string_view> keys(kKeys.begin(), kKeys.end());
  keys.emplace_back("layout");
  MapReader map(reader, node, "a fault", keys);
  const FaultSpec* spec = ReadKind(reader, map);
  if (spec == nullptr) {
    return;
  }
  for (const std::string_view key : keys) {
    const YamlNode* value = map.Find(key);
    if (value != nullptr && !Takes(*spec, key)) {
      reader.Reject(*value, fmt::format("{} takes no `{}`", spec->name, key));
    }
  }
  if (spec->unit != Unit::kNone) {
    map.Require("value");
  }
  Fault fault;
  fault.kind = spec->kind;
  ReadDetails(reader, map, *spec, fault);
  const std::vector<std::uint32_t> targets = ReadTargets(reader, map, scenario);
  const YamlNode* layout =
      spec->kind == FaultKind::kMigReconfigure ? map.Require("layout") : nullptr;
  for (std::uint32_t i = 0; i < scenario.gpus.size() && !reader.failed(); ++i) {
    if (!targets.empty() && std::ranges::find(targets, i) == targets.end()) {
      continue;
    }
    const std::string impossible = Impossible(fault, scenario.gpus[i]);
    if (!impossible.empty()) {
      reader.Reject(node,
                    fmt::format("{} is not possible on GPU {}: {}", spec->name, i, impossible));
    } else if (layout != nullptr) {
      fault.layout = ReadMigLayout(reader, *layout, *scenario.gpus[i].model);
    }
  }
  if (targets.empty()) {
    out.push_back(fault);
  }
  for (const std::uint32_t target : targets) {
    fault.gpu = target;
    out.push_back(fault);
  }
}

}  // namespace

std::string_view FaultName(FaultKind kind) {
  const auto found = std::ranges::find(kFaults, kind, &FaultSpec::kind);
  return found == kFaults.end() ? "unknown" : found->name;
}

std::vector<Fault> ReadFaults(Reader& reader, const YamlNode& node, const Scenario& scenario) {
  std::vector<Fault> faults;
  if (node.kind != YamlNode::Kind::kSequence) {
    reader.Reject(node, "`faults` must be a list such as [{kind: hot_inlet, at: 60s, value: 45}]");
    return faults;
  }
  for (const YamlNode& item : node.items) {
    ReadFaultEntry(reader, item, scenario, faults);
    if (faults.size() > kScenarioFaultsMax) {
      reader.Reject(item, fmt::format("more than {} faults", kScenarioFaultsMax));
    }
    if (reader.failed()) {
      break;
    }
  }
  return faults;
}

}  // namespace gpuassay::sim
