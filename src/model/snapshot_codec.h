// The binary form of a snapshot: what the driver worker hands to the serving process and what a
// recording holds. Fields are in the order of metrics.def; docs/record-format.md describes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/snapshot.h"

namespace gpuassay {

// Raised whenever old bytes would be read wrongly.
inline constexpr std::uint8_t kSnapshotVersion = 1;

// Appends the snapshot to `out`.
void EncodeSnapshot(const Snapshot& snapshot, std::string& out);

// The whole of `bytes` is one snapshot. kMalformed says at which byte and what; every count is
// checked against the bounds in snapshot.h before memory is taken. Appended metrics: bytes with
// fewer fields than metrics.def has (an older recording) read as kNeverSampled for the rest.
Result<Snapshot> DecodeSnapshot(std::string_view bytes);

}  // namespace gpuassay
