#include "sources/nvml/nvlink.h"

#include <algorithm>

namespace gpuassay {
namespace {

// GPM's ids: RX of link 0, then TX and RX in turn.
constexpr unsigned int ReceiveMetric(std::size_t link) {
  return NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC + 2 * static_cast<unsigned int>(link);
}
constexpr unsigned int TransmitMetric(std::size_t link) {
  return NVML_GPM_METRIC_NVLINK_L0_TX_PER_SEC + 2 * static_cast<unsigned int>(link);
}
constexpr double kKibibyte = 1024;

// The sum over the links that are up; without all of them there is none. A link that is down
// carries nothing, and drivers answer for it with an error.
Reading SumOver(const std::vector<NvLink>& links, Reading LinkReadings::*rate) {
  double sum = 0;
  bool known = false;
  for (const NvLink& link : links) {
    const Reading& value = link.readings.*rate;
    if (value) {
      sum += *value;
      known = true;
    } else if (!link.readings.active || *link.readings.active != 0) {
      return value;
    }
  }
  return known ? Reading(sum) : Reading(Missing::kNotSupported);
}

Reading CountActive(const std::vector<NvLink>& links) {
  double active = 0;
  for (const NvLink& link : links) {
    if (!link.readings.active) return link.readings.active;
    active += *link.readings.active;
  }
  return active;
}

}  // namespace

bool NvLinks::Count(DeviceCalls& calls, const Reading& field, Gpu& gpu) {
  std::size_t count = 0;
  if (field) {
    count = static_cast<std::size_t>(std::clamp(*field, 0.0, static_cast<double>(kLinksMax)));
    gpu.readings.nvlink_links = static_cast<double>(count);
  } else if (field.missing() != Missing::kNotSupported &&
             field.missing() != Missing::kDriverTooOld) {
    gpu.readings.nvlink_links = field;  // a failure says nothing about the links that are known
    return false;
  } else {
    unsigned int active = 0;
    while (count < kGpmLinksMax &&
           calls.AskFresh<NvmlFunction::nvmlDeviceGetNvLinkState>(
               calls.handle(), static_cast<unsigned int>(count), &active) == NVML_SUCCESS) {
      ++count;
    }
    gpu.readings.nvlink_links = count > 0 ? Reading(static_cast<double>(count)) : field;
  }
  if (count == links_.size()) return false;
  links_.assign(count, Link());
  gpu.links.assign(count, NvLink());
  for (std::size_t i = 0; i < count; ++i) gpu.links[i].link = static_cast<std::uint32_t>(i);
  return true;
}

void NvLinks::AddFields(FieldBatch& fast, FieldBatch& slow, bool counters) {
  counters_ = counters;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto scope = static_cast<unsigned int>(i);
    links_[i].state = fast.Add(NVML_FI_DEV_NVLINK_GET_STATE, scope);
    links_[i].speed = slow.Add(NVML_FI_DEV_NVLINK_GET_SPEED, scope);
    if (!counters) continue;
    links_[i].transmit = fast.Add(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scope);
    links_[i].receive = fast.Add(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scope);
  }
}

void NvLinks::AddMetrics(std::vector<unsigned int>& ids) const {
  for (std::size_t i = 0; i < std::min(links_.size(), kGpmLinksMax); ++i) {
    ids.push_back(ReceiveMetric(i));
    ids.push_back(TransmitMetric(i));
  }
}

Reading NvLinks::State(DeviceCalls& calls, const FieldBatch& fast, std::size_t link) const {
  const Reading field = fast.Get(links_[link].state);
  // 0 is down; active and asleep (to save power) are up.
  if (field) return *field != 0 ? 1.0 : 0.0;
  if (field.missing() != Missing::kNotSupported && field.missing() != Missing::kDriverTooOld) {
    return field;
  }
  unsigned int active = 0;
  const nvmlReturn_t result = calls.AskFresh<NvmlFunction::nvmlDeviceGetNvLinkState>(
      calls.handle(), static_cast<unsigned int>(link), &active);
  if (result != NVML_SUCCESS) return MissingFor(result);
  return active != 0 ? 1.0 : 0.0;
}

void NvLinks::ReadFast(DeviceCalls& calls, const Cycle& cycle, const FieldBatch& fast,
                       const GpmSampler& gpm, std::size_t first_metric, Gpu& gpu) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    LinkReadings& readings = gpu.links[i].readings;
    readings.active = State(calls, fast, i);
    const std::size_t metric = first_metric + 2 * i;
    const bool profiled = i < kGpmLinksMax && metric + 1 < gpm.size();
    readings.receive_bytes_per_second =
        profiled ? gpm.MebibytesPerSecond(metric) : Reading(Missing::kNotSupported);
    readings.transmit_bytes_per_second =
        profiled ? gpm.MebibytesPerSecond(metric + 1) : Reading(Missing::kNotSupported);
    if (!counters_) continue;
    Link& link = links_[i];
    const Reading transmit =
        link.transmit_rate.Update(fast, link.transmit, kKibibyte, cycle.steady);
    const Reading receive = link.receive_rate.Update(fast, link.receive, kKibibyte, cycle.steady);
    if (!readings.transmit_bytes_per_second) readings.transmit_bytes_per_second = transmit;
    if (!readings.receive_bytes_per_second) readings.receive_bytes_per_second = receive;
  }
  GpuReadings& readings = gpu.readings;
  if (links_.empty()) {
    readings.nvlink_links_active = readings.nvlink_links;
    return;
  }
  readings.nvlink_links_active = CountActive(gpu.links);
  if (!readings.nvlink_transmit_bytes_per_second) {
    readings.nvlink_transmit_bytes_per_second =
        SumOver(gpu.links, &LinkReadings::transmit_bytes_per_second);
  }
  if (!readings.nvlink_receive_bytes_per_second) {
    readings.nvlink_receive_bytes_per_second =
        SumOver(gpu.links, &LinkReadings::receive_bytes_per_second);
  }
}

void NvLinks::ReadSlow(DeviceCalls& calls, const FieldBatch& slow, Gpu& gpu) const {
  constexpr double kMegabyte = 1e6;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    LinkReadings& readings = gpu.links[i].readings;
    readings.speed_bytes_per_second = slow.Get(links_[i].speed, kMegabyte);
    const auto errors = [&](unsigned int counter) -> Reading {
      unsigned long long count = 0;
      const nvmlReturn_t result = calls.AskFresh<NvmlFunction::nvmlDeviceGetNvLinkErrorCounter>(
          calls.handle(), static_cast<unsigned int>(i), counter, &count);
      if (result != NVML_SUCCESS) return MissingFor(result);
      return IsBlank(count) ? Reading(Missing::kImplausible) : Reading(static_cast<double>(count));
    };
    readings.replay_errors_total = errors(NVML_NVLINK_ERROR_DL_REPLAY);
    readings.recovery_errors_total = errors(NVML_NVLINK_ERROR_DL_RECOVERY);
    readings.crc_errors_total = errors(NVML_NVLINK_ERROR_DL_CRC_FLIT);
  }
}

}  // namespace gpuassay
