#include "cli/explain_metric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "cli/dcgm_fields.h"
#include "cli/footnotes.h"
#include "cli/metrics_text.h"
#include "model/catalogue.h"

namespace gpuassay {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 12;
constexpr std::size_t kNameBytesMax = 128;

std::string Line(std::string_view label, std::string_view text) {
  return Wrapped(fmt::format("  {:<{}}{}", label, kIndent - 2, text), kColumns, kIndent) + '\n';
}

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// True when `text` names `word` ("integral of sm_active_ratio").
bool Mentions(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !IsWordCharacter(text[at - 1]);
    const bool ends = end == text.size() || !IsWordCharacter(text[end]);
    if (starts && ends) return true;
  }
  return false;
}

// Counters made of a gauge, the gauge of a counter, what the help compares with, and the same field
// of another scope.
std::vector<std::string> RelatedTo(const MetricInfo& metric) {
  std::vector<std::string> names;
  for (const MetricInfo& other : AllMetrics()) {
    if (other.name == metric.name) continue;
    const bool same_scope = other.scope == metric.scope;
    const bool related =
        (same_scope &&
         (Mentions(other.source, metric.field) || Mentions(other.help, metric.field) ||
          Mentions(metric.source, other.field) || Mentions(HelpOf(metric), other.field))) ||
        (!same_scope && other.field == metric.field && metric.field.contains('_'));
    const std::string name(other.name);
    if (related && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string DcgmText(const DcgmField& field) {
  std::vector<std::string> parts;
  if (!field.name48.empty()) {
    parts.push_back(fmt::format("{} ({}, dcgm-exporter 4.8)", field.name48, field.unit48));
  }
  if (!field.name49.empty() && field.name49 != field.name48) {
    parts.push_back(fmt::format("{} ({}, 4.9)", field.name49, field.unit49));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// One family: `lines` are its lines in the catalogue.
std::string FamilyText(const std::vector<const MetricInfo*>& lines) {
  const MetricInfo& first = *lines.front();
  std::string out = fmt::format("{}\n", first.name);
  out += Wrapped(fmt::format("  {}", HelpOf(first)), kColumns, 2) + '\n';
  out += Line("unit", UnitName(first.unit));
  out += Line("kind", fmt::format("{}, per {}, {}", KindName(first.kind), ScopeName(first.scope),
                                  FamilyName(first.family)));
  for (const MetricInfo* line : lines) {
    if (!line->labels.empty()) out += Line("series", fmt::format("{{{}}}", line->labels));
    out += Line("field", line->field);
    out += Line("read", PaceName(line->pace));
    out += Line("from", line->source);
    const DcgmField* dcgm = line->scope == MetricScope::kGpu ? DcgmFieldOf(line->field) : nullptr;
    if (dcgm != nullptr) out += Line("DCGM", DcgmText(*dcgm));
  }
  std::vector<std::string> related;
  for (const MetricInfo* line : lines) {
    for (std::string& name : RelatedTo(*line)) {
      if (std::ranges::find(related, name) == related.end()) related.push_back(std::move(name));
    }
  }
  if (!related.empty()) out += Line("see also", fmt::format("{}", fmt::join(related, ", ")));
  return out;
}

// A name stands for all lines of its family, a field for its line in each scope.
std::string TextOf(std::string_view name) {
  std::string out;
  std::string_view done;
  for (const MetricInfo& metric : AllMetrics()) {
    if ((metric.name != name && metric.field != name) || metric.name == done) continue;
    done = metric.name;
    std::vector<const MetricInfo*> lines;
    for (const MetricInfo& line : AllMetrics()) {
      const bool wanted = line.name == name || line.field == name;
      if (line.name == metric.name && wanted) lines.push_back(&line);
    }
    if (!out.empty()) out += '\n';
    out += FamilyText(lines);
  }
  return out;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Insertions, deletions and changes that turn one into the other.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// Fields missing for one reason, with the GPUs on which they are.
using MissingFields = std::map<std::string, std::set<std::uint32_t>>;

template <class Readings>
void Collect(MetricScope scope, const Readings& readings, std::uint32_t gpu,
             std::map<Missing, MissingFields>& out) {
  const auto metrics = MetricsOf(scope);
  const auto members = Members(&readings);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Reading& reading = readings.*members[i];
    if (reading) continue;
    const std::string field = scope == MetricScope::kGpu
                                  ? std::string(metrics[i].field)
                                  : fmt::format("{}.{}", ScopeName(scope), metrics[i].field);
    out[reading.missing()][field].insert(gpu);
  }
}

std::string ReasonText(Missing reason, const MissingFields& fields) {
  std::string out = fmt::format("{}\n", MissingName(reason));
  out += Wrapped(fmt::format("  {}.", MissingText(reason)), kColumns, 2) + '\n';
  std::map<std::string, std::vector<std::string>> fields_of;  // by GPUs
  for (const auto& [field, gpus] : fields) fields_of[Ranges(gpus)].push_back(field);
  for (const auto& [gpus, names] : fields_of) {
    out += Wrapped(fmt::format("    GPU {}: {}", gpus, fmt::join(names, ", ")), kColumns, 6) + '\n';
  }
  return out;
}

}  // namespace

std::vector<std::string> NearestNames(std::string_view name, std::size_t count) {
  const std::string wanted = Lower(name.substr(0, kNameBytesMax));
  std::vector<std::pair<std::size_t, std::string>> names;
  const auto add = [&](std::string_view candidate) {
    if (!candidate.empty()) names.emplace_back(Distance(wanted, Lower(candidate)), candidate);
  };
  for (const MetricInfo& metric : AllMetrics()) {
    add(metric.field);
    add(metric.name);
  }
  for (const DcgmField& field : DcgmFields()) {
    add(field.name48);
    add(field.name49);
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < std::min(count, names.size()); ++i)
    nearest.push_back(names[i].second);
  return nearest;
}

Result<std::string> ExplainMetric(std::string_view name) {
  const std::string text = TextOf(name);
  if (!text.empty()) return text;
  const DcgmField* dcgm = FindDcgmField(name);
  if (dcgm == nullptr) {
    return Fail(
        ErrorCode::kMalformed,
        fmt::format("{}: no metric, field or DCGM name; the nearest are {} (or ask for util "
                    "or missing)",
                    name.substr(0, kNameBytesMax), fmt::join(NearestNames(name, 3), ", ")));
  }
  std::string out = fmt::format("{}\n", name);
  out += Wrapped(fmt::format("  {}.", dcgm->help), kColumns, 2) + '\n';
  out += Line("DCGM", DcgmText(*dcgm));
  if (dcgm->field.empty()) return out + Line("gpuassay", "put together from several fields");
  return out + '\n' + TextOf(FindMetric(dcgm->field)->name);
}

std::string ExplainMissing(const Snapshot& snapshot) {
  std::map<Missing, MissingFields> missing;
  for (const Gpu& gpu : snapshot.gpus) {
    const std::uint32_t index = gpu.identity.index;
    GpuReadings readings = gpu.readings;
    if (gpu.xids.empty()) {  // there was none: absent, but not missing
      readings.last_xid = 0.0;
      readings.last_xid_timestamp_seconds = 0.0;
    }
    Collect(MetricScope::kGpu, readings, index, missing);
    for (const NvLink& link : gpu.links) Collect(MetricScope::kLink, link.readings, index, missing);
    for (const MigInstance& mig : gpu.mig) Collect(MetricScope::kMig, mig.readings, index, missing);
    for (const GpuProcess& process : gpu.processes) {
      Collect(MetricScope::kProcess, process.readings, index, missing);
    }
  }
  std::string out;
  for (const auto& [reason, fields] : missing) {
    if (!out.empty()) out += '\n';
    out += ReasonText(reason, fields);
  }
  if (missing.empty() && !snapshot.gpus.empty()) out += "Nothing is missing.\n";
  if (snapshot.gpus.empty()) out += "There are no GPUs.\n";
  if (!snapshot.capabilities_missing.empty()) {
    out += "\nFunctions that the installed driver library lacks\n";
    out +=
        Wrapped(fmt::format("  {}", fmt::join(snapshot.capabilities_missing, ", ")), kColumns, 2);
    out += '\n';
  }
  return out;
}

}  // namespace gpuassay
