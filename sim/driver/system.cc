// NVML's calls on the system and those that find a GPU.
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

std::string& LoadError() {
  static std::string line;  // guarded by DriverMutex()
  return line;
}

nvmlReturn_t Initialize(Function function) {
  const Call call = Call::Initialize(function);
  if (call.status() == NVML_ERROR_DRIVER_NOT_LOADED && !LoadError().empty()) {
    const std::string line = std::exchange(LoadError(), {});  // said once, not at every attempt
    std::fputs((line + "\n").c_str(), stderr);
  }
  if (call.status() != NVML_SUCCESS) {
    return call.status();
  }
  Driver& driver = call.driver();
  if (driver.references++ == 0) {
    driver.initialized_at = call.now();
    driver.lost_at_init.clear();
    for (const DeviceState& gpu : driver.engine.devices()) {
      driver.lost_at_init.push_back(gpu.lost);
    }
  }
  return NVML_SUCCESS;
}

nvmlReturn_t GiveHandle(const Driver& driver, std::uint32_t index, nvmlDevice_t* device) {
  if (driver.lost_at_init[index]) {
    return NVML_ERROR_GPU_IS_LOST;
  }
  *device = driver.GpuHandle(index);
  return NVML_SUCCESS;
}

nvmlReturn_t HandleByIndex(Function function, unsigned int index, nvmlDevice_t* device) {
  return OnDriver(function, device != nullptr, [&](Driver& driver) -> nvmlReturn_t {
    return index < driver.engine.devices().size() ? GiveHandle(driver, index, device)
                                                  : NVML_ERROR_INVALID_ARGUMENT;
  });
}

nvmlReturn_t HandleByPciBusId(Function function, const char* text, nvmlDevice_t* device) {
  const bool valid = text != nullptr && device != nullptr;
  return OnDriver(function, valid, [&](Driver& driver) -> nvmlReturn_t {
    const std::optional<PciAddress> address = ParsePciAddress(text);
    if (!address) {
      return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (const DeviceState& gpu : driver.engine.devices()) {
      if (ParsePciAddress(gpu.config.pci_bus_id) == address) {
        return GiveHandle(driver, gpu.index, device);
      }
    }
    return NVML_ERROR_NOT_FOUND;
  });
}

nvmlReturn_t Count(Function function, unsigned int* count) {
  return OnDriver(function, count != nullptr, [&](const Driver& driver) {
    return Give(true, count, driver.engine.devices().size());
  });
}

// "12.8" is 12080.
nvmlReturn_t CudaVersion(Function function, int* version) {
  return OnDriver(function, version != nullptr, [&](const Driver& driver) -> nvmlReturn_t {
    int major = 0;
    int minor = 0;
    if (std::sscanf(driver.engine.scenario().driver.cuda.c_str(), "%d.%d", &major, &minor) != 2) {
      return NVML_ERROR_UNKNOWN;
    }
    *version = major * 1000 + minor * 10;
    return NVML_SUCCESS;
  });
}

// Boards of the simulated node: a K80 carries two GPUs, every other model one.
std::uint32_t BoardOf(const DeviceState& gpu) {
  return gpu.model->architecture == Architecture::kKepler ? gpu.index / 2 : gpu.index;
}

// Two GPUs of one driver under the same call; `use` gets both.
template <class Use>
nvmlReturn_t OnPair(Function function, nvmlDevice_t first, nvmlDevice_t second, bool valid,
                    Use&& use) {
  return OnGpu(
      function, first, valid && second != nullptr,
      [&](const DeviceState& one) -> nvmlReturn_t {
        const Driver& driver = *InstalledDriver();
        const HandleTarget* other = driver.FindHandle(second);
        if (other == nullptr || other->mig) {
          return NVML_ERROR_INVALID_ARGUMENT;
        }
        return use(driver, one, driver.Gpu(other->gpu));
      },
      Needs::kIdentity);
}

}  // namespace

void SetLoadError(std::string line) {
  const std::scoped_lock lock(DriverMutex());
  LoadError() = std::move(line);
}

}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlInit() { return Initialize(Function::nvmlInit); }
nvmlReturn_t nvmlInit_v2() { return Initialize(Function::nvmlInit_v2); }
nvmlReturn_t nvmlInitWithFlags(unsigned int) { return Initialize(Function::nvmlInitWithFlags); }

nvmlReturn_t nvmlShutdown() {
  return OnDriver(Function::nvmlShutdown, true, [](Driver& driver) {
    if (--driver.references == 0) {
      driver.event_sets.clear();
    }
    return NVML_SUCCESS;
  });
}

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT:
      return "Timeout";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED:
      return "GPU requires reset";
    case NVML_ERROR_OPERATING_SYSTEM:
      return "GPU access blocked by the operating system";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "Driver/library version mismatch";
    case NVML_ERROR_IN_USE:
      return "In use by another client";
    case NVML_ERROR_MEMORY:
      return "Insufficient Memory";
    case NVML_ERROR_NO_DATA:
      return "No data";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument version mismatch";
    case NVML_ERROR_DEPRECATED:
      return "Deprecated";
    case NVML_ERROR_NOT_READY:
      return "Not Ready";
    case NVML_ERROR_GPU_NOT_FOUND:
      return "GPU Not Found";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  return OnDriver(Function::nvmlSystemGetDriverVersion, version != nullptr,
                  [&](const Driver& driver) {
                    return GiveText(driver.engine.scenario().driver.text, version, length);
                  });
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  return OnDriver(Function::nvmlSystemGetNVMLVersion, version != nullptr,
                  [&](const Driver& driver) {
                    // The CUDA major version, then the driver's version.
                    const DriverVersion& own = driver.engine.scenario().driver;
                    const std::string cuda_major = own.cuda.substr(0, own.cuda.find('.'));
                    return GiveText(fmt::format("{}.{}", cuda_major, own.text), version, length);
                  });
}

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t* info, unsigned int length) {
  return OnDriver(
      Function::nvmlSystemGetDriverBranch, info != nullptr,
      [&](const Driver& driver) -> nvmlReturn_t {
        if (info->version != NVML_STRUCT_VERSION_OF(nvmlSystemDriverBranchInfo_v1_t, 1U)) {
          return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        }
        const std::string branch = fmt::format("r{}_00", driver.engine.scenario().driver.major);
        return GiveText(branch, info->branch, std::min<unsigned int>(length, sizeof(info->branch)));
      });
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  return CudaVersion(Function::nvmlSystemGetCudaDriverVersion, version);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return CudaVersion(Function::nvmlSystemGetCudaDriverVersion_v2, version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  const bool valid = name != nullptr && length > 0;
  return OnDriver(Function::nvmlSystemGetProcessName, valid,
                  [&](const Driver& driver) -> nvmlReturn_t {
                    for (const DeviceState& gpu : driver.engine.devices()) {
                      for (const ProcessState& process : gpu.processes) {
                        if (process.pid == pid) {  // cut to fit, as NVML says
                          name[process.name.copy(name, length - 1)] = '\0';
                          return NVML_SUCCESS;
                        }
                      }
                    }
                    return NVML_ERROR_NOT_FOUND;
                  });
}

nvmlReturn_t nvmlUnitGetCount(unsigned int* count) {
  return OnDriver(Function::nvmlUnitGetCount, count != nullptr,
                  [&](const Driver&) { return Give(true, count, 0U); });
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int* count) {
  return Count(Function::nvmlDeviceGetCount, count);
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  return Count(Function::nvmlDeviceGetCount_v2, count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return HandleByIndex(Function::nvmlDeviceGetHandleByIndex, index, device);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  return HandleByIndex(Function::nvmlDeviceGetHandleByIndex_v2, index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  const bool valid = uuid != nullptr && device != nullptr;
  return OnDriver(Function::nvmlDeviceGetHandleByUUID, valid, [&](Driver& driver) -> nvmlReturn_t {
    for (const DeviceState& gpu : driver.engine.devices()) {
      if (strcasecmp(gpu.config.uuid.c_str(), uuid) == 0) {
        return GiveHandle(driver, gpu.index, device);
      }
      for (const MigState& mig : gpu.mig) {
        if (strcasecmp(MigUuid(driver, gpu, mig).c_str(), uuid) == 0) {
          *device = driver.MigHandle(gpu, mig);
          return NVML_SUCCESS;
        }
      }
    }
    return NVML_ERROR_NOT_FOUND;
  });
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  const bool valid = serial != nullptr && device != nullptr;
  return OnDriver(Function::nvmlDeviceGetHandleBySerial, valid,
                  [&](const Driver& driver) -> nvmlReturn_t {
                    for (const DeviceState& gpu : driver.engine.devices()) {
                      if (gpu.model->features.serial && gpu.config.serial == serial) {
                        return GiveHandle(driver, gpu.index, device);
                      }
                    }
                    return NVML_ERROR_NOT_FOUND;
                  });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* pci_bus_id, nvmlDevice_t* device) {
  return HandleByPciBusId(Function::nvmlDeviceGetHandleByPciBusId, pci_bus_id, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, nvmlDevice_t* device) {
  return HandleByPciBusId(Function::nvmlDeviceGetHandleByPciBusId_v2, pci_bus_id, device);
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first, nvmlDevice_t second,
                                                 unsigned int* level) {
  return OnPair(Function::nvmlDeviceGetTopologyCommonAncestor, first, second, level != nullptr,
                [&](const Driver& driver, const DeviceState& one, const DeviceState& other) {
                  // Two sockets, half of the GPUs each, every GPU on its own PCIe root.
                  const std::size_t half = (driver.engine.devices().size() + 1) / 2;
                  const bool same_socket = one.index / half == other.index / half;
                  *level = BoardOf(one) == BoardOf(other) ? NVML_TOPOLOGY_SINGLE
                           : same_socket                  ? NVML_TOPOLOGY_NODE
                                                          : NVML_TOPOLOGY_SYSTEM;
                  if (one.index == other.index) {
                    *level = NVML_TOPOLOGY_INTERNAL;
                  }
                  return NVML_SUCCESS;
                });
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t first, nvmlDevice_t second, int* same) {
  return OnPair(Function::nvmlDeviceOnSameBoard, first, second, same != nullptr,
                [&](const Driver&, const DeviceState& one, const DeviceState& other) {
                  *same = BoardOf(one) == BoardOf(other) ? 1 : 0;
                  return NVML_SUCCESS;
                });
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int* board) {
  return OnGpu(
      Function::nvmlDeviceGetBoardId, device, board != nullptr,
      [&](const DeviceState& gpu) { return Give(true, board, 0x100U + BoardOf(gpu)); },
      Needs::kIdentity);
}

}  // extern "C"
