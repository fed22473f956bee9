// The driver worker: the process in which every call into a vendor library happens. It reads one
// source on a fixed grid of the steady clock and hands each finished reading over as a frame.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/source_spec.h"
#include "base/clock.h"

namespace gpuassay {

// Exit codes the supervisor understands.
inline constexpr int kWorkerEnded = 0;     // asked to, or the source is at its end
inline constexpr int kWorkerBadInput = 2;  // the source cannot be opened; a failure frame says why
inline constexpr int kWorkerNotFound = 3;  // the library is not there (yet)
inline constexpr int kWorkerNeedsSuccessor = 4;  // only a new process can go on (driver upgraded)

struct WorkerOptions {
  SourceSpec source;
  std::string hostname;
  Duration interval = std::chrono::seconds(1);
  double simulator_speed = 1;
  std::vector<std::uint32_t> gpus_to_skip;
  int frames_fd = -1;  // socket to the supervisor; its end of file ends the worker
  int watch_fd = -1;   // shared memory with a CallWatch
};

// Runs until the supervisor goes away, SIGTERM, or the source's end. Returns an exit code from
// above.
int RunWorker(const WorkerOptions& options);

}  // namespace gpuassay
