#include "sources/nvml/device.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/log.h"
#include "model/catalogue.h"
#include "sources/nvml/identity.h"

namespace gpuassay {
namespace {

// What GPM is asked for, in front of the links' metrics; the order of GpmPlace.
constexpr std::array kGpmMetrics = {
    static_cast<unsigned int>(NVML_GPM_METRIC_GRAPHICS_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_SM_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_SM_OCCUPANCY),
    static_cast<unsigned int>(NVML_GPM_METRIC_ANY_TENSOR_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_FP64_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_FP32_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_FP16_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_INTEGER_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_DRAM_BW_UTIL),
    static_cast<unsigned int>(NVML_GPM_METRIC_PCIE_TX_PER_SEC),
    static_cast<unsigned int>(NVML_GPM_METRIC_PCIE_RX_PER_SEC),
    static_cast<unsigned int>(NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC),
    static_cast<unsigned int>(NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC)};
enum GpmPlace : std::size_t {
  kPcieTransmit = 9,
  kPcieReceive = 10,
  kNvlinkTransmit = 11,
  kNvlinkReceive = 12
};
constexpr std::array<Reading GpuReadings::*, 9> kGpmRatios = {
    &GpuReadings::graphics_engine_active_ratio,
    &GpuReadings::sm_active_ratio,
    &GpuReadings::sm_occupancy_ratio,
    &GpuReadings::tensor_active_ratio,
    &GpuReadings::fp64_active_ratio,
    &GpuReadings::fp32_active_ratio,
    &GpuReadings::fp16_active_ratio,
    &GpuReadings::integer_active_ratio,
    &GpuReadings::dram_active_ratio};

// GPM has no such number, now or later: another way is needed.
bool IsUntold(const Reading& reading) {
  return !reading && reading.missing() != Missing::kNeverSampled;
}

}  // namespace

NvmlDevice::NvmlDevice(NvmlLibrary& library, std::uint32_t index, nvmlDevice_t handle,
                       std::string uuid)
    : calls_(library, index, handle), gpm_(library), mig_(library) {
  gpu_.identity.index = index;
  gpu_.identity.uuid = std::move(uuid);
  ArrangeFields();
  ArrangeMetrics();
}

void NvmlDevice::Found(std::uint32_t index, nvmlDevice_t handle) {
  unreachable_ = NVML_SUCCESS;
  gpu_.identity.index = index;
  calls_.Move(index, handle);
}

void NvmlDevice::Skip(Missing reason) {
  skipped_ = true;
  SetAllMissing(gpu_.readings, reason);
  gpu_.readings.up = 0.0;
}

void NvmlDevice::MarkUnread(Missing reason) {
  if (skipped_) return;
  SetAllMissing(gpu_.readings, reason);
  for (NvLink& link : gpu_.links) SetAllMissing(link.readings, reason);
  for (MigInstance& mig : gpu_.mig) SetAllMissing(mig.readings, reason);
  gpu_.processes.clear();
  gpu_.processes_dropped = 0;
  // What the slow pace told is gone from the snapshot: read it again as soon as possible.
  RequestSlow();
}

void NvmlDevice::SetLost(bool lost) {
  if (std::exchange(lost_, lost) == lost) return;
  const std::string name = fmt::format("GPU {} ({})", gpu_.identity.index, gpu_.identity.uuid);
  if (lost) {
    LogError(name + " is lost: it has fallen off the bus");
  } else {
    LogInfo(name + " answers again");
  }
}

void NvmlDevice::Read(const Cycle& cycle, Duration slow_every, Duration stagger,
                      ProcessNames& names) {
  if (skipped_) return;
  if (unreachable_ != NVML_SUCCESS) {
    const Missing why = MissingFor(unreachable_);
    SetLost(why == Missing::kGpuLost);
    MarkUnread(why);
    if (why == Missing::kGpuLost || why == Missing::kResetRequired) gpu_.readings.up = 0.0;
    return;
  }
  calls_.BeginCycle();
  const bool slow = !next_slow_ || cycle.steady >= *next_slow_;
  if (slow) ReadSlow();
  ReadFast(cycle, names);
  if (slow) {
    ReadThresholds(calls_, slow_, gpu_.readings);
    next_slow_ = cycle.steady + slow_every;
    if (!std::exchange(staggered_, true)) *next_slow_ -= stagger;
  }
  Conclude();
}

void NvmlDevice::Conclude() {
  const nvmlReturn_t stopped = calls_.stopped();
  if (calls_.lost()) {
    SetLost(true);
    MarkUnread(Missing::kGpuLost);
    gpu_.readings.up = 0.0;
    return;
  }
  if (stopped != NVML_SUCCESS) {
    // A time-out says nothing about the values that were read before it, but the GPU did not
    // answer.
    gpu_.readings.up = stopped == NVML_ERROR_TIMEOUT ? Reading(0.0) : Reading(MissingFor(stopped));
    RequestSlow();
    return;
  }
  SetLost(false);
  gpu_.readings.up = calls_.reset_required() ? 0.0 : 1.0;
}

void NvmlDevice::ArrangeFields() {
  fast_.Clear();
  slow_.Clear();
  AddFastFields(fast_);
  AddSlowFields(slow_);
  links_.AddFields(fast_, slow_, counters_);
  if (counters_) pcie_ = AddPcieCounters(fast_);
  rearrange_ = false;
}

void NvmlDevice::ArrangeMetrics() {
  std::vector<unsigned int> ids(kGpmMetrics.begin(), kGpmMetrics.end());
  links_.AddMetrics(ids);
  gpm_.SetMetrics(ids);
}

void NvmlDevice::ReadSlow() {
  calls_.ForgetRefusals();
  fast_.ForgetRefusals();
  slow_.ForgetRefusals();
  gpm_support_.Forget();
  if (!identified_) {
    ReadGpuIdentity(calls_, gpu_.identity, architecture_);
    identified_ = calls_.stopped() == NVML_SUCCESS;
  }
  no_gpm_ = gpm_support_.Check(calls_, architecture_);
  slow_.Ask(calls_);
  if (links_.Count(calls_, LinkCountField(slow_), gpu_)) {
    ArrangeFields();
    ArrangeMetrics();
    slow_.Ask(calls_);
  }
  ReadSlowFields(slow_, gpu_.readings);
  ReadSlowCalls(calls_, gpu_.readings);
  links_.ReadSlow(calls_, slow_, gpu_);
  mig_.Enumerate(calls_, gpu_);
  ReadSlowPcieRates();
}

void NvmlDevice::ReadSlowPcieRates() {
  if (!pcie_slow_wanted_) return;
  // nvmlDeviceGetPcieThroughput blocks for the 20 ms it measures, and says KB/s.
  constexpr double kKilobyte = 1000;
  pcie_transmit_slow_ = calls_.AskNumber<NvmlFunction::nvmlDeviceGetPcieThroughput>(
      kKilobyte, NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_TX_BYTES);
  pcie_receive_slow_ = calls_.AskNumber<NvmlFunction::nvmlDeviceGetPcieThroughput>(
      kKilobyte, NVML_PCIE_UTIL_RX_BYTES, NVML_PCIE_UTIL_RX_BYTES);
}

void NvmlDevice::ReadFast(const Cycle& cycle, ProcessNames& names) {
  if (rearrange_) ArrangeFields();
  GpuReadings& readings = gpu_.readings;
  ReadFastCalls(calls_, readings);
  readings.utilization_mean_ratio = utilization_.Mean(calls_, cycle, readings.utilization_ratio);
  fast_.Ask(calls_);
  ReadFastFields(calls_, fast_, readings);
  ReadProfiling(cycle);
  ReadPcieRates(cycle);
  links_.ReadFast(calls_, cycle, fast_, gpm_, kGpmMetrics.size(), gpu_);
  CheckCounters();
  mig_.ReadFast(calls_, cycle, no_gpm_, gpu_);
  process_lists_.Read(calls_, mig_.instances(), names, gpu_);
  process_utilization_.Read(calls_, cycle, utilization_.period(), gpu_);
}

void NvmlDevice::ReadProfiling(const Cycle& cycle) {
  if (no_gpm_) {
    gpm_.Fail(*no_gpm_);
  } else {
    gpm_.Read(calls_, cycle, std::nullopt);
  }
  GpuReadings& readings = gpu_.readings;
  for (std::size_t i = 0; i < kGpmRatios.size(); ++i) readings.*kGpmRatios[i] = gpm_.Percent(i);
  readings.nvlink_transmit_bytes_per_second = gpm_.MebibytesPerSecond(kNvlinkTransmit);
  readings.nvlink_receive_bytes_per_second = gpm_.MebibytesPerSecond(kNvlinkReceive);
}

void NvmlDevice::ReadPcieRates(const Cycle& cycle) {
  GpuReadings& readings = gpu_.readings;
  readings.pcie_transmit_bytes_per_second = gpm_.MebibytesPerSecond(kPcieTransmit);
  readings.pcie_receive_bytes_per_second = gpm_.MebibytesPerSecond(kPcieReceive);
  if (!counters_) return;
  const auto replace = [](Reading& reading, const Reading& other) {
    if (IsUntold(reading)) reading = other;
  };
  const Reading transmit = pcie_transmit_.Update(fast_, pcie_.transmit, 1, cycle.steady);
  const Reading receive = pcie_receive_.Update(fast_, pcie_.receive, 1, cycle.steady);
  replace(readings.pcie_transmit_bytes_per_second, transmit);
  replace(readings.pcie_receive_bytes_per_second, receive);
  const bool wanted = IsUntold(readings.pcie_transmit_bytes_per_second) ||
                      IsUntold(readings.pcie_receive_bytes_per_second);
  if (wanted && !std::exchange(pcie_slow_wanted_, true)) ReadSlowPcieRates();
  if (pcie_slow_wanted_) {
    replace(readings.pcie_transmit_bytes_per_second, pcie_transmit_slow_);
    replace(readings.pcie_receive_bytes_per_second, pcie_receive_slow_);
  }
}

// Reads the counters of PCIe and NVLink only on GPUs whose rates GPM does not tell.
void NvmlDevice::CheckCounters() {
  if (counters_ || calls_.stopped() != NVML_SUCCESS) return;
  bool wanted = IsUntold(gpu_.readings.pcie_transmit_bytes_per_second);
  for (const NvLink& link : gpu_.links) {
    // A link that is down has no rate.
    const bool up = !link.readings.active || *link.readings.active != 0;
    wanted = wanted || (up && IsUntold(link.readings.transmit_bytes_per_second));
  }
  if (!wanted) return;
  counters_ = true;
  rearrange_ = true;
}

}  // namespace gpuassay
