#include "attribution/join/pools.h"

#include <algorithm>
#include <string_view>

namespace gpuassay {
namespace {

bool IsUuid(std::string_view device) {
  return device.starts_with("GPU-") || device.starts_with("MIG-");
}

bool IsOn(std::string_view uuid, const Gpu& gpu, const GpuProcess& process) {
  if (!process.gpu_instance_id) return uuid == gpu.identity.uuid;
  // In MIG mode frameworks name the instance; some the whole GPU.
  return std::ranges::any_of(gpu.mig, [&](const MigInstance& mig) {
    return mig.identity.gpu_instance_id == process.gpu_instance_id &&
           (!process.compute_instance_id ||
            mig.identity.compute_instance_id == process.compute_instance_id) &&
           mig.identity.uuid == uuid;
  });
}

}  // namespace

void FillPool(const std::vector<MemoryReport>& reports, const Gpu& gpu, std::size_t devices,
              GpuProcess& process) {
  process.readings.memory_pool_reserved_bytes = Missing::kNotReported;
  process.readings.memory_pool_allocated_bytes = Missing::kNotReported;
  for (const MemoryReport& report : reports) {
    const bool fits = IsUuid(report.device) ? IsOn(report.device, gpu, process)
                                            : devices == 1 && reports.size() == 1;
    if (!fits) continue;
    process.readings.memory_pool_reserved_bytes = static_cast<double>(report.reserved_bytes);
    process.readings.memory_pool_allocated_bytes = static_cast<double>(report.allocated_bytes);
    return;
  }
}

}  // namespace gpuassay
