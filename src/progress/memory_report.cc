#include "progress/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace gpuassay {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kDeviceBytesMax = 96;  // a UUID of a MIG device takes 40
constexpr std::size_t kDepthMax = 16;

std::unexpected<Error> Malformed(std::string what) {
  return Fail(ErrorCode::kMalformed, "memory report: " + std::move(what));
}

// Nullopt for anything but a whole number of bytes.
std::optional<std::uint64_t> Bytes(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

Result<std::string> Device(const json& object) {
  const auto found = object.find("device");
  if (found == object.end()) return std::string();
  if (found->is_number_unsigned()) return std::to_string(found->get<std::uint64_t>());
  if (!found->is_string()) return Malformed("'device' is neither a UUID nor a CUDA ordinal");
  const std::string& device = found->get_ref<const std::string&>();
  if (device.size() > kDeviceBytesMax) return Malformed("'device' is longer than any UUID");
  return device;
}

Result<MemoryReport> ParseOne(const json& object) {
  if (!object.is_object()) return Malformed("an entry of 'memory' is no object");
  Result<std::string> device = Device(object);
  if (!device) return std::unexpected(device.error());
  const std::optional<std::uint64_t> reserved = Bytes(object, "reserved");
  const std::optional<std::uint64_t> allocated = Bytes(object, "allocated");
  if (!reserved || !allocated) {
    return Malformed("'reserved' and 'allocated' must be whole numbers of bytes");
  }
  if (*allocated > *reserved) {
    return Malformed(fmt::format("'allocated' {} is more than 'reserved' {}: a part of it is meant",
                                 *allocated, *reserved));
  }
  return MemoryReport{std::move(*device), *reserved, *allocated};
}

// Stops before a text that is nested deeper than anything we read: the parser recurses.
bool IsTooDeep(std::string_view text) {
  std::size_t depth = 0;
  for (const char c : text) {
    if ((c == '[' || c == '{') && ++depth > kDepthMax) return true;
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return false;
}

}  // namespace

Result<std::vector<MemoryReport>> ParseMemoryReports(std::string_view datagram) {
  if (IsTooDeep(datagram)) return Malformed("nested too deeply");
  const json report = json::parse(datagram, nullptr, false);
  if (!report.is_object()) return Malformed("no JSON object");
  const auto version = report.find("v");
  if (version == report.end() || *version != kVersion) {
    return Malformed(fmt::format("'v' must be {}", kVersion));
  }
  const auto memory = report.find("memory");
  if (memory == report.end() || !memory->is_array()) return Malformed("'memory' must be a list");
  if (memory->size() > MemoryReports::kPerProcessMax) {
    return Malformed(fmt::format("{} devices; at most {} are taken", memory->size(),
                                 MemoryReports::kPerProcessMax));
  }
  std::vector<MemoryReport> reports;
  for (const json& object : *memory) {
    Result<MemoryReport> one = ParseOne(object);
    if (!one) return std::unexpected(one.error());
    reports.push_back(std::move(*one));
  }
  return reports;
}

void MemoryReports::Set(std::uint32_t pid, std::vector<MemoryReport> reports, SteadyTime now) {
  if (reports.size() > kPerProcessMax) reports.resize(kPerProcessMax);
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kProcessesMax && !entries_.contains(pid)) {
    // Whoever has been silent for longest makes room.
    entries_.erase(
        std::ranges::min_element(entries_, {}, [](const auto& item) { return item.second.time; }));
  }
  entries_[pid] = {std::move(reports), now};
}

std::vector<MemoryReport> MemoryReports::Find(std::uint32_t pid, SteadyTime now) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(pid);
  if (found == entries_.end() || now - found->second.time > kFreshFor) return {};
  return found->second.reports;
}

void MemoryReports::DropOld(SteadyTime now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [now](const auto& item) { return now - item.second.time > kFreshFor; });
}

}  // namespace gpuassay
