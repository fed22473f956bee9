// Names that do not change while the driver is loaded.
#pragma once

#include <string>

#include "model/snapshot.h"
#include "sources/nvml/device_calls.h"

namespace gpuassay {

// Driver, NVML and CUDA versions; hostname is left alone. Unknown ones are empty.
void ReadNodeIdentity(NvmlLibrary& library, NodeIdentity& node);

// All but index and UUID. `architecture` becomes NVML's number, 0 when unknown.
void ReadGpuIdentity(DeviceCalls& calls, GpuIdentity& identity, unsigned int& architecture);

// The UUID of a GPU or MIG device.
nvmlReturn_t ReadUuid(DeviceCalls& calls, nvmlDevice_t device, std::string& uuid);

}  // namespace gpuassay
