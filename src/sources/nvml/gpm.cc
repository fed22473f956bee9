#include "sources/nvml/gpm.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuassay {
namespace {

constexpr unsigned int kArchitectureHopper = 9;

}  // namespace

GpmSampler::~GpmSampler() {
  for (nvmlGpmSample_t sample : samples_) {
    if (sample != nullptr) {
      library_->Call<NvmlFunction::nvmlGpmSampleFree>(CallWatch::kNoGpu, sample);
    }
  }
}

GpmSampler::GpmSampler(GpmSampler&& other) noexcept
    : library_(other.library_),
      samples_(std::exchange(other.samples_, {})),
      newest_(other.newest_),
      sampled_(std::exchange(other.sampled_, false)),
      sampled_at_(other.sampled_at_),
      ids_(std::move(other.ids_)),
      values_(std::move(other.values_)) {}

void GpmSampler::SetMetrics(std::span<const unsigned int> ids) {
  const std::size_t count = std::min<std::size_t>(ids.size(), GPUASSAY_GPM_METRICS_MAX);
  if (std::ranges::equal(ids_, ids.first(count))) return;
  ids_.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  values_.assign(count, Missing::kNeverSampled);
}

void GpmSampler::Fail(Missing reason) {
  std::ranges::fill(values_, Reading(reason));
  sampled_ = false;
}

bool GpmSampler::Allocate(DeviceCalls& calls) {
  for (nvmlGpmSample_t& sample : samples_) {
    if (sample != nullptr) continue;
    const nvmlReturn_t result = calls.Ask<NvmlFunction::nvmlGpmSampleAlloc>(0, &sample);
    if (result != NVML_SUCCESS) {
      sample = nullptr;
      Fail(MissingFor(result));
      return false;
    }
  }
  return true;
}

void GpmSampler::Read(DeviceCalls& calls, const Cycle& cycle,
                      std::optional<unsigned int> gpu_instance) {
  if (sampled_ && cycle.steady - sampled_at_ < kIntervalMin) return;
  if (!Allocate(calls)) return;
  const std::size_t next = 1 - newest_;
  const nvmlReturn_t result =
      gpu_instance ? calls.AskFresh<NvmlFunction::nvmlGpmMigSampleGet>(
                         calls.handle(), *gpu_instance, samples_[next])
                   : calls.Ask<NvmlFunction::nvmlGpmSampleGet>(0, calls.handle(), samples_[next]);
  if (result != NVML_SUCCESS) return Fail(MissingFor(result));
  newest_ = next;
  sampled_at_ = cycle.steady;
  if (std::exchange(sampled_, true)) {
    Compute(calls);
  } else {
    std::ranges::fill(values_, Reading(Missing::kNeverSampled));
  }
}

void GpmSampler::Compute(DeviceCalls& calls) {
  nvmlGpmMetricsGet_t request;  // 4 KiB; only what is asked for is set
  request.version = 1;
  request.numMetrics = static_cast<unsigned int>(ids_.size());
  request.sample1 = samples_[1 - newest_];
  request.sample2 = samples_[newest_];
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    request.metrics[i] = {};
    request.metrics[i].metricId = ids_[i];
  }
  const nvmlReturn_t result = calls.Ask<NvmlFunction::nvmlGpmMetricsGet>(0, &request);
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const nvmlGpmMetric_t& metric = request.metrics[i];
    if (result != NVML_SUCCESS || metric.nvmlReturn != NVML_SUCCESS) {
      values_[i] = MissingFor(result != NVML_SUCCESS ? result : metric.nvmlReturn);
    } else if (!std::isfinite(metric.value) || metric.value < 0) {
      values_[i] = Missing::kImplausible;
    } else {
      values_[i] = metric.value;
    }
  }
}

Reading GpmSampler::Percent(std::size_t metric) const {
  const Reading& value = values_[metric];
  if (!value) return value;
  // The two samples are not taken at one instant in all units: a little over 100 % is full.
  if (*value > 101) return Missing::kImplausible;
  return std::min(*value, 100.0) / 100.0;
}

Reading GpmSampler::MebibytesPerSecond(std::size_t metric) const {
  const Reading& value = values_[metric];
  return value ? Reading(*value * 1048576.0) : value;
}

std::optional<Missing> GpmSupport::Check(DeviceCalls& calls, unsigned int architecture) {
  if (known_) return missing_;
  nvmlGpmSupport_t support = {};
  support.version = 1;
  const nvmlReturn_t result =
      calls.Ask<NvmlFunction::nvmlGpmQueryDeviceSupport>(0, calls.handle(), &support);
  if (calls.stopped() != NVML_SUCCESS) return MissingFor(calls.stopped());
  known_ = true;
  missing_.reset();
  if (result != NVML_SUCCESS) {
    missing_ = MissingFor(result);
    // No newer driver brings it to an older GPU.
    const bool older = architecture > 0 && architecture < kArchitectureHopper;
    if (missing_ == Missing::kDriverTooOld && older) missing_ = Missing::kNotSupported;
  } else if (support.isSupportedDevice == 0) {
    missing_ = Missing::kNotSupported;
  }
  return missing_;
}

}  // namespace gpuassay
