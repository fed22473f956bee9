// Datagrams that any process may send to the agent: either refused in one line that repeats nothing
// of them, or reports within their bounds.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "progress/memory_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gpuassay::Check;
  const std::string_view datagram(reinterpret_cast<const char*>(data), size);
  const auto reports = gpuassay::ParseMemoryReports(datagram);
  if (!reports) {
    constexpr std::size_t kLineMax = 160;
    Check(reports.error().code == gpuassay::ErrorCode::kMalformed, "a bad datagram is malformed");
    Check(reports.error().what.size() <= kLineMax, "an error is short");
    Check(reports.error().what.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  Check(reports->size() <= gpuassay::MemoryReports::kPerProcessMax, "devices are bounded");
  for (const gpuassay::MemoryReport& report : *reports) {
    constexpr std::size_t kDeviceBytesMax = 96;
    Check(report.device.size() <= kDeviceBytesMax, "the name of a device is bounded");
    Check(report.allocated_bytes <= report.reserved_bytes, "what holds data is a part of the pool");
  }
  return 0;
}
