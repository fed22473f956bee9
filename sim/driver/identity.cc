// What a GPU is: names, numbers, firmware.
#include <fmt/format.h>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

template <class Body>
nvmlReturn_t OnIdentity(Function function, nvmlDevice_t device, bool valid, Body&& body) {
  return OnGpu(function, device, valid, std::forward<Body>(body), Needs::kIdentity);
}

PciAddress AddressOf(const DeviceState& gpu) {
  return ParsePciAddress(gpu.config.pci_bus_id).value_or(PciAddress{});
}

nvmlReturn_t PciInfo(Function function, nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return OnIdentity(function, device, pci != nullptr, [&](const DeviceState& gpu) {
    FillPciInfo(AddressOf(gpu), gpu.model->pci_device_id, gpu.model->pci_subsystem_id, pci);
    return NVML_SUCCESS;
  });
}

bool IsDataCentre(const GpuModel& model) { return model.features.ecc && model.features.serial; }

// The GPU system processor: Turing and newer, from branch 510 on.
bool HasGsp(const GpuModel& model) { return model.architecture >= Architecture::kTuring; }

std::uint32_t ArchitectureNumber(Architecture architecture) {
  switch (architecture) {
    case Architecture::kKepler:
      return 2;
    case Architecture::kPascal:
      return 4;
    case Architecture::kVolta:
      return 5;
    case Architecture::kTuring:
      return 6;
    case Architecture::kAmpere:
      return 7;
    case Architecture::kAda:
      return 8;
    case Architecture::kHopper:
      return 9;
    case Architecture::kBlackwell:
      return 10;
  }
  return 0xFFFFFFFF;
}

unsigned int BrandOf(std::string_view name) {
  if (name.find("GeForce") != std::string_view::npos) {
    return NVML_BRAND_GEFORCE;
  }
  return name.find("Tesla") != std::string_view::npos ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA;
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  return OnDevice(
      Function::nvmlDeviceGetName, device, name != nullptr,
      [&](const Call& call) {
        const std::string_view model = call.gpu().model->name;
        return call.mig() == nullptr
                   ? GiveText(model, name, length)
                   : GiveText(fmt::format("{} MIG {}", model, call.mig()->profile->name), name,
                              length);
      },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  return OnDevice(
      Function::nvmlDeviceGetUUID, device, uuid != nullptr,
      [&](const Call& call) {
        return call.mig() == nullptr
                   ? GiveText(call.gpu().config.uuid, uuid, length)
                   : GiveText(MigUuid(call.driver(), call.gpu(), *call.mig()), uuid, length);
      },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  return OnDevice(
      Function::nvmlDeviceGetIndex, device, index != nullptr,
      [&](const Call& call) {
        return Give(true, index, call.mig() == nullptr ? call.gpu().index : call.mig()->index);
      },
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  return OnIdentity(Function::nvmlDeviceGetMinorNumber, device, minor != nullptr,
                    [&](const DeviceState& gpu) { return Give(true, minor, gpu.index); });
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned int length) {
  return OnIdentity(Function::nvmlDeviceGetSerial, device, serial != nullptr,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      return gpu.model->features.serial
                                 ? GiveText(gpu.config.serial, serial, length)
                                 : NVML_ERROR_NOT_SUPPORTED;
                    });
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned int length) {
  return OnIdentity(
      Function::nvmlDeviceGetVbiosVersion, device, version != nullptr,
      [&](const DeviceState& gpu) { return GiveText(gpu.model->vbios_version, version, length); });
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return PciInfo(Function::nvmlDeviceGetPciInfo, device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return PciInfo(Function::nvmlDeviceGetPciInfo_v2, device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return PciInfo(Function::nvmlDeviceGetPciInfo_v3, device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t* pci) {
  return OnIdentity(Function::nvmlDeviceGetPciInfoExt, device, pci != nullptr,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      const unsigned int version = NVML_STRUCT_VERSION_OF(nvmlPciInfoExt_v1_t, 1U);
                      if (pci->version != version) {
                        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
                      }
                      nvmlPciInfo_t plain;
                      FillPciInfo(AddressOf(gpu), gpu.model->pci_device_id,
                                  gpu.model->pci_subsystem_id, &plain);
                      *pci = {};
                      pci->version = version;
                      pci->domain = plain.domain;
                      pci->bus = plain.bus;
                      pci->device = plain.device;
                      pci->pciDeviceId = plain.pciDeviceId;
                      pci->pciSubSystemId = plain.pciSubSystemId;
                      pci->baseClass = 0x03;                                   // display controller
                      pci->subClass = IsDataCentre(*gpu.model) ? 0x02 : 0x00;  // 3D, VGA
                      CopyText(plain.busId, pci->busId);
                      return NVML_SUCCESS;
                    });
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int* architecture) {
  return OnIdentity(Function::nvmlDeviceGetArchitecture, device, architecture != nullptr,
                    [&](const DeviceState& gpu) {
                      return Give(true, architecture, ArchitectureNumber(gpu.model->architecture));
                    });
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned int* brand) {
  return OnIdentity(
      Function::nvmlDeviceGetBrand, device, brand != nullptr,
      [&](const DeviceState& gpu) { return Give(true, brand, BrandOf(gpu.model->name)); });
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char* part_number,
                                          unsigned int length) {
  return OnIdentity(Function::nvmlDeviceGetBoardPartNumber, device, part_number != nullptr,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      if (!gpu.model->features.serial) {
                        return NVML_ERROR_NOT_SUPPORTED;
                      }
                      const std::uint32_t id = gpu.model->pci_device_id >> 16;
                      return GiveText(fmt::format("900-2G{:04X}-0000-000", id), part_number,
                                      length);
                    });
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int* multi_gpu) {
  return OnIdentity(Function::nvmlDeviceGetMultiGpuBoard, device, multi_gpu != nullptr,
                    [&](const DeviceState& gpu) {
                      return Give(true, multi_gpu,
                                  gpu.model->architecture == Architecture::kKepler ? 1U : 0U);
                    });
}

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, unsigned int object, char* version,
                                         unsigned int length) {
  const bool valid = version != nullptr && object <= 2;  // OEM, ECC, power
  return OnIdentity(Function::nvmlDeviceGetInforomVersion, device, valid,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      if (!IsDataCentre(*gpu.model) || object == 2) {
                        return NVML_ERROR_NOT_SUPPORTED;
                      }
                      return GiveText(object == 0 ? "2.1" : "7.16", version, length);
                    });
}

nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char* version,
                                              unsigned int length) {
  return OnIdentity(Function::nvmlDeviceGetInforomImageVersion, device, version != nullptr,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      if (!IsDataCentre(*gpu.model)) {
                        return NVML_ERROR_NOT_SUPPORTED;
                      }
                      const std::uint32_t id = gpu.model->pci_device_id >> 16;
                      return GiveText(fmt::format("G{:04X}.0200.00.05", id), version, length);
                    });
}

nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device,
                                                       unsigned int* checksum) {
  return OnIdentity(Function::nvmlDeviceGetInforomConfigurationChecksum, device,
                    checksum != nullptr, [&](const DeviceState& gpu) {
                      return Give(IsDataCentre(*gpu.model), checksum,
                                  gpu.model->pci_device_id ^ gpu.model->pci_subsystem_id);
                    });
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) {
  return OnIdentity(Function::nvmlDeviceValidateInforom, device, true,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      return IsDataCentre(*gpu.model) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
                    });
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char* version) {
  return OnIdentity(Function::nvmlDeviceGetGspFirmwareVersion, device, version != nullptr,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      if (!HasGsp(*gpu.model)) {
                        return NVML_ERROR_NOT_SUPPORTED;
                      }
                      // The caller's buffer has at least 0x40 bytes by NVML's contract.
                      return GiveText(InstalledDriver()->engine.scenario().driver.text, version,
                                      0x40);
                    });
}

nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int* enabled,
                                          unsigned int* by_default) {
  return OnIdentity(Function::nvmlDeviceGetGspFirmwareMode, device,
                    enabled != nullptr && by_default != nullptr,
                    [&](const DeviceState& gpu) -> nvmlReturn_t {
                      if (!HasGsp(*gpu.model)) {
                        return NVML_ERROR_NOT_SUPPORTED;
                      }
                      *enabled = 1;
                      *by_default = 1;
                      return NVML_SUCCESS;
                    });
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int* cores) {
  return OnIdentity(
      Function::nvmlDeviceGetNumGpuCores, device, cores != nullptr,
      [&](const DeviceState& gpu) { return Give(!gpu.mig_enabled, cores, gpu.model->cores); });
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int* bits) {
  return OnIdentity(
      Function::nvmlDeviceGetMemoryBusWidth, device, bits != nullptr,
      [&](const DeviceState& gpu) { return Give(true, bits, gpu.model->memory_bus_bits); });
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  return OnDevice(
      Function::nvmlDeviceGetCudaComputeCapability, device, major != nullptr && minor != nullptr,
      [&](const Call& call) {
        *major = static_cast<int>(call.gpu().model->compute_capability_major);
        *minor = static_cast<int>(call.gpu().model->compute_capability_minor);
        return NVML_SUCCESS;
      },
      Needs::kIdentity);
}

// Nobody has a screen on a simulated GPU.
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, unsigned int* mode) {
  return OnIdentity(Function::nvmlDeviceGetDisplayMode, device, mode != nullptr,
                    [&](const DeviceState&) { return Give(true, mode, 0U); });
}
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, unsigned int* active) {
  return OnIdentity(Function::nvmlDeviceGetDisplayActive, device, active != nullptr,
                    [&](const DeviceState&) { return Give(true, active, 0U); });
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int* mode) {
  return OnIdentity(
      Function::nvmlDeviceGetPersistenceMode, device, mode != nullptr,
      [&](const DeviceState& gpu) { return Give(true, mode, gpu.config.persistence ? 1U : 0U); });
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int* mode) {
  return OnDevice(
      Function::nvmlDeviceGetComputeMode, device, mode != nullptr,
      [&](const Call&) { return Give(true, mode, 0U); },  // default: many contexts
      Needs::kIdentity);
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned int* mode) {
  return OnIdentity(Function::nvmlDeviceGetVirtualizationMode, device, mode != nullptr,
                    [&](const DeviceState&) { return Give(true, mode, 0U); });  // bare metal
}

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, unsigned int* mode) {
  return OnIdentity(Function::nvmlDeviceGetAccountingMode, device, mode != nullptr,
                    [&](const DeviceState&) { return Give(true, mode, 0U); });
}

}  // extern "C"
