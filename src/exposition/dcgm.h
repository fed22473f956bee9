// The names, labels and units of dcgm-exporter, so that dashboards and alerts made for it go on.
// docs/dcgm-compatibility.md: what is the same, what is better, what is not verified.
#pragma once

#include <span>
#include <string_view>

#include "exposition/exposition.h"
#include "exposition/text_writer.h"
#include "model/snapshot.h"

namespace gpuassay {

// Appends the families of `names` in the order of dcgm_names.def; nothing for kOff. A value we do
// not have has no series. As the exporter: integers as %d, doubles as %f, and a GPU that is divided
// into MIG instances has one series per GPU instance where the field exists per instance.
void WriteDcgmMetrics(TextWriter& writer, const Snapshot& snapshot, DcgmNames names);

// How well a name of the 4.9 family is known (docs/dcgm-compatibility.md).
enum class DcgmEvidence {
  kHeader,        // in the public header of DCGM 4.6.1; that the exporter prints it is inferred
  kReleaseNotes,  // named by the exporter's release notes
  kReported,      // seen in a third party's reading of NVIDIA's documentation of DCGM 4.7
  kInferred,      // made by the pattern of its neighbours
};

struct DcgmNamePair {
  std::string_view name48;  // empty: not in that version
  std::string_view name49;
  DcgmEvidence evidence49;
};
// For the documentation and its test.
std::span<const DcgmNamePair> DcgmNamePairs();

// The text of `err_msg`: a short name of the Xid; "Unknown Error" for codes we have no name for.
std::string_view DcgmXidMessage(std::uint64_t xid);

}  // namespace gpuassay
