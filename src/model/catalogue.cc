#include "model/catalogue.h"

#include <array>

namespace gpuassay {
namespace {

constexpr MetricInfo kMetrics[] = {
#define GPU_METRIC(field, name, labels, family, kind, unit, pace, source, help)                 \
  {MetricScope::kGpu, #field,           name,   labels, MetricFamily::family, MetricKind::kind, \
   MetricUnit::unit,  MetricPace::pace, source, help},
#include "model/metrics.def"
#define LINK_METRIC(field, name, labels, family, kind, unit, pace, source, help)                 \
  {MetricScope::kLink, #field,           name,   labels, MetricFamily::family, MetricKind::kind, \
   MetricUnit::unit,   MetricPace::pace, source, help},
#include "model/metrics.def"
#define MIG_METRIC(field, name, labels, family, kind, unit, pace, source, help)                 \
  {MetricScope::kMig, #field,           name,   labels, MetricFamily::family, MetricKind::kind, \
   MetricUnit::unit,  MetricPace::pace, source, help},
#include "model/metrics.def"
#define PROCESS_METRIC(field, name, labels, family, kind, unit, pace, source, help) \
  {                                                                                 \
      MetricScope::kProcess,                                                        \
      #field,                                                                       \
      name,                                                                         \
      labels,                                                                       \
      MetricFamily::family,                                                         \
      MetricKind::kind,                                                             \
      MetricUnit::unit,                                                             \
      MetricPace::pace,                                                             \
      source,                                                                       \
      help},
#include "model/metrics.def"
#define SOURCE_METRIC(field, name, labels, family, kind, unit, pace, source, help)                 \
  {MetricScope::kSource, #field,           name,   labels, MetricFamily::family, MetricKind::kind, \
   MetricUnit::unit,     MetricPace::pace, source, help},
#include "model/metrics.def"
#define OWNER_METRIC(field, name, labels, family, kind, unit, pace, source, help)                 \
  {MetricScope::kOwner, #field,           name,   labels, MetricFamily::family, MetricKind::kind, \
   MetricUnit::unit,    MetricPace::pace, source, help},
#include "model/metrics.def"
};

constexpr Reading GpuReadings::*kGpuMembers[] = {
#define GPU_METRIC(field, ...) &GpuReadings::field,
#include "model/metrics.def"
};
constexpr Reading LinkReadings::*kLinkMembers[] = {
#define LINK_METRIC(field, ...) &LinkReadings::field,
#include "model/metrics.def"
};
constexpr Reading MigReadings::*kMigMembers[] = {
#define MIG_METRIC(field, ...) &MigReadings::field,
#include "model/metrics.def"
};
constexpr Reading ProcessReadings::*kProcessMembers[] = {
#define PROCESS_METRIC(field, ...) &ProcessReadings::field,
#include "model/metrics.def"
};
constexpr Reading SourceReadings::*kSourceMembers[] = {
#define SOURCE_METRIC(field, ...) &SourceReadings::field,
#include "model/metrics.def"
};
constexpr Reading OwnerReadings::*kOwnerMembers[] = {
#define OWNER_METRIC(field, ...) &OwnerReadings::field,
#include "model/metrics.def"
};

}  // namespace

std::string_view ScopeName(MetricScope scope) {
  constexpr std::array<std::string_view, 6> kNames = {"gpu",     "nvlink", "mig",
                                                      "process", "source", "owner"};
  return kNames[static_cast<std::size_t>(scope)];
}

std::string_view FamilyName(MetricFamily family) {
  constexpr std::array<std::string_view, 6> kNames = {"compute",      "memory", "power",
                                                      "interconnect", "health", "self"};
  return kNames[static_cast<std::size_t>(family)];
}

std::string_view KindName(MetricKind kind) {
  return kind == MetricKind::kCounter ? "counter" : "gauge";
}

std::string_view PaceName(MetricPace pace) {
  constexpr std::array<std::string_view, 3> kNames = {"every cycle", "every minute", "derived"};
  return kNames[static_cast<std::size_t>(pace)];
}

std::string_view UnitName(MetricUnit unit) {
  constexpr std::array<std::string_view, 12> kNames = {
      "ratio", "0 or 1", "code",    "count", "bytes",   "bytes/second",
      "watts", "joules", "celsius", "hertz", "seconds", "seconds since 1970"};
  return kNames[static_cast<std::size_t>(unit)];
}

std::span<const MetricInfo> AllMetrics() { return kMetrics; }

std::span<const MetricInfo> MetricsOf(MetricScope scope) {
  const std::array<std::size_t, 6> sizes = {std::size(kGpuMembers),    std::size(kLinkMembers),
                                            std::size(kMigMembers),    std::size(kProcessMembers),
                                            std::size(kSourceMembers), std::size(kOwnerMembers)};
  std::size_t first = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(scope); ++s) first += sizes[s];
  return AllMetrics().subspan(first, sizes[static_cast<std::size_t>(scope)]);
}

const MetricInfo* FindMetric(std::string_view name_or_field) {
  for (const MetricInfo& metric : kMetrics) {
    if (metric.name == name_or_field || metric.field == name_or_field) return &metric;
  }
  return nullptr;
}

std::span<Reading GpuReadings::*const> Members(const GpuReadings*) {
  return {kGpuMembers, std::size(kGpuMembers)};
}
std::span<Reading LinkReadings::*const> Members(const LinkReadings*) {
  return {kLinkMembers, std::size(kLinkMembers)};
}
std::span<Reading MigReadings::*const> Members(const MigReadings*) {
  return {kMigMembers, std::size(kMigMembers)};
}
std::span<Reading ProcessReadings::*const> Members(const ProcessReadings*) {
  return {kProcessMembers, std::size(kProcessMembers)};
}
std::span<Reading SourceReadings::*const> Members(const SourceReadings*) {
  return {kSourceMembers, std::size(kSourceMembers)};
}
std::span<Reading OwnerReadings::*const> Members(const OwnerReadings*) {
  return {kOwnerMembers, std::size(kOwnerMembers)};
}

}  // namespace gpuassay
