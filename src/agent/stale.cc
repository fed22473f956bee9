#include "agent/stale.h"

#include "model/catalogue.h"

namespace gpuassay {
namespace {

template <class Readings>
void MarkMeasured(Readings& readings, MetricScope scope, Missing reason) {
  const auto metrics = MetricsOf(scope);
  const auto members = Members(&readings);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (metrics[i].pace != MetricPace::kDerived) readings.*members[i] = reason;
  }
}

}  // namespace

void MarkReadingsMissing(Snapshot& snapshot, Missing reason) {
  for (Gpu& gpu : snapshot.gpus) {
    MarkMeasured(gpu.readings, MetricScope::kGpu, reason);
    gpu.readings.up = 0;
    for (NvLink& link : gpu.links) MarkMeasured(link.readings, MetricScope::kLink, reason);
    for (MigInstance& mig : gpu.mig) MarkMeasured(mig.readings, MetricScope::kMig, reason);
    for (GpuProcess& process : gpu.processes) {
      MarkMeasured(process.readings, MetricScope::kProcess, reason);
    }
  }
}

}  // namespace gpuassay
