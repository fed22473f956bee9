// Each thing that can be wrong in a scenario, with the literal line that people get.
#include <gtest/gtest.h>

#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml_tree.h"

namespace gpuassay::sim {
namespace {

std::string ErrorOf(std::string_view yaml) {
  const Result<Scenario> scenario = ParseScenario(yaml, "s.yaml");
  if (scenario) {
    return "no error";
  }
  EXPECT_EQ(scenario.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(scenario.error().what.find('\n'), std::string::npos);
  return scenario.error().what;
}

// The text after two H100; column and line of the first character are 1 and 2.
std::string ErrorAfterGpus(const std::string& yaml) {
  return ErrorOf("gpus: [{model: h100-sxm5-80gb, count: 2}]\n" + yaml);
}
std::string ErrorInProcess(const std::string& fields) {
  return ErrorAfterGpus("processes: [{pid: 7, gpus: 0, " + fields + "}]");
}
std::string ErrorInActivity(const std::string& fields) {
  return ErrorInProcess("activity: {" + fields + "}");
}
std::string ErrorInFault(const std::string& fields) {
  return ErrorAfterGpus("faults: [{" + fields + "}]");
}

TEST(ScenarioErrors, OfTheYamlItself) {
  EXPECT_EQ(ErrorOf(""), "s.yaml:1:1: a scenario must be a mapping, not nothing");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4}"),
            "s.yaml:1:8: a key must be a word; is a bracket or a brace left open?");
  EXPECT_EQ(ErrorOf("a: 1\nb: *x\n"), "s.yaml:2:4: not YAML: the referenced anchor is not defined");
  EXPECT_EQ(
      ErrorOf("gpus: &x [1]\nb: *x\n"),
      "s.yaml:1:7: anchors are not supported here; name an activity under `profiles` instead");
  EXPECT_EQ(ErrorOf("gpus: !!binary abc"),
            "s.yaml:1:7: tags are not supported here; write the value alone");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4}]\ngpus: []"),
            "s.yaml:2:1: key `gpus` stands here twice; keep one");
  EXPECT_EQ(ErrorOf("? [a]\n: b"),
            "s.yaml:1:3: a key must be a word; is a bracket or a brace left open?");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4}]\n---\na: b"),
            "s.yaml:1:1: a second document follows; keep one per file");
  EXPECT_EQ(ErrorOf(std::string_view("gpus: \0", 7)),
            "s.yaml:1:7: byte 0x00 is not text; write UTF-8");
  EXPECT_EQ(ErrorOf("\xFF\xFEg"), "s.yaml:1:1: byte 0xFF is not text; write UTF-8");
  EXPECT_EQ(ErrorOf("- a"), "s.yaml:1:1: a scenario must be a mapping, not a list");
}

TEST(ScenarioErrors, OfSize) {
  EXPECT_EQ(ErrorOf("gpus: " + std::string(16, '[') + std::string(16, ']')),
            "s.yaml:1:22: nested deeper than 16 levels");
  EXPECT_EQ(ErrorOf("gpus: " + std::string(400'000, '[')),
            "s.yaml:1:8: a key must be a word; is a bracket or a brace left open?");
  EXPECT_EQ(ErrorOf(std::string(kYamlBytesMax + 1, ' ')),
            "s.yaml:1:1: larger than 1024 KiB; use `count` and `repeat`");
  std::string many = "gpus: [";
  for (std::size_t i = 0; i <= kYamlNodesMax; ++i) {
    many += "1,";
  }
  EXPECT_EQ(ErrorOf(many + "]"),
            "s.yaml:1:400002: more than 200000 values; use `count` and `repeat`");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, count: 64}, {model: t4}]"),
            "s.yaml:1:32: more than 64 GPUs");
  EXPECT_EQ(ErrorInProcess("count: 1024}, {pid: 4000, gpus: 0"),
            "s.yaml:2:45: more than 1024 processes, or PIDs above 4194304");
}

// Would take minutes if the sum were taken anew at each point.
TEST(ScenarioErrors, OfMemoryAreFoundInOneSweep) {
  std::string yaml = "gpus: [{model: t4, count: 64}]\nprocesses:\n";
  for (int i = 1; i <= 1024; ++i) {
    yaml += "  - {pid: " + std::to_string(i) + ", gpus: all, memory: [";
    for (int j = 0; j < 16; ++j) {
      yaml += "{at: " + std::to_string(j + 1) + "s, size: " + std::to_string(j % 14) + " MiB},";
    }
    yaml += "]}\n";
  }
  EXPECT_EQ(ErrorOf(yaml), "no error");
}

TEST(ScenarioErrors, OfCounts) {
  std::string list;
  for (int i = 0; i < 257; ++i) {
    list += "{at: " + std::to_string(i + 1) + "s, size: 1 MiB},";
  }
  EXPECT_EQ(ErrorInProcess("memory: [" + list + "]"),
            "s.yaml:2:39: `memory` must be a size such as 62 GiB, or a list of 1 to 256 points "
            "such as {at: 30s, size: 62 GiB}");
  list = "";
  for (int i = 0; i < 257; ++i) {
    list += "{for: 1s},";
  }
  EXPECT_EQ(ErrorInProcess("phases: [" + list + "]"),
            "s.yaml:2:39: `phases` must be a list of 1 to 256 phases");
  list = "";
  for (int i = 0; i < 1025; ++i) {
    list += "{kind: garbage},";
  }
  EXPECT_EQ(ErrorAfterGpus("faults: [" + list + "]"), "s.yaml:2:16394: more than 1024 faults");
}

TEST(ScenarioErrors, OfTheHead) {
  EXPECT_EQ(ErrorOf("gpu: [{model: t4}]"),
            "s.yaml:1:1: a scenario has no `gpu`; did you mean `gpus`?");
  EXPECT_EQ(ErrorOf("zzzzzzzzzz: 1"),
            "s.yaml:1:1: a scenario has no `zzzzzzzzzz`; it can have name, description, seed, "
            "noise, start, length, driver, hostname, profiles, gpus, node, kubernetes, pods, "
            "containers, jobs, processes, faults");
  EXPECT_EQ(ErrorOf("name: x"), "s.yaml:1:1: a scenario needs `gpus`");
  EXPECT_EQ(ErrorAfterGpus("name: [1]"), "s.yaml:2:7: `name` must be a text, not a list");
  EXPECT_EQ(ErrorAfterGpus("seed: -1"),
            "s.yaml:2:7: `seed` must be a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(ErrorAfterGpus("noise: 150%"), "s.yaml:2:8: `noise` is 1.5, but must be from 0 to 1");
  EXPECT_EQ(ErrorAfterGpus("start: yesterday"),
            "s.yaml:2:8: `start` must look like 2026-01-05T09:00:00Z");
  EXPECT_EQ(ErrorAfterGpus("start: 2026-02-30T00:00:00Z"),
            "s.yaml:2:8: `start` must look like 2026-01-05T09:00:00Z");
  EXPECT_EQ(ErrorAfterGpus("length: 0s"), "s.yaml:2:9: `length` must be longer than zero");
  EXPECT_EQ(ErrorAfterGpus("length: soon"),
            "s.yaml:2:9: `length` must be a duration such as 30s, 5m or 250ms, not `soon`");
  EXPECT_EQ(ErrorAfterGpus("hostname: a b"),
            "s.yaml:2:11: `hostname` can have letters, digits, - and .");
  EXPECT_EQ(
      ErrorAfterGpus("driver: latest"),
      "s.yaml:2:9: the driver's version must look like 570.86.15, with a branch from 340 to 999");
  EXPECT_EQ(
      ErrorAfterGpus("driver: 12.0"),
      "s.yaml:2:9: the driver's version must look like 570.86.15, with a branch from 340 to 999");
  EXPECT_EQ(ErrorAfterGpus("driver: {version: 570.1, cuda: new}"),
            "s.yaml:2:32: `cuda` must look like 12.8");
}

TEST(ScenarioErrors, OfGpus) {
  EXPECT_EQ(ErrorOf("gpus: []"),
            "s.yaml:1:7: `gpus` must be a list such as [{model: h100-sxm5-80gb, count: 8}]");
  EXPECT_EQ(ErrorOf("gpus: [{count: 2}]"), "s.yaml:1:8: a GPU needs `model`");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5}]"),
            "s.yaml:1:16: `model` cannot be `h100-sxm5`; did you mean `h100-sxm5-80gb`?");
  EXPECT_EQ(ErrorOf("gpus: [{model: mi300x}]"),
            "s.yaml:1:16: `model` cannot be `mi300x`; it can be tesla-k80, gtx-1080-ti, rtx-4090, "
            "t4, v100-sxm2-32gb, v100-sxm2-16gb, a100-sxm4-40gb, a100-sxm4-80gb, h100-sxm5-80gb, "
            "h200, l40s, b200, gb200");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, modle: t4}]"),
            "s.yaml:1:20: a GPU has no `modle`; did you mean `model`?");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, count: 0}]"),
            "s.yaml:1:27: `count` is 0, but must be from 1 to 64");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, count: 2, uuid: GPU-1}]"),
            "s.yaml:1:36: `uuid` cannot be the same for several GPUs; leave `count`");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, uuid: GPU-1}, {model: t4, uuid: GPU-1}]"),
            "s.yaml:1:34: two GPUs have the uuid GPU-1");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, uuid: T4-1}]"), "s.yaml:1:26: `uuid` must start with GPU-");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, pci_bus_id: '0000:1b:00.0'}]"),
            "s.yaml:1:32: `pci_bus_id` must look like 00000000:1B:00.0, with capital letters");
  EXPECT_EQ(ErrorOf("gpus: [{model: rtx-4090, ecc: true}]"), "s.yaml:1:31: rtx-4090 has no ECC");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, persistence: maybe}]"),
            "s.yaml:1:33: `persistence` must be true or false, not `maybe`");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, power_limit: 75 W}]"),
            "s.yaml:1:33: `power_limit` is 75, but must be from 60 to 70");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, inlet: 300 K}]"),
            "s.yaml:1:27: `inlet` must look like 45 or 45 C, not `300 K`");
  EXPECT_EQ(
      ErrorOf("driver: 470.256.02\ngpus: [{model: h100-sxm5-80gb}]"),
      "s.yaml:2:16: driver 470.256.02 does not know h100-sxm5-80gb yet; it needs 525 or newer");
  EXPECT_EQ(ErrorOf("gpus: [{model: tesla-k80}]"),
            "s.yaml:1:16: driver 570.86.15 no longer knows tesla-k80; the last branch is 470");
}

TEST(ScenarioErrors, OfMigLayouts) {
  EXPECT_EQ(ErrorOf("gpus: [{model: t4, mig: []}]"), "s.yaml:1:25: t4 cannot do MIG");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb, mig: on}]"),
            "s.yaml:1:37: `mig` must be a list of profiles, such as [1g.10gb, 3g.40gb]; [] is MIG "
            "on with no instances");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb, mig: [1g.5gb]}]"),
            "s.yaml:1:38: `mig` cannot be `1g.5gb`; did you mean `1g.10gb`?");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb, mig: [3g.40gb, 3g.40gb, 1g.10gb]}]"),
            "s.yaml:1:37: these MIG instances do not fit together on h100-sxm5-80gb; it has 7 "
            "compute and 8 memory slices");
}

TEST(ScenarioErrors, OfProcesses) {
  EXPECT_EQ(ErrorAfterGpus("processes: {}"),
            "s.yaml:2:12: `processes` must be a list such as [{pid: 4100, gpus: all}]");
  EXPECT_EQ(ErrorAfterGpus("processes: [{gpus: 0}]"), "s.yaml:2:13: a process needs `pid`");
  EXPECT_EQ(ErrorAfterGpus("processes: [{pid: 1}]"), "s.yaml:2:13: a process needs `gpus`");
  EXPECT_EQ(ErrorAfterGpus("processes: [{pid: 0, gpus: 0}]"),
            "s.yaml:2:19: `pid` is 0, but must be from 1 to 4194304");
  EXPECT_EQ(ErrorAfterGpus("processes: [{pid: 1, gpus: 2}]"),
            "s.yaml:2:28: there is no GPU 2; the last is 1");
  EXPECT_EQ(ErrorAfterGpus("processes: [{pid: 1, gpus: []}]"),
            "s.yaml:2:28: `gpus` names no GPU; write all, 0, 0-3 or [0, 2]");
  EXPECT_EQ(ErrorAfterGpus("processes: [{pid: 1, gpus: 1-0}]"),
            "s.yaml:2:28: `gpus` must be all, 0, 0-3 or [0, 2], not `1-0`");
  EXPECT_EQ(ErrorAfterGpus("processes: [{pid: 1, gpus: first}]"),
            "s.yaml:2:28: `gpus` must be all, 0, 0-3 or [0, 2], not `first`");
  EXPECT_EQ(ErrorInProcess("gpu: 1"), "s.yaml:2:31: a process has no `gpu`; did you mean `gpus`?");
  EXPECT_EQ(ErrorInProcess("type: cuda"),
            "s.yaml:2:37: `type` cannot be `cuda`; it can be compute, graphics, mps");
  EXPECT_EQ(ErrorInProcess("start: 5s, end: 5s"), "s.yaml:2:47: `end` must be later than `start`");
  EXPECT_EQ(ErrorInProcess("end: 5s, for: 5s"),
            "s.yaml:2:45: a process has either `end` or `for`, not both");
  EXPECT_EQ(ErrorInProcess("mig: 0"), "s.yaml:2:36: there is no MIG device 0: there are none");
  EXPECT_EQ(ErrorInProcess("memory: 62 Gigabyte"),
            "s.yaml:2:39: `memory` must look like 62 GiB or 4234 MiB, not `62 Gigabyte`");
  EXPECT_EQ(ErrorInProcess("memory: [{at: 5s, size: 1 GiB}, {at: 5s, size: 2 GiB}]"),
            "s.yaml:2:63: memory points must be in order of time");
  EXPECT_EQ(ErrorInProcess("memory: 80 GiB"),
            "s.yaml:2:13: at 0s the processes on GPU 0 hold 81920 MiB together, but it has 81080 "
            "MiB for them");
  // 30 GiB to 50 GiB within 20 s, and another 40 GiB that starts when they are at 40.
  EXPECT_EQ(ErrorInProcess("memory: [{at: 0s, size: 30 GiB}, {at: 20s, size: 50 GiB}], end: 25s},"
                           "{pid: 8, gpus: 0, start: 10s, memory: 40 GiB"),
            "s.yaml:2:100: at 10s the processes on GPU 0 hold 81920 MiB together, but it has 81080 "
            "MiB for them");
  EXPECT_EQ(ErrorInProcess("memory: [{at: 0s, size: 30 GiB}, {at: 20s, size: 50 GiB}], end: 10s},"
                           "{pid: 8, gpus: 0, start: 10s, memory: 40 GiB"),
            "no error");
  EXPECT_EQ(ErrorInProcess("memory: 40 GiB, end: 10s},"
                           "{pid: 8, gpus: 0, memory: [{at: 0s, size: 0}, {at: 9s, size: 45 GiB}]"),
            "s.yaml:2:57: at 9s the processes on GPU 0 hold 87040 MiB together, but it has 81080 "
            "MiB for them");
  EXPECT_EQ(
      ErrorInProcess("memory: 40 GiB, end: 10s},"
                     "{pid: 8, gpus: 0, memory: [{at: 0s, size: 0}, {at: 11s, size: 45 GiB}]"),
      "s.yaml:2:13: at 10s the processes on GPU 0 hold 82851 MiB together, but it has 81080 MiB "
      "for them");
  EXPECT_EQ(ErrorInProcess("repeat: true"), "s.yaml:2:39: `repeat` needs `phases`");
  EXPECT_EQ(ErrorInProcess("name: a}, {pid: 7, gpus: 0, name: a"),
            "s.yaml:2:41: PID 7 is already taken at that time; give another, or the same `name` "
            "and other `gpus`");
  EXPECT_EQ(ErrorInProcess("name: a}, {pid: 7, gpus: 1, name: b"),
            "s.yaml:2:41: PID 7 is already taken at that time; give another, or the same `name` "
            "and other `gpus`");
  EXPECT_EQ(ErrorInProcess("name: a}, {pid: 7, gpus: 1, name: a"), "no error");
  EXPECT_EQ(ErrorInProcess("end: 5s}, {pid: 7, gpus: 0, start: 5s"), "no error");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb, mig: [1g.10gb]}]\n"
                    "processes: [{pid: 1, gpus: 0}]"),
            "s.yaml:2:13: GPU 0 is in MIG mode; say which device with `mig`");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb, mig: [1g.10gb, 1g.10gb]}]\n"
                    "processes: [{pid: 1, gpus: 0, mig: all}]"),
            "s.yaml:2:36: one process runs on one MIG device; set `spread: true` for one process "
            "on each");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb, mig: [1g.10gb]}]\n"
                    "processes: [{pid: 1, gpus: 0, mig: 0, memory: 12 GiB}]"),
            "s.yaml:2:13: at 0s the processes on MIG device 0 of GPU 0 hold 12288 MiB together, "
            "but it has 9984 MiB for them");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb}]\nprocesses: [{pid: 1, gpus: 0, mig: 0}]"),
            "s.yaml:2:36: there is no MIG device 0: there are none");
}

TEST(ScenarioErrors, OfActivities) {
  EXPECT_EQ(ErrorInProcess("activity: train"),
            "s.yaml:2:41: `activity` must be a mapping: there are no `profiles` to name");
  EXPECT_EQ(ErrorAfterGpus("profiles: {train: {sm_active: 1}}\n"
                           "processes: [{pid: 7, gpus: 0, activity: trian}]"),
            "s.yaml:3:41: `activity` cannot be `trian`; did you mean `train`?");
  EXPECT_EQ(ErrorAfterGpus("profiles: {train: fast}"),
            "s.yaml:2:19: a profile must be a mapping, such as {sm_active: 90%, tensor: 60%}");
  EXPECT_EQ(ErrorInActivity("sm_activ: 50%"),
            "s.yaml:2:42: an activity has no `sm_activ`; did you mean `sm_active`?");
  EXPECT_EQ(ErrorInActivity("sm_active: 50"),
            "s.yaml:2:53: `sm_active` is 50, but must be from 0 to 1");
  EXPECT_EQ(ErrorInActivity("sm_active: much"),
            "s.yaml:2:53: `sm_active` must look like 96% or 0.96, not `much`");
  EXPECT_EQ(ErrorInActivity("tensor: 50%"),
            "s.yaml:2:50: `tensor` is 0.5, but cannot be above `sm_active`, which is 0");
  EXPECT_EQ(ErrorInActivity("kernel: 1us"),
            "s.yaml:2:41: `kernel` and `launches` only mean something together");
  EXPECT_EQ(ErrorInActivity("kernel: 1us, launches: 1000/s, sm_active: 50%"),
            "s.yaml:2:84: `sm_active` is 0.5, but a kernel runs only 0.001 of the time (kernel x "
            "launches)");
  EXPECT_EQ(ErrorInActivity("kernel: 1, launches: 1/s"),
            "s.yaml:2:50: `kernel` must look like 1us, 350 ns or 10ms, not `1`");
  EXPECT_EQ(ErrorInActivity("nvlink_transmit: 5 GB"),
            "s.yaml:2:59: `nvlink_transmit` must look like 20 GB/s, not `5 GB`");
  EXPECT_EQ(ErrorInActivity("kernel: 1us, launches: 1000/day"),
            "s.yaml:2:65: `launches` must look like 1000/s or 6/min, not `1000/day`");
}

TEST(ScenarioErrors, OfPhases) {
  EXPECT_EQ(ErrorInProcess("phases: []"),
            "s.yaml:2:39: `phases` must be a list of 1 to 256 phases");
  EXPECT_EQ(ErrorInProcess("phases: [{for: 0s}]"), "s.yaml:2:46: `for` must be longer than zero");
  EXPECT_EQ(ErrorInProcess("phases: [{}, {for: 1s}]"),
            "s.yaml:2:40: a phase before the last needs `for`");
  EXPECT_EQ(ErrorInProcess("repeat: true, phases: [{}]"),
            "s.yaml:2:54: a phase that repeats needs `for`");
  EXPECT_EQ(ErrorInProcess("repeat: true, phases: [{for: 1ms}]"),
            "s.yaml:2:53: phases that repeat must take 10ms or more together");
  EXPECT_EQ(ErrorInProcess("activity: {sm_active: 1}, phases: [{for: 1s}]"),
            "s.yaml:2:65: a process has either `activity` or `phases`, not both");
  EXPECT_EQ(ErrorInProcess("phases: [{for: 1s, kernels: []}]"),
            "s.yaml:2:59: `kernels` must be a list of 1 to 10000 kernels, such as [{at: 10ms, "
            "length: 50us}]");
  EXPECT_EQ(ErrorInProcess("phases: [{for: 1s, kernels: [{at: 1s, length: 1us}]}]"),
            "s.yaml:2:60: the kernel runs beyond the end of its phase");
  EXPECT_EQ(ErrorInProcess("phases: [{kernels: [{at: 1s, length: 2us}, {at: 1s, length: 1us}]}]"),
            "s.yaml:2:74: kernels must be in order of time and must not overlap");
  EXPECT_EQ(ErrorInProcess("phases: [{kernels: [{at: 1s}]}]"),
            "s.yaml:2:51: a kernel needs `length`");
  EXPECT_EQ(ErrorInProcess("phases: [{activity: {}, kernels: [{at: 1s, length: 1us}]}]"),
            "s.yaml:2:64: a phase has either `kernels` or an `activity`, not both");
}

TEST(ScenarioErrors, OfFaults) {
  EXPECT_EQ(ErrorAfterGpus("faults: none"),
            "s.yaml:2:9: `faults` must be a list such as [{kind: hot_inlet, at: 60s, value: 45}]");
  EXPECT_EQ(ErrorInFault("at: 5s"), "s.yaml:2:10: a fault needs `kind`");
  EXPECT_EQ(ErrorInFault("kind: hot_inelt"),
            "s.yaml:2:17: `kind` cannot be `hot_inelt`; did you mean `hot_inlet`?");
  EXPECT_EQ(ErrorInFault("kind: hot_inlet"), "s.yaml:2:10: a fault needs `value`");
  EXPECT_EQ(ErrorInFault("kind: hot_inlet, value: 200"),
            "s.yaml:2:35: `value` is 200, but must be from 0 to 90");
  EXPECT_EQ(ErrorInFault("kind: gpu_lost, value: 1"), "s.yaml:2:34: gpu_lost takes no `value`");
  EXPECT_EQ(ErrorInFault("kind: gpu_lost, gpu: 8"),
            "s.yaml:2:32: there is no GPU 8; the last is 1");
  EXPECT_EQ(ErrorInFault("kind: gpu_lost, gpu: 0, gpus: 1"),
            "s.yaml:2:41: `gpu` and `gpus` mean the same; keep one");
  EXPECT_EQ(ErrorInFault("kind: gpu_lost, for: 0s"), "s.yaml:2:32: `for` must be longer than zero");
  EXPECT_EQ(ErrorInFault("kind: xid, value: 1000"),
            "s.yaml:2:29: `value` is 1000, but must be from 1 to 999");
  EXPECT_EQ(ErrorInFault("kind: xid, value: 31, for: 5s"), "s.yaml:2:38: xid takes no `for`");
  EXPECT_EQ(ErrorInFault("kind: fan_dead"),
            "s.yaml:2:10: fan_dead is not possible on GPU 0: h100-sxm5-80gb has no fan of its own; "
            "use hot_inlet");
  EXPECT_EQ(ErrorInFault("kind: power_cap, value: 100 W"),
            "s.yaml:2:10: power_cap is not possible on GPU 0: h100-sxm5-80gb takes 200 to 700 W");
  EXPECT_EQ(
      ErrorInFault("kind: clocks_locked, value: 5 GHz"),
      "s.yaml:2:10: clocks_locked is not possible on GPU 0: h100-sxm5-80gb takes 345 to 1980 MHz");
  EXPECT_EQ(ErrorInFault("kind: pcie_generation, value: 6"),
            "s.yaml:2:10: pcie_generation is not possible on GPU 0: h100-sxm5-80gb takes 1 to 5");
  EXPECT_EQ(ErrorInFault("kind: pcie_width, value: 3"),
            "s.yaml:2:10: pcie_width is not possible on GPU 0: lanes are 1, 2, 4, 8 or 16");
  EXPECT_EQ(ErrorInFault("kind: nvlink_down, link: 18"),
            "s.yaml:2:36: `link` is 18, but must be from 0 to 17");
  EXPECT_EQ(ErrorInFault("kind: nvlink_errors, value: 1/s, counter: crcs"),
            "s.yaml:2:53: `counter` cannot be `crcs`; did you mean `crc`?");
  EXPECT_EQ(ErrorInFault("kind: mig_reconfigure, layout: []"),
            "s.yaml:2:10: mig_reconfigure is not possible on GPU 0: the GPU is not in MIG mode; "
            "give it `mig` in `gpus`");
  EXPECT_EQ(ErrorInFault("kind: version_mismatch, gpu: 0"),
            "s.yaml:2:40: version_mismatch takes no `gpu`");
  EXPECT_EQ(ErrorInFault("kind: permission_denied, functions: [cudaMalloc]"),
            "s.yaml:2:48: a function's name starts with nvml");
  EXPECT_EQ(ErrorOf("gpus: [{model: rtx-4090}]\nfaults: [{kind: nvlink_down}]"),
            "s.yaml:2:10: nvlink_down is not possible on GPU 0: rtx-4090 has no NVLink");
  EXPECT_EQ(
      ErrorOf("gpus: [{model: rtx-4090}]\nfaults: [{kind: ecc_corrected, value: 1/s}]"),
      "s.yaml:2:10: ecc_corrected is not possible on GPU 0: rtx-4090 has no ECC, or it is off");
  EXPECT_EQ(ErrorOf("gpus: [{model: t4}]\nfaults: [{kind: row_remap_pending}]"),
            "s.yaml:2:10: row_remap_pending is not possible on GPU 0: t4 has no row remapping");
  EXPECT_EQ(ErrorOf("gpus: [{model: h100-sxm5-80gb, mig: []}]\n"
                    "faults: [{kind: mig_reconfigure}]"),
            "s.yaml:2:10: a fault needs `layout`");
}

}  // namespace
}  // namespace gpuassay::sim
