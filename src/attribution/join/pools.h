// Which GPU the report of a job's memory pool is about (M25).
#pragma once

#include <vector>

#include "model/snapshot.h"
#include "progress/memory_report.h"

namespace gpuassay {

// Fills memory_pool_* of one process, which is `gpu.processes[process]`. `devices`: on how many
// devices (GPUs, MIG instances) this PID is. A report names its device by UUID, or leaves it out
// when the process is on one; a CUDA ordinal counts only then too, because CUDA_VISIBLE_DEVICES
// decides what it means. Else: not reported.
void FillPool(const std::vector<MemoryReport>& reports, const Gpu& gpu, std::size_t devices,
              GpuProcess& process);

}  // namespace gpuassay
