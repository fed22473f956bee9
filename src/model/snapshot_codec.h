// The binary form of a snapshot: what the driver worker hands to the serving process and what a
// recording holds. Fields are in the order of metrics.def; docs/record-format.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/snapshot.h"

namespace gpuassay {

// Raised whenever old bytes would be read wrongly.
inline constexpr std::uint8_t kSnapshotVersion = 2;

// Bounds of the format beside those of snapshot.h.
inline constexpr std::size_t kTextBytesMax = 1024;  // of one name, identity or error line
inline constexpr std::size_t kSourcesMax = 16;
inline constexpr std::size_t kCapabilitiesMissingMax = 256;
inline constexpr std::size_t kFieldsMax = 1024;  // of one scope of metrics.def

// Appends the snapshot to `out`. What is over a bound is left out, so that the result can always be
// decoded; left-out processes are added to `processes_dropped`.
void EncodeSnapshot(const Snapshot& snapshot, std::string& out);

// The whole of `bytes` is one snapshot. kMalformed says at which byte and what; every count is
// checked against the bounds and against the bytes that are left before memory is taken.
//   * Fewer fields than metrics.def has (an older recording): kNeverSampled for the rest.
//   * More fields (a newer recording): the rest is skipped.
//   * A value that is not finite reads as kImplausible, a reason of a newer version as
//   kDriverError.
Result<Snapshot> DecodeSnapshot(std::string_view bytes);

}  // namespace gpuassay
