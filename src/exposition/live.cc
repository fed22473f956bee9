#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "exposition/exposition.h"
#include "exposition/text_writer.h"
#include "exposition/units.h"
#include "model/catalogue.h"

namespace gpuassay {
namespace {

// The fields of /proc/PID/stat after the name in brackets, which may itself hold spaces and
// brackets. proc(5) counts from 1; the first one here is number 3.
constexpr std::size_t kFirstField = 3;
constexpr std::size_t kUserTicksField = 14;
constexpr std::size_t kSystemTicksField = 15;
constexpr std::size_t kStartTicksField = 22;
constexpr std::size_t kResidentPagesField = 24;

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(" \n");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::optional<double> Number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(number);
}

std::optional<double> BootTime(std::string_view stat) {
  constexpr std::string_view kKey = "\nbtime ";
  const std::size_t at = stat.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = stat.substr(at + kKey.size());
  return Number(rest.substr(0, rest.find('\n')));
}

std::string SourceLabels(const SourceStatus& source, const NodeIdentity& node) {
  std::string labels;
  AppendLabel(labels, "source", source.name);
  if (!node.hostname.empty()) AppendLabel(labels, "hostname", node.hostname);
  return labels;
}

void WriteSources(TextWriter& writer, const Snapshot& snapshot, WallTime now) {
  std::vector<std::pair<const SourceStatus*, std::string>> sources;
  for (const SourceStatus& source : snapshot.sources) {
    std::string labels = SourceLabels(source, snapshot.node);
    const bool repeated = std::any_of(sources.begin(), sources.end(),
                                      [&](const auto& other) { return other.second == labels; });
    if (!repeated) sources.emplace_back(&source, std::move(labels));
  }
  const auto metrics = MetricsOf(MetricScope::kSource);
  const auto members = Members(static_cast<const SourceReadings*>(nullptr));
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const bool counter = metrics[i].kind == MetricKind::kCounter;
    writer.Family(metrics[i].name, counter ? MetricType::kCounter : MetricType::kGauge,
                  UnitSuffix(metrics[i].unit), metrics[i].help);
    for (const auto& [source, labels] : sources) {
      const Reading& reading = source->readings.*members[i];
      if (reading) writer.Sample(labels, metrics[i].labels, *reading);
    }
  }
  writer.Family("gpuassay_source_age_seconds", MetricType::kGauge, "seconds",
                "Time since this source was last read with success: how old its numbers are. "
                "Absent before the first success.");
  for (const auto& [source, labels] : sources) {
    // The wall clock may have been set back since.
    if (source->last_success) {
      writer.Sample(labels, "", std::max(Seconds(now - *source->last_success), 0.0));
    }
  }
  writer.Family("gpuassay_source_last_success_timestamp_seconds", MetricType::kGauge, "seconds",
                "When this source was last read with success.");
  for (const auto& [source, labels] : sources) {
    if (source->last_success) {
      writer.Sample(labels, "", Seconds(source->last_success->time_since_epoch()));
    }
  }
}

void WriteUsage(TextWriter& writer, const ProcessUsage& usage) {
  writer.Family("process_cpu_seconds_total", MetricType::kCounter, "seconds",
                "CPU time of the serving process.");
  writer.Sample("", "", usage.cpu_seconds);
  writer.Family("process_resident_memory_bytes", MetricType::kGauge, "bytes",
                "Resident memory of the serving process.");
  writer.Sample("", "", usage.resident_bytes);
  writer.Family("process_start_time_seconds", MetricType::kGauge, "seconds",
                "When the serving process was started, since 1970.");
  writer.Sample("", "", usage.start_time_seconds);
}

}  // namespace

Result<ProcessUsage> ParseProcessUsage(std::string_view self_stat, std::string_view stat,
                                       double ticks_per_second, double page_bytes) {
  const std::size_t name_end = self_stat.rfind(')');
  if (name_end == std::string_view::npos) {
    return Fail(ErrorCode::kMalformed, "self/stat: no name in brackets");
  }
  const std::vector<std::string_view> fields = Words(self_stat.substr(name_end + 1));
  const auto field = [&fields](std::size_t number) {
    const std::size_t index = number - kFirstField;
    return index < fields.size() ? Number(fields[index]) : std::nullopt;
  };
  const auto user = field(kUserTicksField);
  const auto system = field(kSystemTicksField);
  const auto start = field(kStartTicksField);
  const auto resident = field(kResidentPagesField);
  if (!user || !system || !start || !resident) {
    return Fail(ErrorCode::kMalformed, "self/stat: too few numbers");
  }
  const auto boot_time = BootTime(stat);
  if (!boot_time) return Fail(ErrorCode::kMalformed, "stat: no btime");
  return ProcessUsage{.cpu_seconds = (*user + *system) / ticks_per_second,
                      .resident_bytes = *resident * page_bytes,
                      .start_time_seconds = *boot_time + *start / ticks_per_second};
}

Result<ProcessUsage> ReadProcessUsage(const RootFs& root) {
  const Result<std::string> self_stat = root.Read("/proc/self/stat");
  if (!self_stat) return std::unexpected(self_stat.error());
  const Result<std::string> stat = root.Read("/proc/stat");
  if (!stat) return std::unexpected(stat.error());
  return ParseProcessUsage(*self_stat, *stat, static_cast<double>(sysconf(_SC_CLK_TCK)),
                           static_cast<double>(sysconf(_SC_PAGESIZE)));
}

std::string RenderLiveMetrics(const Snapshot& snapshot, WallTime now, TextFormat format,
                              const LiveDetails& details) {
  std::string out;
  out.reserve(8192);
  TextWriter writer(format, out);
  WriteSources(writer, snapshot, now);
  if (details.ready) {
    writer.Family("gpuassay_ready", MetricType::kGauge, "",
                  "1 while every source is fresh, as /readyz tells.");
    writer.Sample("", "", *details.ready ? 1 : 0);
  }
  writer.Family("gpuassay_http_requests_total", MetricType::kCounter, "",
                "Requests answered, by path and status code.");
  for (const RequestCount& request : details.requests) {
    std::string labels;
    AppendLabel(labels, "path", request.path);
    AppendLabel(labels, "code", static_cast<std::uint64_t>(request.code));
    writer.Sample(labels, "", static_cast<double>(request.count));
  }
  if (details.usage) WriteUsage(writer, *details.usage);
  if (format == TextFormat::kOpenMetrics) out += "# EOF\n";
  return out;
}

}  // namespace gpuassay
