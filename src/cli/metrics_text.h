// The catalogue of metrics as text. All pure.
#pragma once

#include <string>
#include <string_view>

#include "model/catalogue.h"

namespace gpuassay {

std::string MetricsTable();
// An array of objects, one per line of metrics.def.
std::string MetricsJson();
// docs/metrics.md.
std::string MetricsMarkdown();

// Help of a metric; a second line of the same family has that of the first.
std::string_view HelpOf(const MetricInfo& metric);

// `name{labels}`.
std::string SeriesOf(const MetricInfo& metric);

}  // namespace gpuassay
