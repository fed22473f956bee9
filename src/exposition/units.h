// The last word of a metric's name that says its unit.
#pragma once

#include <string_view>

#include "model/catalogue.h"

namespace gpuassay {

// "seconds", "bytes_per_second"; empty when the unit is no part of the name.
constexpr std::string_view UnitSuffix(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::kRatio:
      return "ratio";
    case MetricUnit::kBytes:
      return "bytes";
    case MetricUnit::kBytesPerSecond:
      return "bytes_per_second";
    case MetricUnit::kWatts:
      return "watts";
    case MetricUnit::kJoules:
      return "joules";
    case MetricUnit::kCelsius:
      return "celsius";
    case MetricUnit::kHertz:
      return "hertz";
    case MetricUnit::kSeconds:
    case MetricUnit::kTimestamp:
      return "seconds";
    case MetricUnit::kState:
    case MetricUnit::kCode:
    case MetricUnit::kCount:
      return "";
  }
  return "";
}

}  // namespace gpuassay
