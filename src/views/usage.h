// Who uses how much of each GPU, as a table that adds up: a row per owner, what no owner accounts
// for, what the GPU draws without work, their sum, and the GPU's own numbers beside it.
// `gpuassay snapshot --by` shows it. Pure: from one snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace gpuassay {

// What makes one row. An owner without it (by pod: a job, a user) has a row of its own, called by
// what is known. Users inside containers are those of the image and count for nothing.
enum class UsageBy : std::uint8_t { kPod, kProcess, kJob, kUser };
std::optional<UsageBy> ParseUsageBy(std::string_view text);  // "pod", "process", "job", "user"
std::string_view UsageByName(UsageBy by);

// Gauges now, and counters since the agent started. A gauge is missing as soon as one of its parts
// is; its known parts are then unattributed. A counter holds what could be told.
struct UsageNumbers {
  Reading sm_share_ratio;  // of the device's time, 0-1; of an instance in MIG mode
  Reading memory_used_bytes;
  Reading power_watts;  // above idle
  Reading energy_joules_total;
  Reading sm_active_seconds_total;
  Reading tensor_active_seconds_total;
  Reading dram_active_seconds_total;

  bool operator==(const UsageNumbers&) const = default;
};

enum class UsageRowKind : std::uint8_t {
  kOwner,         // a pod, process, job, user, or what else owns
  kOther,         // owners over a bound; by process: what processes did that have ended
  kIdle,          // what the GPU draws without work: only power and energy
  kUnattributed,  // what no row above accounts for
};
std::string_view UsageRowKindName(UsageRowKind kind);  // "owner" ... "unattributed"

struct UsageRow {
  UsageRowKind kind = UsageRowKind::kOwner;
  std::string name;                        // "ml/train-0", "python of ml/train-0 (main)", "idle"
  std::optional<std::uint32_t> pid;        // by process
  std::optional<MigIdentity> mig;          // the instance it is on; empty: the GPU
  std::optional<std::uint32_t> processes;  // now; absent where nothing has processes
  UsageNumbers numbers;
};

struct GpuUsage {
  GpuIdentity gpu;
  std::vector<UsageRow> rows;  // by kind, then instance, then SM share, memory, name
  // Of the known numbers of all rows. Shares of different instances are of different wholes: with
  // MIG there is no sum of them.
  UsageNumbers sum;
  UsageNumbers device;  // as measured: equal to `sum` where both are known
};

struct Usage {
  UsageBy by = UsageBy::kPod;
  NodeIdentity node;
  WallTime time;
  std::vector<GpuUsage> gpus;  // by index
};

Usage MakeUsage(const Snapshot& snapshot, UsageBy by);

// A table per GPU. A missing number is the name of its reason, never 0.
std::string UsageText(const Usage& usage);
// {"by", "time", "hostname", "gpus": [{"rows": [...], "sum": {...}, "device": {...}}]}. A missing
// number is null, its reason in "missing": {"field": "reason"} of the same object.
std::string UsageJson(const Usage& usage, int indent = -1);

}  // namespace gpuassay
