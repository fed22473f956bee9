#include "web/pages.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuassay {
namespace {

std::string SourceLine(const SourceStatus& source, WallTime now) {
  std::string line = source.name;
  line += source.error.empty() ? ": up" : ": " + source.error;
  if (source.last_success) {
    line += fmt::format(", read {:.1f} s ago", std::max(Seconds(now - *source.last_success), 0.0));
  } else {
    line += ", never read";
  }
  // One line per source, whatever the driver's message holds.
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

std::string HealthText(const Snapshot& snapshot, WallTime now) {
  std::string text = "ok\n";
  for (const SourceStatus& source : snapshot.sources) {
    text += SourceLine(source, now);
    text += '\n';
  }
  return text;
}

std::string_view IndexHtml() {
  return R"(<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>gpuassay</title></head>
<body>
<h1>gpuassay</h1>
<p>What the GPUs of this node are really doing.</p>
<ul>
<li><a href="/metrics">/metrics</a>: Prometheus text, or OpenMetrics when asked for</li>
<li><a href="/api/v1/snapshot">/api/v1/snapshot</a>: everything known now, as JSON</li>
<li><a href="/api/v1/views">/api/v1/views</a>: hardware, scheduler and processes side by side, as JSON</li>
<li><a href="/healthz">/healthz</a>: is this process alive</li>
<li><a href="/readyz">/readyz</a>: are the numbers fresh</li>
</ul>
</body>
</html>
)";
}

std::string_view PathsText() {
  return "not found; there are:\n/\n/metrics\n/healthz\n/readyz\n/api/v1/snapshot\n/api/v1/views\n";
}

}  // namespace gpuassay
