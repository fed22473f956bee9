#include "sim/engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "sim/engine/test_engine.h"

namespace gpuassay::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Everything that noise and history go into.
std::string Fingerprint(const DeviceState& state) {
  std::string out;
  for (const double value :
       {state.energy_j, state.power_w, state.power_average_w, state.temperature_c,
        state.memory_temperature_c.value_or(-1), state.sm_clock_mhz, state.totals.sm_active,
        state.totals.nvlink_transmit_bytes, state.power_cap_seconds,
        static_cast<double>(state.utilization_samples.size()),
        static_cast<double>(state.process_samples.size())}) {
    out += std::to_string(value) + " ";
  }
  for (const UtilizationSample& sample : state.utilization_samples) {
    out += std::to_string(sample.gpu_percent) + ",";
  }
  return out;
}

TEST(Engine, DoesNotDependOnWhenItIsAsked) {
  Engine once = Story("demo");
  Engine often = Story("demo");
  once.AdvanceTo(seconds(120));
  for (int ms = 0; ms <= 120'000; ms += 37) {
    often.AdvanceTo(milliseconds(ms));
  }
  often.AdvanceTo(seconds(120));
  often.AdvanceTo(seconds(5));  // the past is ignored
  ASSERT_EQ(once.devices().size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(Fingerprint(once.devices()[i]), Fingerprint(often.devices()[i]));
  }
  EXPECT_EQ(once.now(), seconds(120));
}

TEST(Engine, StandsOnTheGrid) {
  Engine engine = Make("gpus: [{model: t4}]");
  engine.AdvanceTo(milliseconds(400));
  EXPECT_EQ(engine.now(), microseconds(333333));
  EXPECT_EQ(TickTime(6), seconds(1));
}

TEST(Engine, SeedsDiffer) {
  Engine a = Make("seed: 1\ngpus: [{model: t4}]");
  Engine b = Make("seed: 2\ngpus: [{model: t4}]");
  EXPECT_NE(At(a, seconds(5)).power_w, At(b, seconds(5)).power_w);
  EXPECT_NE(a.devices()[0].config.uuid, b.devices()[0].config.uuid);
}

TEST(Engine, NamesDevices) {
  Engine engine = Make("gpus: [{model: t4, count: 9}, {model: t4, uuid: GPU-x, serial: s1}]");
  const auto& devices = engine.devices();
  EXPECT_EQ(devices[0].config.uuid.size(), 40U);
  EXPECT_EQ(devices[0].config.uuid.substr(0, 4), "GPU-");
  EXPECT_NE(devices[0].config.uuid, devices[1].config.uuid);
  EXPECT_EQ(devices[0].config.serial.size(), 13U);
  EXPECT_EQ(devices[0].config.pci_bus_id, "00000000:1B:00.0");
  EXPECT_EQ(devices[8].config.pci_bus_id, "00000001:1B:00.0");
  EXPECT_EQ(devices[9].config.uuid, "GPU-x");
  EXPECT_EQ(devices[9].config.serial, "s1");
}

// Mission, M27: 87 % utilisation, 0.1 % of work.
TEST(Utilization, OfTinyKernelsReadsFarAboveTheirWork) {
  Engine engine = Story("tiny-kernels");
  engine.AdvanceTo(seconds(60));
  const DeviceState& tiny = engine.devices()[0];
  EXPECT_EQ(tiny.utilization_percent, 87U);
  EXPECT_NEAR(tiny.totals.sm_active / tiny.totals.seconds, 0.001, 1e-9);
  EXPECT_NEAR(tiny.totals.busy / tiny.totals.seconds, 0.001, 1e-9);
  EXPECT_EQ(engine.devices()[1].utilization_percent, 1U);
  EXPECT_NEAR(engine.devices()[1].totals.busy / 60, 0.01, 1e-9);
  EXPECT_EQ(engine.devices()[2].utilization_percent, 100U);
  EXPECT_NEAR(engine.devices()[2].totals.sm_active / 60, 0.95, 1e-9);
}

// Mission, M27: kernels of 50, 2 and 100 us in two windows of 166 ms.
TEST(TraceKernels, CountsWindowsAndRealWork) {
  const std::vector<Kernel> kernels = {{milliseconds(20), microseconds(50)},
                                       {milliseconds(90), microseconds(2)},
                                       {milliseconds(250), microseconds(100)}};
  const KernelTrace trace = TraceKernels(kernels, milliseconds(166), 2);
  EXPECT_EQ(trace.windows, 2U);
  EXPECT_EQ(trace.windows_active, 2U);
  EXPECT_DOUBLE_EQ(trace.window_seconds, 0.166);
  EXPECT_DOUBLE_EQ(trace.busy_seconds, 0.000152);
  EXPECT_NEAR(trace.busy_ratio, 0.000458, 5e-7);
}

TEST(TraceKernels, TakesTheUnionWithinTheWindows) {
  const std::vector<Kernel> kernels = {{milliseconds(5), milliseconds(10)},
                                       {milliseconds(0), milliseconds(10)},
                                       {milliseconds(95), milliseconds(50)},
                                       {milliseconds(200), milliseconds(5)}};
  const KernelTrace trace = TraceKernels(kernels, milliseconds(10), 10);
  EXPECT_DOUBLE_EQ(trace.busy_seconds, 0.020);
  EXPECT_EQ(trace.windows_active, 3U);
  EXPECT_EQ(TraceKernels({}, milliseconds(10), 10).windows_active, 0U);
  EXPECT_EQ(TraceKernels({}, milliseconds(10), 0).busy_ratio, 0);
}

TEST(Utilization, OfExplicitKernelsIsTheirRealTime) {
  Engine engine = Story("kernel-trace");
  engine.AdvanceTo(seconds(1));
  const DeviceState& state = engine.devices()[0];
  EXPECT_NEAR(state.totals.busy, 0.000152, 1e-12);
  ASSERT_EQ(state.utilization_samples.size(), 6U);
  EXPECT_EQ(state.utilization_samples[0].gpu_percent, 2U);  // two kernels: 2 instants of 83
  EXPECT_EQ(state.utilization_samples[1].gpu_percent, 1U);
  EXPECT_EQ(state.utilization_samples[2].gpu_percent, 0U);
}

TEST(Utilization, IsSampledOncePerSecondOnKepler) {
  Engine engine = Make(
      "driver: 470.82.01\nnoise: 0\ngpus: [{model: tesla-k80}]\n"
      "processes: [{pid: 1, gpus: 0, phases: [{for: 500ms, activity: {sm_active: 1}}]}]");
  const DeviceState& state = At(engine, seconds(3));
  ASSERT_EQ(state.utilization_samples.size(), 3U);
  EXPECT_EQ(state.utilization_samples[0].at, seconds(1));
  EXPECT_EQ(state.utilization_samples[0].gpu_percent, 50U);
  EXPECT_EQ(state.utilization_samples[1].gpu_percent, 0U);
}

TEST(Utilization, HistoryIsBounded) {
  Engine engine = Story("bench-8x64");
  const DeviceState& state = At(engine, minutes(2));
  EXPECT_EQ(state.utilization_samples.size(), kSampleHistory);
  EXPECT_EQ(state.process_samples.size(), 8 * kSampleHistory);
}

// Mission, M41: 96 %, 320 W of 700, 62 GiB.
TEST(Power, OfBusyButSlowIs320W) {
  Engine engine = Story("h100-busy-but-slow");
  engine.AdvanceTo(seconds(120));
  for (const DeviceState& state : engine.devices()) {
    double sum = 0;
    for (const UtilizationSample& sample : state.utilization_samples) {
      sum += sample.gpu_percent;
    }
    EXPECT_NEAR(sum / static_cast<double>(state.utilization_samples.size()), 96, 1);
    EXPECT_NEAR(state.power_average_w, 320, 5);
    EXPECT_EQ(state.memory_used_bytes, 62U * 1024 * kMiB);
    EXPECT_EQ(state.clock_event_reasons, 0U);
  }
}

TEST(Power, OfTrainingReachesTheLimitAndLowersTheClock) {
  Engine engine = Story("h100-8x-training");
  const DeviceState& state = At(engine, seconds(100));
  EXPECT_NEAR(state.power_average_w, 700, 7);
  EXPECT_LT(state.sm_clock_mhz, 1980);
  EXPECT_GT(state.sm_clock_mhz, 1800);
  EXPECT_EQ(state.clock_event_reasons, kReasonSoftwarePowerCap);
  EXPECT_NEAR(state.power_cap_seconds, 100, 0.01);
}

TEST(Power, WithoutWorkIsIdle) {
  Engine engine = Make("noise: 0\ngpus: [{model: h100-sxm5-80gb}, {model: gtx-1080-ti}]");
  engine.AdvanceTo(seconds(30));
  const DeviceState& h100 = engine.devices()[0];
  EXPECT_EQ(h100.power_w, 68);
  EXPECT_EQ(h100.sm_clock_mhz, 345);
  EXPECT_EQ(h100.performance_state, 0U);
  EXPECT_EQ(h100.pcie_generation, 5U);
  EXPECT_EQ(h100.clock_event_reasons, kReasonIdle);
  EXPECT_NEAR(h100.low_utilization_seconds, 30, 1e-6);
  EXPECT_NEAR(h100.temperature_c, 29.5, 0.1);
  const DeviceState& gtx = engine.devices()[1];
  EXPECT_EQ(gtx.performance_state, 8U);
  EXPECT_EQ(gtx.memory_clock_mhz, 405);
  EXPECT_EQ(gtx.pcie_generation, 1U);
  EXPECT_EQ(gtx.fan_percent, 30);
  EXPECT_FALSE(gtx.memory_temperature_c);
}

TEST(Power, OfAnIdleContextStaysUpOnDataCentreCards) {
  Engine engine = Make(
      "noise: 0\ngpus: [{model: h100-sxm5-80gb}, {model: rtx-4090}]\n"
      "processes: [{pid: 1, gpus: all, memory: 18 GiB}]");
  engine.AdvanceTo(seconds(30));
  EXPECT_NEAR(engine.devices()[0].power_w, 112, 1);
  EXPECT_EQ(engine.devices()[0].sm_clock_mhz, 1980);
  EXPECT_EQ(engine.devices()[0].utilization_percent, 0U);
  EXPECT_EQ(engine.devices()[1].power_w, 24);
}

TEST(Power, EnergyIsItsIntegral) {
  Engine engine = Story("demo");
  std::vector<double> integral(8, 0);
  for (std::uint64_t tick = 1; tick <= 600; ++tick) {
    engine.AdvanceTo(TickTime(tick));
    for (std::size_t i = 0; i < 8; ++i) {
      integral[i] += engine.devices()[i].power_w * Seconds(TickTime(tick) - TickTime(tick - 1));
    }
  }
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(engine.devices()[i].energy_j, integral[i], 1e-6);
    EXPECT_GT(integral[i], 6000);
  }
}

TEST(Clocks, FollowCapBrakeAndLock) {
  Engine engine = Story("power");
  engine.AdvanceTo(seconds(60));
  const auto& devices = engine.devices();
  EXPECT_EQ(devices[0].clock_event_reasons, kReasonSoftwarePowerCap);
  EXPECT_EQ(devices[0].power_limit_w, 400);
  EXPECT_NEAR(devices[0].power_average_w, 390, 15);
  EXPECT_NEAR(devices[0].power_cap_seconds, 40, 0.4);
  EXPECT_EQ(devices[1].clock_event_reasons, kReasonHardwareSlowdown | kReasonPowerBrake);
  EXPECT_EQ(devices[1].sm_clock_mhz, 990);
  EXPECT_NEAR(devices[1].power_brake_seconds, 40, 0.4);
  EXPECT_EQ(devices[2].clock_event_reasons, kReasonApplicationClocks);
  EXPECT_EQ(devices[2].sm_clock_mhz, 1200);
  EXPECT_EQ(devices[3].clock_event_reasons, 0U);
  engine.AdvanceTo(minutes(8));
  for (const DeviceState& state : engine.devices()) {
    EXPECT_EQ(state.sm_clock_mhz, 1980);
    EXPECT_EQ(state.clock_event_reasons, 0U);
  }
}

TEST(Pcie, SlowLinkHoldsTheWorkUp) {
  Engine engine = Story("power");
  engine.AdvanceTo(seconds(20));
  const double before = engine.devices()[4].totals.pcie_receive_bytes;
  engine.AdvanceTo(seconds(60));
  const DeviceState& slow = engine.devices()[4];
  EXPECT_EQ(slow.pcie_generation, 1U);
  EXPECT_NEAR((slow.totals.pcie_receive_bytes - before) / 40, 4e9, 2e8);  // wanted: 20 GB/s
  EXPECT_LT(slow.utilization_percent, 25U);
  EXPECT_EQ(engine.devices()[5].pcie_width, 8U);
  EXPECT_GE(engine.devices()[5].utilization_percent, 98U);  // 31 GB/s are enough
}

// Mission, M43: 83 now, 85 max operating, 93 slowdown, 96 shutdown.
TEST(Heat, HotIsNotThrottled) {
  Engine engine = Story("thermal");
  const DeviceState& warm = At(engine, minutes(15), 1);
  EXPECT_NEAR(warm.temperature_c, 83, 0.5);
  EXPECT_EQ(warm.model->temperature_max_operating_c, 85);
  EXPECT_EQ(warm.sm_clock_mhz, 1590);
  EXPECT_EQ(warm.software_thermal_seconds, 0);
}

TEST(Heat, ThrottlesOnAHotInletAndRecovers) {
  Engine engine = Story("thermal");
  engine.AdvanceTo(seconds(119));
  EXPECT_EQ(engine.devices()[0].software_thermal_seconds, 0);
  EXPECT_LT(engine.devices()[0].temperature_c, 75);
  engine.AdvanceTo(minutes(9));
  const DeviceState& hot = engine.devices()[0];
  EXPECT_NEAR(hot.temperature_c, 84, 1.5);
  EXPECT_LT(hot.sm_clock_mhz, 1400);
  EXPECT_EQ(hot.clock_event_reasons, kReasonSoftwareThermal);
  EXPECT_GT(hot.software_thermal_seconds, 350);
  EXPECT_EQ(hot.hardware_thermal_seconds, 0);
  const DeviceState& worse = engine.devices()[2];
  EXPECT_GE(worse.temperature_c, 89);
  EXPECT_LT(worse.temperature_c, 95);
  EXPECT_EQ(worse.clock_event_reasons,
            kReasonSoftwareThermal | kReasonHardwareSlowdown | kReasonHardwareThermal);
  EXPECT_GT(worse.hardware_thermal_seconds, 100);
  engine.AdvanceTo(minutes(14));
  EXPECT_EQ(engine.devices()[0].clock_event_reasons, 0U);
  EXPECT_EQ(engine.devices()[0].sm_clock_mhz, 1590);
  EXPECT_LT(engine.devices()[0].temperature_c, 75);
}

TEST(Heat, DeadFanHeatsACardUp) {
  Engine engine = Make(
      "noise: 0\ngpus: [{model: rtx-4090, count: 2}]\n"
      "processes: [{pid: 1, gpus: all, activity: {sm_active: 90%, fp32: 60%, dram: 40%}}]\n"
      "faults: [{kind: fan_dead, at: 1m, gpu: 1}]");
  engine.AdvanceTo(seconds(59));
  EXPECT_GT(engine.devices()[1].fan_percent, 40);
  engine.AdvanceTo(minutes(6));
  EXPECT_EQ(engine.devices()[1].fan_percent, 0);
  EXPECT_NEAR(engine.devices()[1].temperature_c, 89, 2);
  EXPECT_NE(engine.devices()[1].clock_event_reasons & kReasonSoftwareThermal, 0U);
  EXPECT_LT(engine.devices()[0].temperature_c, 70);
}

TEST(Heat, ShutsACardDown) {
  Engine engine = Make(
      "noise: 0\ngpus: [{model: t4}]\n"
      "processes: [{pid: 1, gpus: all, activity: {sm_active: 90%, fp32: 60%}}]\n"
      "faults: [{kind: hot_inlet, at: 10s, for: 5m, value: 90 C}]");
  const DeviceState& state = At(engine, minutes(20));
  EXPECT_TRUE(state.lost);
  EXPECT_EQ(state.recovery_action, 2U);
}

// Mission, M23: 4234 + 2896 + 1104 = 8234 MiB of 15360, 78 %.
TEST(Sharing, OfThreeProcessesAddsUp) {
  Engine engine = Story("t4-three-processes");
  const DeviceState& state = At(engine, seconds(30));
  EXPECT_EQ(state.memory_used_bytes, 8234 * kMiB);
  EXPECT_EQ(state.utilization_percent, 78U);
  ASSERT_EQ(state.processes.size(), 3U);
  EXPECT_EQ(state.processes[0].name, "training-job-1");
  EXPECT_EQ(state.processes[0].memory_bytes, 4234 * kMiB);
  EXPECT_EQ(state.processes[2].memory_bytes, 1104 * kMiB);
  std::uint32_t sum = 0;
  for (auto sample = state.process_samples.end() - 3; sample != state.process_samples.end();
       ++sample) {
    EXPECT_EQ(sample->at, seconds(30));
    sum += sample->sm_percent;
  }
  EXPECT_NEAR(sum, 78, 1);
}

TEST(Sharing, TakesTurnsWhenAllWantTheGpu) {
  Engine engine = Make(
      "noise: 0\ngpus: [{model: h100-sxm5-80gb}]\n"
      "processes: [{pid: 1, gpus: 0, count: 4, activity: {sm_active: 80%, dram: 40%}}]");
  const DeviceState& state = At(engine, seconds(10));
  EXPECT_EQ(state.utilization_percent, 100U);
  EXPECT_NEAR(state.totals.sm_active / state.totals.seconds, 0.8, 1e-9);
  EXPECT_NEAR(state.totals.dram / state.totals.seconds, 0.4, 1e-9);
  EXPECT_EQ(state.process_samples.back().sm_percent, 25U);
}

TEST(Activity, IsExactOverPhases) {
  Engine engine = Make(
      "gpus: [{model: h100-sxm5-80gb}]\n"
      "processes:\n"
      "  - pid: 1\n"
      "    gpus: 0\n"
      "    start: 1234ms\n"
      "    repeat: true\n"
      "    phases: [{for: 70ms, activity: {sm_active: 50%, pcie_receive: 1 GB/s}}, {for: 30ms}]");
  const DeviceState& state = At(engine, seconds(11));
  // 9.766 s of life: 97 cycles, and 66 ms of the next.
  EXPECT_NEAR(state.totals.sm_active, (97 * 0.070 + 0.066) * 0.5, 1e-9);
  EXPECT_NEAR(state.totals.pcie_receive_bytes, (97 * 0.070 + 0.066) * 1e9, 1);
}

TEST(Activity, LowerClocksStretchWork) {
  Engine engine = Make(
      "noise: 0\ngpus: [{model: h100-sxm5-80gb}]\n"
      "processes: [{pid: 1, gpus: 0, activity: {kernel: 4ms, launches: 100/s, regular: true,\n"
      "             sm_active: 40%, pcie_receive: 1 GB/s}}]\n"
      "faults: [{kind: clocks_locked, value: 990 MHz}]");
  const DeviceState& state = At(engine, seconds(10));
  EXPECT_NEAR(state.totals.busy / 10, 0.8, 1e-9);  // half the clock: twice as long
  EXPECT_NEAR(state.totals.sm_active / 10, 0.8, 1e-9);
  EXPECT_NEAR(state.totals.pcie_receive_bytes / 10, 1e9, 1);
}

TEST(Nvlink, TrafficIsSpreadOverTheLinksThatAreUp) {
  Engine engine = Make(
      "gpus: [{model: a100-sxm4-80gb}]\n"
      "processes: [{pid: 1, gpus: 0, activity: {sm_active: 50%, nvlink_transmit: 110 GB/s}}]\n"
      "faults:\n"
      "  - {kind: nvlink_down, gpu: 0, link: 3}\n"
      "  - {kind: nvlink_errors, gpu: 0, link: 5, value: 10/s, counter: replay}");
  const DeviceState& state = At(engine, seconds(10));
  ASSERT_EQ(state.links.size(), 12U);
  EXPECT_FALSE(state.links[3].active);
  EXPECT_EQ(state.links[3].transmit_kib, 0U);
  EXPECT_EQ(state.links[0].transmit_kib, 97656250U);  // 100e9 bytes
  EXPECT_EQ(state.links[0].receive_kib, 0U);
  EXPECT_NEAR(state.links[5].replay_errors, 100, 1e-6);
  EXPECT_EQ(state.links[5].crc_errors, 0);
  EXPECT_NEAR(state.totals.nvlink_transmit_bytes, 1.1e12, 1e3);
}

TEST(Stories, RunForTenMinutes) {
  for (const auto& entry :
       std::filesystem::directory_iterator(GPUASSAY_SOURCE_DIR "/sim/scenarios")) {
    SCOPED_TRACE(entry.path().string());
    Engine engine = Story(entry.path().stem().string());
    for (int minute = 0; minute <= 10; ++minute) {
      engine.AdvanceTo(minutes(minute));
      for (const DeviceState& state : engine.devices()) {
        EXPECT_TRUE(state.garbage || state.utilization_percent <= 100);
        EXPECT_GE(state.power_w, state.model->power_idle_w * 0.9);
        EXPECT_LE(state.power_w, state.power_limit_w * 1.05);
        EXPECT_LE(state.memory_used_bytes,
                  state.model->memory_bytes - state.model->memory_reserved_bytes);
        EXPECT_TRUE(std::isfinite(state.temperature_c));
        EXPECT_LT(state.temperature_c, state.model->temperature_shutdown_c);
        EXPECT_LE(state.totals.sm_active, state.totals.seconds + 1e-6);
        EXPECT_LE(state.totals.busy, state.totals.seconds + 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace gpuassay::sim
