#include "cli/metrics_text.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "cli/dcgm_fields.h"
#include "cli/table.h"

namespace gpuassay {
namespace {

struct ScopeTitle {
  MetricScope scope;
  std::string_view title;
  std::string_view labels;
};
constexpr std::array<ScopeTitle, 6> kScopes = {{
    {MetricScope::kGpu, "Per GPU", "one series per GPU"},
    {MetricScope::kLink, "Per NVLink", "one series per link of a GPU"},
    {MetricScope::kMig, "Per MIG instance", "one series per MIG device"},
    {MetricScope::kProcess, "Per process",
     "one series per process and GPU, for the largest by memory; the rest is `pid=\"other\"`"},
    {MetricScope::kSource, "Per source", "how the numbers got here"},
    {MetricScope::kOwner, "Per owner",
     "one series per container, job, unit or user and GPU or MIG instance; all of a GPU add up to "
     "it "
     "(docs/attribution.md)"},
}};

// A vertical bar would end the cell.
std::string MarkdownCell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

// The DCGM name of a GPU's field, in dcgm-exporter 4.8 or else 4.9.
std::string_view DcgmNameOf(const MetricInfo& metric) {
  if (metric.scope != MetricScope::kGpu) return {};
  const DcgmField* field = DcgmFieldOf(metric.field);
  if (field == nullptr) return {};
  return field->name48.empty() ? field->name49 : field->name48;
}

}  // namespace

std::string_view HelpOf(const MetricInfo& metric) {
  for (const MetricInfo& other : AllMetrics()) {
    if (other.name == metric.name && !other.help.empty()) return other.help;
  }
  return metric.help;
}

std::string SeriesOf(const MetricInfo& metric) {
  if (metric.labels.empty()) return std::string(metric.name);
  return fmt::format("{}{{{}}}", metric.name, metric.labels);
}

std::string MetricsTable() {
  Table table({{"Metric"}, {"Kind"}, {"Unit"}, {"Read"}, {"Family"}});
  for (const MetricInfo& metric : AllMetrics()) {
    table.Add({{SeriesOf(metric)},
               {std::string(KindName(metric.kind))},
               {std::string(UnitName(metric.unit))},
               {std::string(PaceName(metric.pace))},
               {std::string(FamilyName(metric.family))}});
  }
  return table.Render(false);
}

std::string MetricsJson() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MetricInfo& metric : AllMetrics()) {
    nlohmann::ordered_json object;
    object["name"] = metric.name;
    object["labels"] = metric.labels;
    object["scope"] = ScopeName(metric.scope);
    object["field"] = metric.field;
    object["family"] = FamilyName(metric.family);
    object["kind"] = KindName(metric.kind);
    object["unit"] = UnitName(metric.unit);
    object["pace"] = PaceName(metric.pace);
    object["source"] = metric.source;
    object["help"] = HelpOf(metric);
    const std::string_view dcgm = DcgmNameOf(metric);
    object["dcgm"] = dcgm.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(dcgm);
    list.push_back(std::move(object));
  }
  return list.dump(2) + '\n';
}

std::string MetricsMarkdown() {
  std::string out =
      "# Metrics\n\n"
      "Every number that gpuassay exports, made from `src/model/metrics.def` by\n"
      "`gpuassay metrics --markdown`. Units are base units; ratios are 0 to 1. A value that is "
      "not\n"
      "known has no series: `gpuassay explain missing` says why. The field is the key in JSON. "
      "The\n"
      "last column is the name in dcgm-exporter 4.8 (else 4.9) of the same number.\n";
  for (const ScopeTitle& scope : kScopes) {
    out += fmt::format("\n## {}\n\n{}.\n\n", scope.title, scope.labels);
    out += "| Metric | Field | Kind | Unit | Read | What it is | Where it comes from | DCGM |\n";
    out += "|---|---|---|---|---|---|---|---|\n";
    for (const MetricInfo& metric : MetricsOf(scope.scope)) {
      const std::string_view dcgm = DcgmNameOf(metric);
      out +=
          fmt::format("| `{}` | `{}` | {} | {} | {} | {} | {} | {} |\n", SeriesOf(metric),
                      metric.field, KindName(metric.kind), UnitName(metric.unit),
                      PaceName(metric.pace), MarkdownCell(HelpOf(metric)),
                      MarkdownCell(metric.source), dcgm.empty() ? "" : fmt::format("`{}`", dcgm));
    }
  }
  return out;
}

}  // namespace gpuassay
