// Activities, named profiles of them, and phases.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/scenario/sections.h"

namespace gpuassay::sim {
namespace {

// Without kernels in the scenario, work keeps a kernel resident all the time: equally spaced
// kernels of 10 ms, back to back.
constexpr double kDefaultKernelSeconds = 0.010;
constexpr double kDefaultOccupancyShare = 0.5;  // of SM active
// A cycle of phases must not be shorter: each tick walks over the phases in it.
constexpr Duration kCycleMin = std::chrono::milliseconds(10);
constexpr double kSlack = 1e-9;  // of ratios that were computed in decimal

struct RatioField {
  std::string_view key;
  double Activity::*member;
  bool within_sm_active;  // needs an active SM, so it cannot be larger
};
constexpr std::array<RatioField, 10> kRatios = {{{"sm_active", &Activity::sm_active, false},
                                                 {"sm_occupancy", &Activity::sm_occupancy, true},
                                                 {"tensor", &Activity::tensor_active, true},
                                                 {"fp64", &Activity::fp64_active, true},
                                                 {"fp32", &Activity::fp32_active, true},
                                                 {"fp16", &Activity::fp16_active, true},
                                                 {"integer", &Activity::integer_active, true},
                                                 {"dram", &Activity::dram_active, false},
                                                 {"encoder", &Activity::encoder, false},
                                                 {"decoder", &Activity::decoder, false}}};

struct RateField {
  std::string_view key;
  double Activity::*member;
};
constexpr std::array<RateField, 4> kRates = {
    {{"pcie_transmit", &Activity::pcie_transmit_bytes_per_second},
     {"pcie_receive", &Activity::pcie_receive_bytes_per_second},
     {"nvlink_transmit", &Activity::nvlink_transmit_bytes_per_second},
     {"nvlink_receive", &Activity::nvlink_receive_bytes_per_second}}};

constexpr std::array<std::string_view, 18> kActivityKeys = {
    "like",           "kernel",        "launches",     "regular",
    "sm_active",      "sm_occupancy",  "tensor",       "fp64",
    "fp32",           "fp16",          "integer",      "dram",
    "encoder",        "pcie_transmit", "pcie_receive", "nvlink_transmit",
    "nvlink_receive", "decoder"};

Activity ReadProfileName(Reader& reader, const YamlNode& node, std::string_view key,
                         const Profiles& profiles) {
  std::vector<std::string_view> names;
  for (const auto& [name, activity] : profiles) {
    names.push_back(name);
  }
  if (names.empty()) {
    reader.Reject(node,
                  fmt::format("`{}` must be a mapping: there are no `profiles` to name", key));
    return {};
  }
  const std::string_view name = names[reader.Word(node, key, names)];
  return profiles.find(name)->second;
}

// Defaults that follow from what is given.
void FillIn(const MapReader& map, Activity& activity) {
  const bool kernels = activity.kernel_seconds > 0 && activity.launches_per_second > 0;
  if (kernels && map.Find("sm_active") == nullptr && activity.sm_active == 0) {
    activity.sm_active = std::min(1.0, activity.kernel_seconds * activity.launches_per_second);
  }
  const double work = std::max({activity.sm_active, activity.dram_active});
  if (!kernels && work > 0) {
    activity.kernel_seconds = kDefaultKernelSeconds;
    activity.launches_per_second = 1 / kDefaultKernelSeconds;
    activity.regular = true;
  }
  if (map.Find("sm_occupancy") == nullptr && activity.sm_occupancy == 0) {
    activity.sm_occupancy = activity.sm_active * kDefaultOccupancyShare;
  }
}

void CheckRatios(Reader& reader, const YamlNode& node, const MapReader& map,
                 const Activity& activity) {
  const auto place = [&](std::string_view key) -> const YamlNode& {
    const YamlNode* found = map.Find(key);
    return found == nullptr ? node : *found;
  };
  if ((map.Find("kernel") == nullptr) != (map.Find("launches") == nullptr) &&
      (activity.kernel_seconds == 0 || activity.launches_per_second == 0)) {
    reader.Reject(node, "`kernel` and `launches` only mean something together");
    return;
  }
  const double busy = std::min(1.0, activity.kernel_seconds * activity.launches_per_second);
  if (activity.sm_active > busy + kSlack) {
    reader.Reject(
        place("sm_active"),
        fmt::format("`sm_active` is {:g}, but a kernel runs only {:g} of the time (kernel "
                    "x launches)",
                    activity.sm_active, busy));
  }
  for (const RatioField& field : kRatios) {
    if (field.within_sm_active && activity.*field.member > activity.sm_active + kSlack) {
      reader.Reject(place(field.key),
                    fmt::format("`{}` is {:g}, but cannot be above `sm_active`, which is {:g}",
                                field.key, activity.*field.member, activity.sm_active));
    }
  }
}

Kernel ReadKernel(Reader& reader, const YamlNode& node) {
  constexpr std::array<std::string_view, 2> kKeys = {"at", "length"};
  MapReader map(reader, node, "a kernel", kKeys);
  const YamlNode* at = map.Require("at");
  const YamlNode* length = map.Require("length");
  if (at == nullptr || length == nullptr) {
    return {};
  }
  return {reader.Time(*at, "at", true), reader.Time(*length, "length", false)};
}

std::vector<Kernel> ReadKernels(Reader& reader, const YamlNode& node, Duration phase_length) {
  std::vector<Kernel> kernels;
  if (node.kind != YamlNode::Kind::kSequence || node.items.empty() ||
      node.items.size() > kKernelsMax) {
    reader.Reject(node, fmt::format("`kernels` must be a list of 1 to {} kernels, such as "
                                    "[{{at: 10ms, length: 50us}}]",
                                    kKernelsMax));
    return kernels;
  }
  Duration end = {};
  for (const YamlNode& item : node.items) {
    const Kernel kernel = ReadKernel(reader, item);
    if (kernel.at < end) {
      reader.Reject(item, "kernels must be in order of time and must not overlap");
    }
    end = kernel.at + kernel.length;
    if (end > phase_length) {
      reader.Reject(item, "the kernel runs beyond the end of its phase");
    }
    kernels.push_back(kernel);
    if (reader.failed()) {
      break;
    }
  }
  return kernels;
}

Phase ReadPhase(Reader& reader, const YamlNode& node, const Profiles& profiles) {
  constexpr std::array<std::string_view, 4> kKeys = {"name", "for", "activity", "kernels"};
  MapReader map(reader, node, "a phase", kKeys);
  Phase phase;
  if (const YamlNode* name = map.Find("name")) {
    phase.name = reader.Text(*name, "name");
  }
  if (const YamlNode* length = map.Find("for")) {
    phase.length = reader.Time(*length, "for", false);
  }
  if (const YamlNode* activity = map.Find("activity")) {
    phase.activity = ReadActivity(reader, *activity, profiles);
  }
  if (const YamlNode* kernels = map.Find("kernels")) {
    phase.kernels = ReadKernels(reader, *kernels, phase.length);
    if (map.Find("activity") != nullptr) {
      reader.Reject(*kernels, "a phase has either `kernels` or an `activity`, not both");
    }
  }
  return phase;
}

}  // namespace

Activity ReadActivity(Reader& reader, const YamlNode& node, const Profiles& profiles) {
  if (node.kind == YamlNode::Kind::kScalar) {
    return ReadProfileName(reader, node, "activity", profiles);
  }
  MapReader map(reader, node, "an activity", kActivityKeys);
  Activity activity;
  if (const YamlNode* like = map.Find("like")) {
    activity = ReadProfileName(reader, *like, "like", profiles);
  }
  if (const YamlNode* kernel = map.Find("kernel")) {
    activity.kernel_seconds = reader.KernelSeconds(*kernel, "kernel");
    activity.regular = false;
  }
  if (const YamlNode* launches = map.Find("launches")) {
    activity.launches_per_second = reader.PerSecond(*launches, "launches");
  }
  if (const YamlNode* regular = map.Find("regular")) {
    activity.regular = reader.Flag(*regular, "regular");
  }
  for (const RatioField& field : kRatios) {
    if (const YamlNode* value = map.Find(field.key)) {
      activity.*field.member = reader.Ratio(*value, field.key);
    }
  }
  for (const RateField& field : kRates) {
    if (const YamlNode* value = map.Find(field.key)) {
      activity.*field.member = reader.BytesPerSecond(*value, field.key);
    }
  }
  FillIn(map, activity);
  CheckRatios(reader, node, map, activity);
  return activity;
}

Profiles ReadProfiles(Reader& reader, const YamlNode& node) {
  Profiles profiles;
  if (node.kind != YamlNode::Kind::kMap || node.items.size() > 2 * kProfilesMax) {
    reader.Reject(node,
                  fmt::format("`profiles` must be a mapping of at most {} names to activities",
                              kProfilesMax));
    return profiles;
  }
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); i += 2) {
    const YamlNode& value = node.items[i + 1];
    if (value.kind != YamlNode::Kind::kMap) {
      reader.Reject(value, "a profile must be a mapping, such as {sm_active: 90%, tensor: 60%}");
      break;
    }
    profiles[node.items[i].text] = ReadActivity(reader, value, profiles);
  }
  return profiles;
}

std::vector<Phase> ReadPhases(Reader& reader, const YamlNode& node, const Profiles& profiles,
                              bool repeat) {
  std::vector<Phase> phases;
  if (node.kind != YamlNode::Kind::kSequence || node.items.empty() ||
      node.items.size() > kPhasesMax) {
    reader.Reject(node, fmt::format("`phases` must be a list of 1 to {} phases", kPhasesMax));
    return phases;
  }
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); ++i) {
    phases.push_back(ReadPhase(reader, node.items[i], profiles));
    const bool last = i + 1 == node.items.size();
    if (phases.back().length == kForever && (repeat || !last)) {
      reader.Reject(node.items[i], repeat ? "a phase that repeats needs `for`"
                                          : "a phase before the last needs `for`");
    }
  }
  Duration cycle = {};
  for (const Phase& phase : phases) {
    cycle = phase.length == kForever ? kForever : cycle + phase.length;
  }
  if (repeat && cycle < kCycleMin) {
    reader.Reject(node, "phases that repeat must take 10ms or more together");
  }
  return phases;
}

}  // namespace gpuassay::sim
