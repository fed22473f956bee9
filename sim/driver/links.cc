// PCIe, NVLink and the fabric.
#include <algorithm>

#include "sim/driver/core.h"
#include "sim/driver/quantities.h"

namespace gpuassay::sim {

std::uint32_t NvlinkVersionNumber(const DeviceState& gpu) {
  switch (gpu.model->nvlink_version) {
    case 2:
      return 2;  // NVML_NVLINK_VERSION_2_0
    case 3:
      return 4;  // NVML_NVLINK_VERSION_3_0
    case 4:
      return 6;  // NVML_NVLINK_VERSION_4_0
    case 5:
      return 7;  // NVML_NVLINK_VERSION_5_0
    default:
      return 0;
  }
}

namespace {

// Bytes of a total in the last tick, per second.
double RateOf(const Driver& driver, const DeviceState& gpu, double ActivityTotals::*bytes) {
  const ActivityTotals& before = driver.tick_ago[gpu.index];
  const double seconds = gpu.totals.seconds - before.seconds;
  return seconds > 0 ? (gpu.totals.*bytes - before.*bytes) / seconds : 0;
}

template <class Value>
nvmlReturn_t GivePcie(Function function, nvmlDevice_t device, unsigned int* out, Value&& value) {
  return OnGpu(function, device, out != nullptr,
               [&](const DeviceState& gpu) { return Give(true, out, value(gpu)); });
}

// Payload of a lane in MB/s by generation, after the line code.
unsigned int LaneMbPerSecond(std::uint32_t generation) {
  constexpr unsigned int kByGeneration[] = {0, 250, 500, 985, 1969, 3938, 7563};
  return kByGeneration[std::min<std::size_t>(generation, std::size(kByGeneration) - 1)];
}

// `use` gets the GPU and the link's state; link numbers that no GPU has are invalid arguments,
// those that this GPU does not have are not supported.
template <class Use>
nvmlReturn_t OnLink(Function function, nvmlDevice_t device, unsigned int link, bool valid,
                    Use&& use) {
  return OnGpu(function, device, valid && link < NVML_NVLINK_MAX_LINKS_BEFORE_BLACKWELL,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 return link < gpu.links.size() ? use(gpu, gpu.links[link])
                                                : NVML_ERROR_NOT_SUPPORTED;
               });
}

// Eight or more GPUs with NVLink hang on switches; fewer are wired to each other.
bool HasSwitches(const DeviceState& gpu) {
  return gpu.model->nvlink_links >= 12 && InstalledDriver()->engine.devices().size() > 4;
}

nvmlReturn_t RemotePciInfo(Function function, nvmlDevice_t device, unsigned int link,
                           nvmlPciInfo_t* pci) {
  return OnLink(function, device, link, pci != nullptr,
                [&](const DeviceState& gpu, const LinkState& state) -> nvmlReturn_t {
                  if (!state.active) {
                    return NVML_ERROR_NOT_SUPPORTED;
                  }
                  if (HasSwitches(gpu)) {
                    constexpr std::uint32_t kSwitchDeviceId = 0x22A310DE;
                    FillPciInfo({.domain = 0, .bus = 0xC0 + link % 4, .device = 0}, kSwitchDeviceId,
                                0, pci);
                    return NVML_SUCCESS;
                  }
                  const auto& gpus = InstalledDriver()->engine.devices();
                  const DeviceState& peer = gpus[(gpu.index + 1) % gpus.size()];
                  FillPciInfo(ParsePciAddress(peer.config.pci_bus_id).value_or(PciAddress{}),
                              peer.model->pci_device_id, peer.model->pci_subsystem_id, pci);
                  return NVML_SUCCESS;
                });
}

// Registration with the fabric: Hopper and newer, where switches connect the GPUs.
bool HasFabric(const DeviceState& gpu) {
  return gpu.model->architecture >= Architecture::kHopper && gpu.model->nvlink_links >= 18;
}

template <class Info>
void FillFabric(const DeviceState& gpu, Info* info) {
  constexpr unsigned char kInProgress = 2;
  constexpr unsigned char kCompleted = 3;
  std::fill(std::begin(info->clusterUuid), std::end(info->clusterUuid),
            static_cast<unsigned char>(0));
  info->status = NVML_SUCCESS;
  info->cliqueId = 0;
  info->state = gpu.fabric_ready ? kCompleted : kInProgress;
  info->healthMask = 0;
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return GivePcie(Function::nvmlDeviceGetCurrPcieLinkGeneration, device, generation,
                  [](const DeviceState& gpu) { return gpu.pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return GivePcie(Function::nvmlDeviceGetMaxPcieLinkGeneration, device, generation,
                  [](const DeviceState& gpu) { return gpu.model->pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return GivePcie(Function::nvmlDeviceGetGpuMaxPcieLinkGeneration, device, generation,
                  [](const DeviceState& gpu) { return gpu.model->pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int* width) {
  return GivePcie(Function::nvmlDeviceGetCurrPcieLinkWidth, device, width,
                  [](const DeviceState& gpu) { return gpu.pcie_width; });
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int* width) {
  return GivePcie(Function::nvmlDeviceGetMaxPcieLinkWidth, device, width,
                  [](const DeviceState& gpu) { return gpu.model->pcie_width; });
}
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int* speed) {
  // NVML numbers the speeds like the generations.
  return GivePcie(Function::nvmlDeviceGetPcieLinkMaxSpeed, device, speed,
                  [](const DeviceState& gpu) { return gpu.model->pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int* mb_per_second) {
  return GivePcie(Function::nvmlDeviceGetPcieSpeed, device, mb_per_second,
                  [](const DeviceState& gpu) { return LaneMbPerSecond(gpu.pcie_generation); });
}
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int* count) {
  return GivePcie(Function::nvmlDeviceGetPcieReplayCounter, device, count,
                  [](const DeviceState& gpu) { return Rounded(gpu.pcie_replays); });
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter,
                                         unsigned int* kb_per_second) {
  const bool valid = kb_per_second != nullptr &&
                     (counter == NVML_PCIE_UTIL_TX_BYTES || counter == NVML_PCIE_UTIL_RX_BYTES);
  return OnGpu(Function::nvmlDeviceGetPcieThroughput, device, valid, [&](const DeviceState& gpu) {
    const auto bytes = counter == NVML_PCIE_UTIL_TX_BYTES ? &ActivityTotals::pcie_transmit_bytes
                                                          : &ActivityTotals::pcie_receive_bytes;
    return Give(gpu.model->features.pcie_throughput, kb_per_second,
                Rounded(RateOf(*InstalledDriver(), gpu, bytes) / 1000));
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                      unsigned int* active) {
  return OnLink(Function::nvmlDeviceGetNvLinkState, device, link, active != nullptr,
                [&](const DeviceState&, const LinkState& state) {
                  return Give(true, active, state.active ? 1U : 0U);
                });
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                        unsigned int* version) {
  return OnLink(Function::nvmlDeviceGetNvLinkVersion, device, link, version != nullptr,
                [&](const DeviceState& gpu, const LinkState&) {
                  return Give(true, version, NvlinkVersionNumber(gpu));
                });
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                           unsigned int capability, unsigned int* result) {
  const bool valid = result != nullptr && capability <= 5;
  return OnLink(Function::nvmlDeviceGetNvLinkCapability, device, link, valid,
                [&](const DeviceState&, const LinkState&) {
                  constexpr unsigned int kSystemMemory = 1;
                  constexpr unsigned int kSystemAtomics = 3;
                  constexpr unsigned int kSliBridge = 4;
                  const bool yes = capability != kSystemMemory && capability != kSystemAtomics &&
                                   capability != kSliBridge;
                  return Give(true, result, yes ? 1U : 0U);
                });
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                              nvmlPciInfo_t* pci) {
  return RemotePciInfo(Function::nvmlDeviceGetNvLinkRemotePciInfo, device, link, pci);
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t* pci) {
  return RemotePciInfo(Function::nvmlDeviceGetNvLinkRemotePciInfo_v2, device, link, pci);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 unsigned int* type) {
  return OnLink(Function::nvmlDeviceGetNvLinkRemoteDeviceType, device, link, type != nullptr,
                [&](const DeviceState& gpu, const LinkState& state) {
                  const unsigned int remote = HasSwitches(gpu) ? NVML_NVLINK_DEVICE_TYPE_SWITCH
                                                               : NVML_NVLINK_DEVICE_TYPE_GPU;
                  return Give(state.active, type, remote);
                });
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                             unsigned int counter, unsigned long long* count) {
  return OnLink(Function::nvmlDeviceGetNvLinkErrorCounter, device, link,
                count != nullptr && counter <= 4,
                [&](const DeviceState&, const LinkState& state) -> nvmlReturn_t {
                  switch (counter) {
                    case NVML_NVLINK_ERROR_DL_REPLAY:
                      return Give(true, count, Rounded(state.replay_errors));
                    case NVML_NVLINK_ERROR_DL_RECOVERY:
                      return Give(true, count, Rounded(state.recovery_errors));
                    case NVML_NVLINK_ERROR_DL_CRC_FLIT:
                      return Give(true, count, Rounded(state.crc_errors));
                    default:
                      return NVML_ERROR_NOT_SUPPORTED;
                  }
                });
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t* info) {
  return OnGpu(
      Function::nvmlDeviceGetGpuFabricInfoV, device, info != nullptr,
      [&](const DeviceState& gpu) -> nvmlReturn_t {
        const bool v2 = info->version == NVML_STRUCT_VERSION_OF(nvmlGpuFabricInfo_v2_t, 2U);
        const bool v3 = info->version == NVML_STRUCT_VERSION_OF(nvmlGpuFabricInfo_v3_t, 3U);
        if (!v2 && !v3) {
          return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        }
        if (!HasFabric(gpu)) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        if (v2) {
          FillFabric(gpu, info);
          return NVML_SUCCESS;
        }
        auto* newer = reinterpret_cast<nvmlGpuFabricInfo_v3_t*>(info);
        FillFabric(gpu, newer);
        newer->healthSummary = 0;  // not told
        return NVML_SUCCESS;
      });
}

}  // extern "C"
