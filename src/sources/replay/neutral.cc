#include "sources/replay/neutral.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuassay {
namespace {

constexpr std::uint32_t kFirstPid = 1001;
// An error text can hold paths, host names and UUIDs in any form; its reason stays.
constexpr std::string_view kErrorStandIn = "error text left out of a neutral recording";

}  // namespace

std::size_t Neutralizer::Names::Number(const std::string& original) {
  return numbers_.try_emplace(original, numbers_.size() + 1).first->second;
}

std::string Neutralizer::Uuid(const std::string& original) {
  if (original.empty()) return {};
  const bool instance = original.starts_with("MIG-");
  const std::size_t number = instance ? instances_.Number(original) : gpus_.Number(original);
  return fmt::format("{}-00000000-0000-0000-0000-{:012}", instance ? "MIG" : "GPU", number);
}

std::uint32_t Neutralizer::Pid(std::uint32_t original) {
  const auto next = static_cast<std::uint32_t>(kFirstPid + pids_.size());
  return pids_.try_emplace(original, next).first->second;
}

void Neutralizer::ApplyToGpu(Gpu& gpu) {
  GpuIdentity& identity = gpu.identity;
  identity.uuid = Uuid(identity.uuid);
  if (!identity.serial.empty()) {
    identity.serial = fmt::format("{:013}", serials_.Number(identity.serial));
  }
  if (!identity.pci_bus_id.empty()) {
    const std::size_t number = addresses_.Number(identity.pci_bus_id);
    identity.pci_bus_id = fmt::format("{:08X}:{:02X}:00.0", number / 256, number % 256);
  }
  for (MigInstance& mig : gpu.mig) mig.identity.uuid = Uuid(mig.identity.uuid);
  for (GpuProcess& process : gpu.processes) {
    process.pid = Pid(process.pid);
    if (!process.name.empty()) {
      process.name = fmt::format("process-{}", processes_.Number(process.name));
    }
  }
  std::ranges::sort(gpu.processes, {}, &GpuProcess::pid);  // the snapshot's order
}

Result<void> Neutralizer::Apply(Snapshot& snapshot) {
  if (!snapshot.node.hostname.empty()) {
    snapshot.node.hostname = fmt::format("host-{}", hosts_.Number(snapshot.node.hostname));
  }
  for (SourceStatus& source : snapshot.sources) {
    if (!source.error.empty()) source.error = kErrorStandIn;
  }
  for (Gpu& gpu : snapshot.gpus) ApplyToGpu(gpu);
  for (DriverEvent& event : snapshot.events) event.gpu_uuid = Uuid(event.gpu_uuid);
  const std::size_t most =
      std::max({hosts_.size(), gpus_.size(), instances_.size(), serials_.size(), addresses_.size(),
                processes_.size(), pids_.size()});
  if (most <= kStandInsMax) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("more than {} different PIDs, names or devices in one neutral recording",
                          kStandInsMax));
}

}  // namespace gpuassay
