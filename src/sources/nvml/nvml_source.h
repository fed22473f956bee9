// The NVIDIA driver as a source: NVML opened at run time, nothing linked, every function optional.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sources/source.h"

namespace gpuassay {

class CallWatch;  // call_watch.h: tells another process which driver call is under way

struct NvmlOptions {
  // Path or soname for dlopen. Ignored when `resolve` is set.
  std::string library = "libnvidia-ml.so.1";
  // Instead of dlopen + dlsym: the simulated driver in process, tests.
  std::function<void*(const char* function)> resolve;
  std::string source_name = "nvml";
  std::string hostname;
  const Clock* clock = nullptr;                    // required; outlives the source
  Duration slow_every = std::chrono::seconds(60);  // pace of MetricPace::kSlow
  // GPUs (by index) that are not touched because a call on them did not come back; their readings
  // are missing with kTimedOut.
  std::vector<std::uint32_t> gpus_to_skip;
  CallWatch* watch = nullptr;  // optional; outlives the source
};

// Opens the library and finds its functions. kNotFound: no such library; kMalformed: the library is
// not NVML (says what is missing). The driver itself is initialised by the first Read(), which
// tries again each time until the driver is there.
Result<std::unique_ptr<Source>> OpenNvml(NvmlOptions options);

}  // namespace gpuassay
