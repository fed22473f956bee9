#include "sim/engine/load.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/engine.h"

namespace gpuassay::sim {
namespace {

constexpr double kFull = 1.0 - 1e-12;
constexpr double kKernelOccupancy = 0.5;  // of explicit kernels

Duration Overlap(const Kernel& kernel, Duration begin, Duration end) {
  return std::max(Duration::zero(),
                  std::min(kernel.at + kernel.length, end) - std::max(kernel.at, begin));
}

}  // namespace

Load LoadOf(const Activity& activity, double clock) {
  Load load = {};
  load[kPcieTransmit] = activity.pcie_transmit_bytes_per_second;
  load[kPcieReceive] = activity.pcie_receive_bytes_per_second;
  load[kNvlinkTransmit] = activity.nvlink_transmit_bytes_per_second;
  load[kNvlinkReceive] = activity.nvlink_receive_bytes_per_second;
  load[kEncoder] = activity.encoder;
  load[kDecoder] = activity.decoder;
  const double wanted = std::min(1.0, activity.kernel_seconds * activity.launches_per_second);
  if (wanted <= 0) {
    return load;
  }
  const double done = wanted > clock ? clock / wanted : 1.0;  // share of the work that gets done
  const double cycles = done / clock;                         // share of cycles, against full clock
  load[kBusy] = wanted * cycles;
  const double rate = activity.launches_per_second * done;
  const double reach = rate * (kSamplerSeconds + activity.kernel_seconds / clock);
  load[kResident] = load[kBusy] >= kFull ? 1.0
                    : activity.regular   ? std::min(1.0, reach)
                                         : 1.0 - std::exp(-reach);
  load[kSmActive] = activity.sm_active * cycles;
  load[kSmOccupancy] = activity.sm_occupancy * cycles;
  load[kTensor] = activity.tensor_active * cycles;
  load[kFp64] = activity.fp64_active * cycles;
  load[kFp32] = activity.fp32_active * cycles;
  load[kFp16] = activity.fp16_active * cycles;
  load[kInteger] = activity.integer_active * cycles;
  load[kDram] = activity.dram_active * done;
  for (std::size_t i = kPcieTransmit; i <= kNvlinkReceive; ++i) {
    load[i] *= done;
  }
  return load;
}

Load LoadOfKernels(const std::vector<Kernel>& kernels, Duration begin, Duration end) {
  constexpr Duration kInstant = std::chrono::microseconds(2000);
  Load load = {};
  const double length = Seconds(end - begin);
  if (length <= 0) {
    return load;
  }
  // Kernels are in order and apart: the first that can matter ends after `begin`.
  auto kernel = std::ranges::partition_point(
      kernels, [&](const Kernel& k) { return k.at + k.length <= begin; });
  double busy = 0;
  double instants = 0;
  Duration::rep last = -1;  // last instant that was counted
  for (; kernel != kernels.end() && kernel->at < end; ++kernel) {
    busy += Seconds(Overlap(*kernel, begin, end));
    const Duration::rep first = std::max(Duration::zero(), kernel->at - begin) / kInstant;
    const Duration until = std::min(kernel->at + kernel->length, end) - begin;
    const Duration::rep final = (until - Duration(1)) / kInstant;
    instants += static_cast<double>(final - std::max(first, last + 1) + 1);
    last = final;
  }
  load[kBusy] = busy / length;
  load[kResident] = std::clamp(instants * kSamplerSeconds / length, load[kBusy], 1.0);
  load[kSmActive] = load[kBusy];
  load[kSmOccupancy] = load[kBusy] * kKernelOccupancy;
  return load;
}

double ShareDevice(Load& sum) {
  const double factor = sum[kBusy] > 1 ? 1 / sum[kBusy] : 1.0;
  if (factor < 1) {
    for (std::size_t i = 0; i < kLoadCount; ++i) {
      sum[i] *= i == kResident || i == kEncoder || i == kDecoder ? 1.0 : factor;
    }
  }
  for (const std::size_t i : {kSmActive, kSmOccupancy, kDram, kEncoder, kDecoder}) {
    sum[i] = std::min(1.0, sum[i]);
  }
  return factor;
}

KernelTrace TraceKernels(const std::vector<Kernel>& kernels, Duration window,
                         std::uint32_t windows) {
  KernelTrace trace;
  trace.windows = windows;
  trace.window_seconds = Seconds(window);
  const Duration end = window * windows;
  std::vector<Kernel> ordered = kernels;
  std::ranges::sort(ordered, {}, &Kernel::at);
  Duration covered = {};  // end of the union so far
  Duration busy = {};
  std::int64_t last_window = -1;
  for (const Kernel& kernel : ordered) {
    const Duration from = std::max(kernel.at, Duration::zero());
    const Duration to = std::min(kernel.at + kernel.length, end);
    if (to <= from) {
      continue;
    }
    busy += std::max(Duration::zero(), to - std::max(from, covered));
    covered = std::max(covered, to);
    const std::int64_t first = std::max<std::int64_t>(from / window, last_window + 1);
    const std::int64_t final = (to - Duration(1)) / window;
    if (final >= first) {
      trace.windows_active += static_cast<std::uint32_t>(final - first + 1);
      last_window = final;
    }
  }
  trace.busy_seconds = Seconds(busy);
  const double total = Seconds(end);
  trace.busy_ratio = total > 0 ? trace.busy_seconds / total : 0;
  return trace;
}

}  // namespace gpuassay::sim
