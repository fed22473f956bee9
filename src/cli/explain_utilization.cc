#include "cli/explain_utilization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/scenario_files.h"
#include "cli/snapshot_table.h"
#include "cli/source_reading.h"
#include "cli/table.h"
#include "sim/engine/engine.h"
#include "sim/scenario/scenario.h"

namespace gpuassay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kTinyKernels = "tiny-kernels";
constexpr const char* kKernelTrace = "kernel-trace";
constexpr Duration kMeasured = std::chrono::minutes(1);
// The driver's sampling window of 1/6 s, as people write it.
constexpr Duration kWindow = milliseconds(166);
constexpr std::uint32_t kWindows = 2;

constexpr std::string_view kMeaning = R"(What "GPU utilisation" means

The driver looks at each GPU in windows of 1/6 s to 1 s, depending on the model. Utilisation is the
share of time in which it found at least one kernel on the GPU. It does not say how long the kernel
ran, on how many SMs, or whether they computed anything: one thread on one SM counts like a full GPU.
)";

constexpr std::string_view kAdvice = R"(
What to look at instead

  gpuassay_gpu_sm_active_ratio      share of SM time with work on it: low means the GPU waits, or
                                    the kernels are too small
  gpuassay_gpu_tensor_active_ratio  share of cycles in which the tensor cores worked: what a model in
                                    BF16, FP16 or FP8 is paid for
  gpuassay_gpu_dram_active_ratio    share of the memory bandwidth in use: high with little tensor
                                    work means the memory is the limit
  power against its limit           work costs power: a GPU that is "busy" near its idle power is not
  rate() of ..._seconds_total       the same as counters: exact over any window

None of them is a score. How fast the job makes progress (steps, tokens) decides.
)";

// A counter over the time that it was integrated.
Reading Share(const Reading& total_seconds, const Reading& observed_seconds) {
  if (!total_seconds) return total_seconds;
  if (!observed_seconds || *observed_seconds <= 0) return Missing::kNeverSampled;
  return *total_seconds / *observed_seconds;
}

std::string Percent(const Reading& ratio) { return ratio ? PercentText(*ratio) : "-"; }
std::string Watts(const Reading& watts) { return watts ? fmt::format("{:.0f}", *watts) : "-"; }

std::string TinyKernelsText(const std::vector<UtilizationCase>& cases) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"  GPU", kRight},
               {"Program"},
               {"Utilisation", kRight},
               {"SM active", kRight},
               {"Tensor active", kRight},
               {"Power", kRight}});
  for (const UtilizationCase& c : cases) {
    table.Add({{fmt::format("{}", c.gpu)},
               {c.program},
               {Percent(c.utilization_ratio)},
               {Percent(c.sm_active_ratio)},
               {Percent(c.tensor_active_ratio)},
               {fmt::format("{} of {} W", Watts(c.power_watts), Watts(c.power_limit_watts))}});
  }
  return fmt::format(
      "\nShown by the scenario {}, a minute of it, read as the agent reads it\n\n{}\n"
      "GPU 0 runs a kernel of 1 us about once a millisecond. Most looks of the driver find one, so "
      "it "
      "reads\nas {} utilised, while its SMs worked {} of the time. GPU 2 really works.\n",
      kTinyKernels, table.Render(false), Percent(cases[0].utilization_ratio),
      Percent(cases[0].sm_active_ratio));
}

std::string KernelTraceText(const KernelCase& c) {
  std::vector<std::string> lengths;
  for (const double length : c.kernel_seconds)
    lengths.push_back(fmt::format("{:.0f}", length * 1e6));
  std::string out = fmt::format(
      "\nThe same with single kernels, the scenario {}\n\n"
      "  kernels                      {} us, in {} windows of {:.0f} ms\n"
      "  windows with a kernel        {} of {}: both were \"active\"\n"
      "  time a kernel really ran     {:.3f} ms of {:.0f} ms = {:.3f} %\n",
      kKernelTrace, fmt::join(lengths, ", "), c.windows, c.window_seconds * 1e3, c.windows_active,
      c.windows, c.busy_seconds * 1e3, c.windows * c.window_seconds * 1e3, c.busy_ratio * 100);
  if (c.sm_active_seconds) {
    out += fmt::format("  SM-active time that we count {:.3f} ms\n", *c.sm_active_seconds * 1e3);
  }
  return out;
}

}  // namespace

Result<std::vector<UtilizationCase>> MeasureTinyKernels() {
  Result<ScenarioRun> run = ScenarioRun::Open(kTinyKernels, {.attribution = false});
  if (!run) return std::unexpected(run.error());
  Snapshot snapshot;
  for (Duration t = {}; t <= kMeasured; t += seconds(1)) snapshot = run->ReadAt(t);
  std::vector<UtilizationCase> cases;
  for (const Gpu& gpu : snapshot.gpus) {
    const GpuReadings& r = gpu.readings;
    UtilizationCase& c = cases.emplace_back();
    c.gpu = gpu.identity.index;
    if (!gpu.processes.empty()) c.program = gpu.processes.front().name;
    c.utilization_ratio = Share(r.busy_seconds_total, r.observed_seconds_total);
    c.sm_active_ratio = Share(r.sm_active_seconds_total, r.observed_seconds_total);
    c.tensor_active_ratio = Share(r.tensor_active_seconds_total, r.observed_seconds_total);
    c.power_watts = r.power_watts;
    c.power_limit_watts = r.power_limit_watts;
  }
  return cases;
}

Result<KernelCase> MeasureKernelTrace() {
  const Result<std::string> path = FindScenario(kKernelTrace);
  if (!path) return std::unexpected(path.error());
  const Result<sim::Scenario> scenario = sim::LoadScenario(*path);
  if (!scenario) return std::unexpected(scenario.error());
  std::vector<sim::Kernel> kernels;
  for (const sim::ScenarioProcess& process : scenario->processes) {
    for (const sim::Phase& phase : process.phases) {
      kernels.insert(kernels.end(), phase.kernels.begin(), phase.kernels.end());
    }
  }
  const sim::KernelTrace trace = sim::TraceKernels(kernels, kWindow, kWindows);
  KernelCase out;
  for (const sim::Kernel& kernel : kernels) out.kernel_seconds.push_back(Seconds(kernel.length));
  out.window_seconds = trace.window_seconds;
  out.windows = trace.windows;
  out.windows_active = trace.windows_active;
  out.busy_seconds = trace.busy_seconds;
  out.busy_ratio = trace.busy_ratio;

  Result<ScenarioRun> run = ScenarioRun::Open(kKernelTrace, {.attribution = false});
  if (!run) return std::unexpected(run.error());
  run->ReadAt(Duration::zero());
  const Snapshot snapshot = run->ReadAt(seconds(1));
  if (!snapshot.gpus.empty()) {
    out.sm_active_seconds = snapshot.gpus[0].readings.sm_active_seconds_total;
  }
  return out;
}

Result<std::string> ExplainUtilization() {
  const auto cases = MeasureTinyKernels();
  if (!cases) return std::unexpected(cases.error());
  const auto trace = MeasureKernelTrace();
  if (!trace) return std::unexpected(trace.error());
  if (cases->empty()) return Fail(ErrorCode::kIo, "the scenario tiny-kernels showed no GPU");
  return std::string(kMeaning) + TinyKernelsText(*cases) + KernelTraceText(*trace) +
         std::string(kAdvice);
}

}  // namespace gpuassay
