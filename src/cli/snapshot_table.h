// A snapshot for a person: what nvidia-smi answers and what it hides, at most 100 columns wide.
#pragma once

#include <cstddef>
#include <string>

#include "model/snapshot.h"

namespace gpuassay {

// Processes of one GPU in the table, the largest by memory; the rest is summed in one line.
inline constexpr std::size_t kProcessesShownMax = 16;

// Pure. Missing values are "-", and footnotes at the end say why.
std::string SnapshotTable(const Snapshot& snapshot, bool colour);

// Text of a share: "96%" from 10 % on, "8.2%", "0.05%".
std::string PercentText(double ratio);

// Names of the reasons that hold the clocks below the maximum now, "power cap, hardware thermal";
// "none"; empty when the driver does not tell.
std::string ClockReasonsText(const GpuReadings& readings);

// "ok", why the GPU is down ("gpu lost"), or what the driver asks for ("reset the GPU"); empty when
// nobody knows.
std::string StateText(const GpuReadings& readings);

}  // namespace gpuassay
