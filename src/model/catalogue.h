// The catalogue of metrics as data: metrics.def turned into tables, in its order.
#pragma once

#include <span>
#include <string_view>

#include "model/snapshot.h"

namespace gpuassay {

enum class MetricScope { kGpu, kLink, kMig, kProcess, kSource, kOwner };
enum class MetricFamily { kCompute, kMemory, kPower, kInterconnect, kHealth, kSelf };
enum class MetricKind { kGauge, kCounter };
enum class MetricPace { kFast, kSlow, kDerived };
enum class MetricUnit {
  kRatio,
  kState,
  kCode,
  kCount,
  kBytes,
  kBytesPerSecond,
  kWatts,
  kJoules,
  kCelsius,
  kHertz,
  kSeconds,
  kTimestamp
};

struct MetricInfo {
  MetricScope scope;
  std::string_view field;   // member name and JSON key
  std::string_view name;    // Prometheus name
  std::string_view labels;  // fixed labels, `key="value"`, or empty
  MetricFamily family;
  MetricKind kind;
  MetricUnit unit;
  MetricPace pace;
  std::string_view source;
  std::string_view help;  // of the family; empty on its second and later lines
};

// Text for tables and docs: "gpu", "compute", "gauge", "every cycle", "ratio 0-1".
std::string_view ScopeName(MetricScope scope);
std::string_view FamilyName(MetricFamily family);
std::string_view KindName(MetricKind kind);
std::string_view PaceName(MetricPace pace);
std::string_view UnitName(MetricUnit unit);

// All metrics, grouped by scope in the order of MetricScope.
std::span<const MetricInfo> AllMetrics();
// The metrics of one scope; index i belongs to member i of the accessor below.
std::span<const MetricInfo> MetricsOf(MetricScope scope);
// nullptr when nothing is called so. Accepts the Prometheus name or the field of a GPU.
const MetricInfo* FindMetric(std::string_view name_or_field);

// Members in the order of MetricsOf(scope).
std::span<Reading GpuReadings::*const> Members(const GpuReadings*);
std::span<Reading LinkReadings::*const> Members(const LinkReadings*);
std::span<Reading MigReadings::*const> Members(const MigReadings*);
std::span<Reading ProcessReadings::*const> Members(const ProcessReadings*);
std::span<Reading SourceReadings::*const> Members(const SourceReadings*);
std::span<Reading OwnerReadings::*const> Members(const OwnerReadings*);

// Calls fn(Reading&) for each member, in order.
template <class Readings, class Fn>
void ForEachReading(Readings& readings, Fn&& fn) {
  for (const auto member : Members(&readings)) fn(readings.*member);
}

// Sets every member to `reason`.
template <class Readings>
void SetAllMissing(Readings& readings, Missing reason) {
  ForEachReading(readings, [reason](Reading& reading) { reading = reason; });
}

}  // namespace gpuassay
