#include "sources/nvml/identity.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

namespace gpuassay {
namespace {

using Text = std::array<char, 128>;  // NVML's longest buffer is 96

std::string TextOf(nvmlReturn_t result, const Text& text) {
  if (result != NVML_SUCCESS) return "";
  return std::string(text.data(), strnlen(text.data(), text.size()));
}

template <NvmlFunction F>
std::string AskText(DeviceCalls& calls) {
  Text text = {};
  const nvmlReturn_t result =
      calls.Ask<F>(0, calls.handle(), text.data(), static_cast<unsigned int>(text.size()));
  return TextOf(result, text);
}

std::string_view ArchitectureText(unsigned int architecture) {
  constexpr std::array<std::string_view, 14> kNames = {
      "",       "",    "Kepler", "Maxwell",   "Pascal", "Volta", "Turing",
      "Ampere", "Ada", "Hopper", "Blackwell", "",       "",      "Rubin"};
  return architecture < kNames.size() ? kNames[architecture] : "";
}

}  // namespace

void ReadNodeIdentity(NvmlLibrary& library, NodeIdentity& node) {
  Text text = {};
  constexpr auto kSize = static_cast<unsigned int>(std::tuple_size_v<Text>);
  node.driver_version = TextOf(
      library.Call<NvmlFunction::nvmlSystemGetDriverVersion>(CallWatch::kNoGpu, text.data(), kSize),
      text);
  node.nvml_version = TextOf(
      library.Call<NvmlFunction::nvmlSystemGetNVMLVersion>(CallWatch::kNoGpu, text.data(), kSize),
      text);
  int cuda = 0;
  const nvmlReturn_t result =
      library.Call<NvmlFunction::nvmlSystemGetCudaDriverVersion_v2>(CallWatch::kNoGpu, &cuda);
  // 12080 is 12.8
  node.cuda_version =
      result == NVML_SUCCESS ? fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10) : "";
}

void ReadGpuIdentity(DeviceCalls& calls, GpuIdentity& identity, unsigned int& architecture) {
  identity.name = AskText<NvmlFunction::nvmlDeviceGetName>(calls);
  identity.serial = AskText<NvmlFunction::nvmlDeviceGetSerial>(calls);
  identity.vbios_version = AskText<NvmlFunction::nvmlDeviceGetVbiosVersion>(calls);
  nvmlPciInfo_t pci = {};
  if (calls.Ask<NvmlFunction::nvmlDeviceGetPciInfo_v3>(0, calls.handle(), &pci) == NVML_SUCCESS) {
    identity.pci_bus_id.assign(pci.busId, strnlen(pci.busId, sizeof(pci.busId)));
  }
  unsigned int minor = 0;
  identity.minor_number.reset();
  if (calls.Ask<NvmlFunction::nvmlDeviceGetMinorNumber>(0, calls.handle(), &minor) ==
      NVML_SUCCESS) {
    identity.minor_number = minor;
  }
  architecture = 0;
  if (calls.Ask<NvmlFunction::nvmlDeviceGetArchitecture>(0, calls.handle(), &architecture) !=
      NVML_SUCCESS) {
    architecture = 0;
  }
  identity.architecture = ArchitectureText(architecture);
}

nvmlReturn_t ReadUuid(DeviceCalls& calls, nvmlDevice_t device, std::string& uuid) {
  Text text = {};
  const nvmlReturn_t result = calls.AskFresh<NvmlFunction::nvmlDeviceGetUUID>(
      device, text.data(), static_cast<unsigned int>(text.size()));
  if (result == NVML_SUCCESS) uuid.assign(text.data(), strnlen(text.data(), text.size()));
  return result;
}

}  // namespace gpuassay
