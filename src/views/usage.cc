#include "views/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/plain_text.h"
#include "model/snapshot_json.h"
#include "views/owner_text.h"
#include "views/text_parts.h"

namespace gpuassay {
namespace {

using Json = nlohmann::ordered_json;

// One number of a row: where it comes from, and how it is shown.
struct Number {
  const char* name;
  const char* title;
  bool counter;
  Reading UsageNumbers::*in;
  Reading OwnerReadings::*of_owner;
  Reading ProcessReadings::*of_process;
  Reading GpuReadings::*of_gpu;
  std::string (*text)(const Reading&);
};

std::string Memory(const Reading& bytes) { return MebibytesText(bytes); }

const std::array<Number, 7> kNumbers = {{
    {"sm_share_ratio", "SM share", false, &UsageNumbers::sm_share_ratio,
     &OwnerReadings::sm_share_ratio, &ProcessReadings::sm_share_ratio,
     &GpuReadings::utilization_mean_ratio, PercentText},
    {"memory_used_bytes", "Memory", false, &UsageNumbers::memory_used_bytes,
     &OwnerReadings::memory_used_bytes, &ProcessReadings::memory_used_bytes,
     &GpuReadings::memory_used_bytes, Memory},
    {"power_watts", "Power", false, &UsageNumbers::power_watts, &OwnerReadings::power_watts,
     &ProcessReadings::power_watts, &GpuReadings::power_watts, WattsText},
    {"energy_joules_total", "Energy", true, &UsageNumbers::energy_joules_total,
     &OwnerReadings::energy_joules_total, &ProcessReadings::energy_joules_total,
     &GpuReadings::energy_joules_total, JoulesText},
    {"sm_active_seconds_total", "SM active", true, &UsageNumbers::sm_active_seconds_total,
     &OwnerReadings::sm_active_seconds_total, &ProcessReadings::sm_active_seconds_total,
     &GpuReadings::sm_active_seconds_total, SecondsText},
    {"tensor_active_seconds_total", "Tensor", true, &UsageNumbers::tensor_active_seconds_total,
     &OwnerReadings::tensor_active_seconds_total, &ProcessReadings::tensor_active_seconds_total,
     &GpuReadings::tensor_active_seconds_total, SecondsText},
    {"dram_active_seconds_total", "DRAM", true, &UsageNumbers::dram_active_seconds_total,
     &OwnerReadings::dram_active_seconds_total, &ProcessReadings::dram_active_seconds_total,
     &GpuReadings::dram_active_seconds_total, SecondsText},
}};

// A sum of readings of which some may be missing.
class Sum {
 public:
  void Add(const Reading& part) {
    if (part) {
      known_ += *part;
      any_ = true;
    } else {
      missing_ = part.missing();
      complete_ = false;
    }
  }
  bool complete() const { return complete_; }
  double known() const { return known_; }
  // What could be told; missing when nothing could.
  Reading Known() const { return any_ ? Reading(known_) : Reading(missing_); }
  Reading Whole() const { return complete_ && any_ ? Reading(known_) : Reading(missing_); }

 private:
  double known_ = 0;
  bool any_ = false;
  bool complete_ = true;
  Missing missing_ = Missing::kNeverSampled;
};

// An instance, or none.
using Place = std::pair<std::uint32_t, std::uint32_t>;
// Smaller numbers are what is left of subtractions.
constexpr double kRounding = 1e-9;
constexpr Place kWholeGpu = {UINT32_MAX, UINT32_MAX};

Place PlaceOf(const std::optional<std::uint32_t>& gpu_instance,
              const std::optional<std::uint32_t>& compute_instance) {
  if (!gpu_instance) return kWholeGpu;
  return {*gpu_instance, compute_instance.value_or(UINT32_MAX)};
}

std::optional<MigIdentity> InstanceOf(const Gpu& gpu, const Place& place) {
  for (const MigInstance& mig : gpu.mig) {
    if (mig.identity.gpu_instance_id != place.first) continue;
    if (place.second == UINT32_MAX || mig.identity.compute_instance_id == place.second) {
      return mig.identity;
    }
  }
  return std::nullopt;
}

UsageRowKind KindOf(OwnerKind kind) {
  switch (kind) {
    case OwnerKind::kOther:
      return UsageRowKind::kOther;
    case OwnerKind::kIdle:
      return UsageRowKind::kIdle;
    case OwnerKind::kUnattributed:
      return UsageRowKind::kUnattributed;
    case OwnerKind::kContainer:
    case OwnerKind::kPod:
    case OwnerKind::kJob:
    case OwnerKind::kUnit:
    case OwnerKind::kUser:
    case OwnerKind::kUnknown:
      break;
  }
  return UsageRowKind::kOwner;
}

std::string JobText(const ProcessOwner& owner) {
  ProcessOwner job;
  job.job = owner.job;
  job.job->step.clear();
  const std::string text = OwnerText(job);
  return owner.pod ? fmt::format("{} in {}", text, owner.pod->namespace_name) : text;
}

// What the row of an owner is called; owners of one name are one row.
std::string NameOf(const ProcessOwner& owner, UsageBy by) {
  const bool in_container = owner.pod || owner.container;
  if (by == UsageBy::kPod && owner.pod) return PodText(*owner.pod);
  if (by == UsageBy::kJob && owner.job) return JobText(owner);
  if (by == UsageBy::kUser && !in_container && !owner.user.empty()) return "user " + owner.user;
  if (owner.pod) return PodText(*owner.pod);
  return OwnerText(owner);
}

// Rows that are not yet complete.
struct Draft {
  UsageRow row;
  std::array<Sum, kNumbers.size()> sums;
};
using Drafts = std::map<std::tuple<UsageRowKind, Place, std::string>, Draft>;

Draft& DraftOf(Drafts& drafts, const Gpu& gpu, UsageRowKind kind, const Place& place,
               const std::string& name) {
  const auto [found, is_new] = drafts.try_emplace({kind, place, name});
  if (is_new) {
    found->second.row.kind = kind;
    found->second.row.name = kind == UsageRowKind::kOwner ? name : UsageRowKindName(kind);
    found->second.row.mig = InstanceOf(gpu, place);
  }
  return found->second;
}

void AddOwner(const Gpu& gpu, const OwnerUsage& usage, UsageBy by, Drafts& drafts) {
  const UsageRowKind kind = KindOf(usage.kind);
  const Place place = PlaceOf(usage.gpu_instance_id, usage.compute_instance_id);
  const std::string name = kind == UsageRowKind::kOwner ? NameOf(usage.owner, by) : "";
  Draft& draft = DraftOf(drafts, gpu, kind, place, name);
  if (usage.readings.process_count) {
    const auto count = static_cast<std::uint32_t>(*usage.readings.process_count);
    draft.row.processes = draft.row.processes ? *draft.row.processes + count : count;
  }
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    draft.sums[i].Add(usage.readings.*kNumbers[i].of_owner);
  }
}

void AddProcess(const Gpu& gpu, const GpuProcess& process, Drafts& drafts) {
  const Place place = PlaceOf(process.gpu_instance_id, process.compute_instance_id);
  const std::string name =
      fmt::format("{} of {}", process.name.empty() ? "?" : process.name, OwnerText(process.owner));
  Draft& draft = DraftOf(drafts, gpu, UsageRowKind::kOwner, place,
                         fmt::format("{:010} {}", process.pid, name));
  draft.row.name = name;
  draft.row.pid = process.pid;
  draft.row.processes = 1;
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    draft.sums[i].Add(process.readings.*kNumbers[i].of_process);
  }
}

// By process: what the owners have in their books and no listed process has is of ended ones.
void AddEnded(const Gpu& gpu, Drafts& drafts) {
  std::map<Place, std::array<double, kNumbers.size()>> rest;
  for (const OwnerUsage& usage : gpu.owners) {
    if (KindOf(usage.kind) != UsageRowKind::kOwner && usage.kind != OwnerKind::kOther) continue;
    auto& left = rest[PlaceOf(usage.gpu_instance_id, usage.compute_instance_id)];
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      const Reading& part = usage.readings.*kNumbers[i].of_owner;
      if (part) left[i] += *part;
    }
  }
  for (const auto& [key, draft] : drafts) {
    auto& left = rest[std::get<Place>(key)];
    for (std::size_t i = 0; i < kNumbers.size(); ++i) left[i] -= draft.sums[i].known();
  }
  for (const auto& [place, left] : rest) {
    // Less than a thousandth of a unit is the rounding of sums.
    constexpr double kLeastToSay = 1e-3;
    if (std::ranges::all_of(left, [](double value) { return value < kLeastToSay; })) continue;
    Draft& draft = DraftOf(drafts, gpu, UsageRowKind::kOther, place, "");
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      draft.sums[i].Add(std::max(left[i], 0.0));
    }
  }
}

// Gauges of which a part is missing are missing; what is known of them is then unattributed.
void Settle(const Gpu& gpu, Drafts& drafts, GpuUsage& usage) {
  std::map<Place, std::array<double, kNumbers.size()>> moved;
  std::array<Sum, kNumbers.size()> all;
  for (auto& [key, draft] : drafts) {
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      const Sum& sum = draft.sums[i];
      all[i].Add(sum.Known());
      Reading& number = draft.row.numbers.*kNumbers[i].in;
      number = kNumbers[i].counter ? sum.Known() : sum.Whole();
      if (number && std::abs(*number) < kRounding) number = 0.0;
      if (!number && sum.Known()) moved[std::get<Place>(key)][i] += sum.known();
    }
  }
  for (const auto& [place, numbers] : moved) {
    UsageRow& rest = DraftOf(drafts, gpu, UsageRowKind::kUnattributed, place, "").row;
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      Reading& number = rest.numbers.*kNumbers[i].in;
      if (numbers[i] > 0) number = numbers[i] + (number ? *number : 0.0);
    }
  }
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    usage.sum.*kNumbers[i].in = all[i].Known();
    usage.device.*kNumbers[i].in = gpu.readings.*kNumbers[i].of_gpu;
  }
  if (!gpu.mig.empty()) usage.sum.sm_share_ratio = usage.device.sm_share_ratio;
  for (auto& [key, draft] : drafts) usage.rows.push_back(std::move(draft.row));
}

// Nothing known sorts as less than zero.
double Rank(const Reading& reading) { return reading ? *reading : -1; }

void Sort(std::vector<UsageRow>& rows) {
  std::ranges::stable_sort(rows, [](const UsageRow& a, const UsageRow& b) {
    const auto key = [](const UsageRow& row) {
      return std::tuple(row.kind, row.mig ? row.mig->index : UINT32_MAX,
                        -Rank(row.numbers.sm_share_ratio), -Rank(row.numbers.memory_used_bytes),
                        std::string_view(row.name));
    };
    return key(a) < key(b);
  });
}

std::vector<std::string> Cells(const UsageNumbers& numbers) {
  std::vector<std::string> cells;
  for (const Number& number : kNumbers) cells.push_back(number.text(numbers.*number.in));
  return cells;
}

std::vector<std::string> Line(const GpuUsage& usage, const UsageRow& row) {
  std::vector<std::string> line = {row.pid ? fmt::format("PID {} {}", *row.pid, row.name)
                                           : row.name};
  if (row.mig) line[0] += ", " + DeviceText(usage.gpu, &*row.mig);
  line.push_back(row.processes ? std::to_string(*row.processes) : "");
  std::ranges::move(Cells(row.numbers), std::back_inserter(line));
  if (row.kind != UsageRowKind::kIdle) return line;
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    if (!(row.numbers.*kNumbers[i].in)) line[i + 2].clear();  // the row has power and energy only
  }
  return line;
}

Json NumbersObject(const UsageNumbers& numbers) {
  Json object;
  Json missing = Json::object();
  for (const Number& number : kNumbers) {
    const Reading& reading = numbers.*number.in;
    object[number.name] = reading ? Json(*reading) : Json(nullptr);
    if (!reading) missing[number.name] = std::string(MissingName(reading.missing()));
  }
  if (!missing.empty()) object["missing"] = std::move(missing);
  return object;
}

Json RowObject(const UsageRow& row) {
  Json object;
  object["kind"] = std::string(UsageRowKindName(row.kind));
  object["name"] = row.name;
  object["pid"] = row.pid ? Json(*row.pid) : Json(nullptr);
  object["mig_uuid"] = row.mig ? Json(row.mig->uuid) : Json(nullptr);
  object["processes"] = row.processes ? Json(*row.processes) : Json(nullptr);
  object.update(NumbersObject(row.numbers));
  return object;
}

}  // namespace

std::optional<UsageBy> ParseUsageBy(std::string_view text) {
  for (const UsageBy by : {UsageBy::kPod, UsageBy::kProcess, UsageBy::kJob, UsageBy::kUser}) {
    if (UsageByName(by) == text) return by;
  }
  return std::nullopt;
}

std::string_view UsageByName(UsageBy by) {
  constexpr std::array<std::string_view, 4> kNames = {"pod", "process", "job", "user"};
  return kNames[static_cast<std::size_t>(by)];
}

std::string_view UsageRowKindName(UsageRowKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"owner", "other", "idle", "unattributed"};
  return kNames[static_cast<std::size_t>(kind)];
}

Usage MakeUsage(const Snapshot& snapshot, UsageBy by) {
  Usage usage;
  usage.by = by;
  usage.node = snapshot.node;
  usage.time = snapshot.time;
  for (const Gpu& gpu : snapshot.gpus) {
    GpuUsage& one = usage.gpus.emplace_back();
    one.gpu = gpu.identity;
    Drafts drafts;
    if (by == UsageBy::kProcess) {
      for (const GpuProcess& process : gpu.processes) AddProcess(gpu, process, drafts);
      AddEnded(gpu, drafts);
    }
    for (const OwnerUsage& owner : gpu.owners) {
      const UsageRowKind kind = KindOf(owner.kind);
      const bool of_processes = kind == UsageRowKind::kOwner || kind == UsageRowKind::kOther;
      if (by != UsageBy::kProcess || !of_processes) AddOwner(gpu, owner, by, drafts);
    }
    Settle(gpu, drafts, one);
    Sort(one.rows);
  }
  return usage;
}

std::string UsageText(const Usage& usage) {
  std::string text;
  for (const GpuUsage& gpu : usage.gpus) {
    text += fmt::format("{}{}  {}  {}\n", text.empty() ? "" : "\n", DeviceText(gpu.gpu, nullptr),
                        Printable(gpu.gpu.name), Printable(gpu.gpu.uuid));
    std::vector<std::vector<std::string>> lines = {
        {fmt::format("by {}", UsageByName(usage.by)), "Processes"}};
    for (const Number& number : kNumbers) lines[0].emplace_back(number.title);
    for (const UsageRow& row : gpu.rows) lines.push_back(Line(gpu, row));
    for (const auto& [name, numbers] :
         {std::pair("sum", &gpu.sum), std::pair("the GPU itself", &gpu.device)}) {
      lines.push_back({name, ""});
      std::ranges::move(Cells(*numbers), std::back_inserter(lines.back()));
    }
    text += ColumnsText(lines, "  ");
  }
  return text.empty() ? "No GPU.\n" : text;
}

std::string UsageJson(const Usage& usage, int indent) {
  Json object;
  object["by"] = std::string(UsageByName(usage.by));
  object["time"] = TimeText(usage.time);
  object["hostname"] = usage.node.hostname;
  object["gpus"] = Json::array();
  for (const GpuUsage& gpu : usage.gpus) {
    Json one;
    one["index"] = gpu.gpu.index;
    one["uuid"] = gpu.gpu.uuid;
    one["rows"] = Json::array();
    for (const UsageRow& row : gpu.rows) one["rows"].push_back(RowObject(row));
    one["sum"] = NumbersObject(gpu.sum);
    one["device"] = NumbersObject(gpu.device);
    object["gpus"].push_back(std::move(one));
  }
  return object.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpuassay
