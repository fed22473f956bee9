// GPM: samples are opaque integrals, and the difference of two gives exact means.
#include <algorithm>
#include <limits>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

constexpr double kBytesPerMib = 1048576;
constexpr double kBytesPerKib = 1024;
constexpr unsigned int kMetricsGetVersion = 1;
constexpr unsigned int kSupportVersion = 1;
// NVML's structure has one place per metric id (333 in the newest header): no more can be asked.
constexpr unsigned int kMetricsMax = 333;

struct Ratio {
  unsigned int id;
  double ActivityTotals::*seconds;  // integral of a ratio
  const char* short_name;
  const char* long_name;
};

// What a scenario's activity says about the pipes. Tensor work is half precision throughout.
constexpr Ratio kRatios[] = {
    {NVML_GPM_METRIC_GRAPHICS_UTIL, &ActivityTotals::graphics_engine, "graphics_util",
     "Graphics engine active"},
    {NVML_GPM_METRIC_SM_UTIL, &ActivityTotals::sm_active, "sm_util", "SMs with a warp"},
    {NVML_GPM_METRIC_SM_OCCUPANCY, &ActivityTotals::sm_occupancy, "sm_occupancy", "Warps resident"},
    {NVML_GPM_METRIC_INTEGER_UTIL, &ActivityTotals::integer, "integer_util", "Integer pipe active"},
    {NVML_GPM_METRIC_ANY_TENSOR_UTIL, &ActivityTotals::tensor, "any_tensor_util",
     "Any tensor pipe active"},
    {NVML_GPM_METRIC_HMMA_TENSOR_UTIL, &ActivityTotals::tensor, "hmma_tensor_util",
     "Half-precision tensor pipe active"},
    {NVML_GPM_METRIC_DRAM_BW_UTIL, &ActivityTotals::dram, "dram_bw_util",
     "Share of the memory bandwidth"},
    {NVML_GPM_METRIC_FP64_UTIL, &ActivityTotals::fp64, "fp64_util", "FP64 pipe active"},
    {NVML_GPM_METRIC_FP32_UTIL, &ActivityTotals::fp32, "fp32_util", "FP32 pipe active"},
    {NVML_GPM_METRIC_FP16_UTIL, &ActivityTotals::fp16, "fp16_util", "FP16 pipe active"},
};

struct Rate {
  unsigned int id;
  double ActivityTotals::*bytes;
  const char* short_name;
  const char* long_name;
};

constexpr Rate kRates[] = {
    {NVML_GPM_METRIC_PCIE_TX_PER_SEC, &ActivityTotals::pcie_transmit_bytes, "pcie_tx_per_sec",
     "PCIe bytes sent"},
    {NVML_GPM_METRIC_PCIE_RX_PER_SEC, &ActivityTotals::pcie_receive_bytes, "pcie_rx_per_sec",
     "PCIe bytes received"},
    {NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, &ActivityTotals::nvlink_receive_bytes,
     "nvlink_total_rx_per_sec", "NVLink bytes received"},
    {NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, &ActivityTotals::nvlink_transmit_bytes,
     "nvlink_total_tx_per_sec", "NVLink bytes sent"},
};

// Names are for people; the library owns the texts.
void Describe(nvmlGpmMetric_t* metric, const char* short_name, const char* long_name,
              const char* unit) {
  metric->metricInfo.shortName = const_cast<char*>(short_name);
  metric->metricInfo.longName = const_cast<char*>(long_name);
  metric->metricInfo.unit = const_cast<char*>(unit);
}

// One direction of one link, in MiB/s; nullopt when the sample has no such link.
std::optional<double> LinkRate(const GpmSample& from, const GpmSample& to, unsigned int id,
                               double seconds) {
  const std::size_t link = (id - NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC) / 2;
  const bool receive = (id - NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC) % 2 == 0;
  if (link >= from.links.size() || link >= to.links.size()) {
    return std::nullopt;
  }
  const auto kib = receive ? &LinkState::receive_kib : &LinkState::transmit_kib;
  const auto delta = static_cast<double>(to.links[link].*kib - from.links[link].*kib);
  return delta * kBytesPerKib / kBytesPerMib / seconds;
}

bool HasNvlink(const GpmSample& sample) { return !sample.links.empty(); }

// The value of a metric between two samples; nullopt when this GPU does not have it.
std::optional<double> ValueOf(const GpmSample& from, const GpmSample& to, nvmlGpmMetric_t* metric) {
  const double seconds = to.totals.seconds - from.totals.seconds;
  for (const Ratio& ratio : kRatios) {
    if (ratio.id == metric->metricId) {
      Describe(metric, ratio.short_name, ratio.long_name, "%");
      return 100 * (to.totals.*ratio.seconds - from.totals.*ratio.seconds) / seconds;
    }
  }
  if (metric->metricId == NVML_GPM_METRIC_DFMA_TENSOR_UTIL ||
      metric->metricId == NVML_GPM_METRIC_DMMA_TENSOR_UTIL ||
      metric->metricId == NVML_GPM_METRIC_IMMA_TENSOR_UTIL) {
    Describe(metric, "tensor_util", "Other tensor pipes active", "%");
    return 0.0;  // see kRatios
  }
  if (from.mig) {
    return std::nullopt;  // links belong to the whole GPU
  }
  for (const Rate& rate : kRates) {
    if (rate.id != metric->metricId) {
      continue;
    }
    if (rate.id >= NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC && !HasNvlink(from)) {
      return std::nullopt;
    }
    Describe(metric, rate.short_name, rate.long_name, "MiB/s");
    return (to.totals.*rate.bytes - from.totals.*rate.bytes) / kBytesPerMib / seconds;
  }
  if (metric->metricId >= NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC &&
      metric->metricId <= NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC) {
    Describe(metric, "nvlink_per_sec", "Bytes over one NVLink", "MiB/s");
    return LinkRate(from, to, metric->metricId, seconds);
  }
  return std::nullopt;
}

void Fill(const GpmSample& from, const GpmSample& to, nvmlGpmMetric_t* metric) {
  metric->metricInfo = {};
  metric->value = std::numeric_limits<double>::quiet_NaN();
  if (to.totals.seconds - from.totals.seconds <= 0) {  // less than one tick apart
    metric->nvmlReturn = NVML_ERROR_NO_DATA;
    return;
  }
  const std::optional<double> value = ValueOf(from, to, metric);
  metric->nvmlReturn = value ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
  metric->value = value.value_or(std::numeric_limits<double>::quiet_NaN());
}

GpmSample* FindSample(const Driver& driver, nvmlGpmSample_t handle) {
  const auto found = driver.gpm_samples.find(handle);
  return found == driver.gpm_samples.end() ? nullptr : found->second.get();
}

}  // namespace
}  // namespace gpuassay::sim

using namespace gpuassay::sim;

extern "C" {

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t* support) {
  return OnDevice(
      Function::nvmlGpmQueryDeviceSupport, device, support != nullptr,
      [&](const Call& call) -> nvmlReturn_t {
        if (support->version != kSupportVersion) {
          return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        }
        support->isSupportedDevice = call.gpu().model->features.gpm ? 1 : 0;
        return NVML_SUCCESS;
      },
      Needs::kIdentity);
}

nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t device, unsigned int* state) {
  return OnDevice(
      Function::nvmlGpmQueryIfStreamingEnabled, device, state != nullptr,
      [&](const Call& call) { return Give(call.gpu().model->features.gpm, state, 0U); });
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* sample) {
  return OnDriver(Function::nvmlGpmSampleAlloc, sample != nullptr,
                  [&](Driver& driver) -> nvmlReturn_t {
                    if (driver.gpm_samples.size() >= kGpmSamplesMax) {
                      return NVML_ERROR_MEMORY;
                    }
                    auto created = std::make_unique<GpmSample>();
                    *sample = reinterpret_cast<nvmlGpmSample_t>(created.get());
                    driver.gpm_samples.emplace(*sample, std::move(created));
                    return NVML_SUCCESS;
                  });
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  return OnDriver(Function::nvmlGpmSampleFree, true, [&](Driver& driver) -> nvmlReturn_t {
    return driver.gpm_samples.erase(sample) == 1 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
  });
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
  return OnGpu(Function::nvmlGpmSampleGet, device, true,
               [&](const DeviceState& gpu) -> nvmlReturn_t {
                 GpmSample* out = FindSample(*InstalledDriver(), sample);
                 if (out == nullptr) {
                   return NVML_ERROR_INVALID_ARGUMENT;
                 }
                 if (!gpu.model->features.gpm) {
                   return NVML_ERROR_NOT_SUPPORTED;
                 }
                 out->taken = true;
                 out->mig = false;
                 out->gpu = gpu.index;
                 out->totals = gpu.totals;
                 out->links = gpu.links;
                 return NVML_SUCCESS;
               });
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance,
                                 nvmlGpmSample_t sample) {
  return OnGpu(
      Function::nvmlGpmMigSampleGet, device, true, [&](const DeviceState& gpu) -> nvmlReturn_t {
        GpmSample* out = FindSample(*InstalledDriver(), sample);
        if (out == nullptr) {
          return NVML_ERROR_INVALID_ARGUMENT;
        }
        if (!gpu.model->features.gpm || !gpu.mig_enabled) {
          return NVML_ERROR_NOT_SUPPORTED;
        }
        const auto mig = std::ranges::find(gpu.mig, gpu_instance, &MigState::gpu_instance_id);
        if (mig == gpu.mig.end()) {
          return NVML_ERROR_NOT_FOUND;
        }
        out->taken = true;
        out->mig = true;
        out->gpu = gpu.index;
        out->gpu_instance = gpu_instance;
        out->totals = mig->totals;
        out->links.clear();
        return NVML_SUCCESS;
      });
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* metrics) {
  return OnDriver(
      Function::nvmlGpmMetricsGet, metrics != nullptr, [&](const Driver& driver) -> nvmlReturn_t {
        if (metrics->version != kMetricsGetVersion) {
          return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        }
        const GpmSample* from = FindSample(driver, metrics->sample1);
        const GpmSample* to = FindSample(driver, metrics->sample2);
        const bool comparable = from != nullptr && to != nullptr && from->taken && to->taken &&
                                from->gpu == to->gpu && from->mig == to->mig &&
                                from->gpu_instance == to->gpu_instance;
        if (!comparable || metrics->numMetrics > kMetricsMax) {
          return NVML_ERROR_INVALID_ARGUMENT;
        }
        nvmlGpmMetric_t* metric = metrics->metrics;
        for (unsigned int i = 0; i < metrics->numMetrics; ++i) {
          Fill(*from, *to, metric++);
        }
        return NVML_SUCCESS;
      });
}

}  // extern "C"
