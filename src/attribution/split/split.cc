#include "attribution/split/split.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace gpuassay {
namespace {

// The only process there is did whatever was done, unless the driver says that it was another one.
bool IsAlone(const SharedDevice& device) {
  if (!device.processes_complete || device.processes.size() != 1) return false;
  const Reading& sampled = device.processes[0]->readings.sm_utilization_ratio;
  const bool seen_idle = sampled && *sampled <= 0 && device.busy && *device.busy > 0;
  return !seen_idle;
}

// Fractions of more than one process, or of one that did not do it all.
void SplitBySamples(const SharedDevice& device, DeviceSplit& split) {
  double sum = 0;
  std::size_t known = 0;
  std::size_t active = 0;
  for (const GpuProcess* process : device.processes) {
    const Reading& sampled = process->readings.sm_utilization_ratio;
    if (!sampled) continue;
    ++known;
    sum += *sampled;
    if (*sampled > 0) ++active;
  }
  const double busy = device.busy ? *device.busy : sum;
  const bool all_known = known == device.processes.size() && device.processes_complete;
  const double rounding = kRoundingPerProcess * static_cast<double>(active);
  double whole = std::max(busy, sum);
  if (all_known && sum > 0 && busy - sum <= rounding) whole = sum;
  double attributed = 0;
  for (std::size_t i = 0; i < device.processes.size(); ++i) {
    const Reading& sampled = device.processes[i]->readings.sm_utilization_ratio;
    if (sampled) {
      split.fraction[i] = whole > 0 ? *sampled / whole : 0;
      attributed += *split.fraction[i];
    } else {
      split.fraction[i] = Missing::kNotSeparable;
    }
  }
  split.unattributed_fraction = std::max(1 - attributed, 0.0);
}

void SplitMemory(const SharedDevice& device, DeviceSplit& split) {
  double sum = 0;
  for (const GpuProcess* process : device.processes) {
    const Reading& used = process->readings.memory_used_bytes;
    if (used) sum += *used;
  }
  if (!device.memory_used_bytes) {
    for (std::size_t i = 0; i < device.processes.size(); ++i) {
      split.memory_bytes[i] = device.processes[i]->readings.memory_used_bytes;
    }
    split.unattributed_memory_bytes = device.memory_used_bytes;
    return;
  }
  // The list and the total are read one after the other; what was freed between them is taken from
  // all alike.
  const double used = *device.memory_used_bytes;
  const double scale = sum > used ? used / sum : 1;
  double attributed = 0;
  for (std::size_t i = 0; i < device.processes.size(); ++i) {
    const Reading& own = device.processes[i]->readings.memory_used_bytes;
    split.memory_bytes[i] = own ? Reading(*own * scale) : own;
    if (own) attributed += *own * scale;
  }
  split.unattributed_memory_bytes = std::max(used - attributed, 0.0);
}

// "3g.40gb" and "1c.3g.40gb" have 3 slices.
std::optional<double> SlicesOf(std::string_view profile) {
  const std::size_t end = profile.find("g.");
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = profile.rfind('.', end);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  int slices = 0;
  const auto [stop, error] = std::from_chars(profile.data() + begin, profile.data() + end, slices);
  if (error != std::errc() || stop != profile.data() + end || slices <= 0) return std::nullopt;
  return slices;
}

// SM-activity of an instance in SMs; nullopt when it cannot be read.
std::optional<double> WorkOf(const MigInstance& instance) {
  const MigReadings& readings = instance.readings;
  const Reading& active =
      readings.sm_active_ratio ? readings.sm_active_ratio : readings.graphics_engine_active_ratio;
  const std::optional<double> size = readings.multiprocessors ? readings.multiprocessors.get()
                                                              : SlicesOf(instance.identity.profile);
  if (!active || !size) return std::nullopt;
  return *active * *size;
}

}  // namespace

DeviceSplit SplitDevice(const SharedDevice& device) {
  DeviceSplit split;
  const std::size_t count = device.processes.size();
  split.fraction.resize(count);
  split.busy.resize(count);
  split.memory_bytes.resize(count);
  if (IsAlone(device)) {
    split.fraction[0] = 1;
    split.unattributed_fraction = 0;
  } else {
    SplitBySamples(device, split);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!device.busy) {
      split.busy[i] = device.busy;
    } else {
      split.busy[i] =
          split.fraction[i] ? Reading(*split.fraction[i] * *device.busy) : split.fraction[i];
    }
  }
  split.unattributed_busy =
      device.busy ? Reading(split.unattributed_fraction * *device.busy) : device.busy;
  SplitMemory(device, split);
  return split;
}

std::vector<Reading> SplitOverInstances(const std::vector<MigInstance>& instances,
                                        const std::vector<bool>& occupied) {
  std::vector<double> work(instances.size(), 0.0);
  bool known = true;
  double sum = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const std::optional<double> own = WorkOf(instances[i]);
    if (!own && occupied[i]) known = false;
    if (own) work[i] = *own;  // else nobody is on it, and nobody worked there
    sum += work[i];
  }
  if (!known && std::count(occupied.begin(), occupied.end(), true) == 1) {
    for (std::size_t i = 0; i < work.size(); ++i) work[i] = occupied[i] ? 1 : 0;
    sum = 1;
    known = true;
  }
  if (!known) return std::vector<Reading>(instances.size(), Missing::kNotSeparable);
  std::vector<Reading> shares(instances.size(), 0.0);
  for (std::size_t i = 0; i < shares.size() && sum > 0; ++i) shares[i] = work[i] / sum;
  return shares;
}

}  // namespace gpuassay
