// The files of a fake root, byte for byte, and what appears in it and goes with time.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/root_fs.h"
#include "sim/world/test_world.h"

namespace gpuassay::sim {
namespace {

using std::chrono::seconds;

constexpr std::string_view kUid = "uid: 0a1b2c3d-4e5f-6789-abcd-ef0123456789";
constexpr std::string_view kId =
    "id: aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999";

std::string PodStory(std::string_view node) {
  return fmt::format(R"(
start: 2026-01-05T00:00:00Z
gpus: [{{model: t4, count: 2, }}]
node: {{{}, users: {{alice: 1001}}}}
pods:
  - {{name: training-job-1, namespace: ml, {}, qos: burstable, {}, devices: [{{gpu: 1}}]}}
processes:
  - {{pid: 27341, name: /usr/bin/python3 train.py --epochs 3, gpus: 0-1, start: 10s, end: 50s,
     owner: {{pod: ml/training-job-1}}}}
)",
                     node, kUid, kId);
}

TEST(Root, OfAPodOnCgroupV1IsWhatTheKernelWrites) {
  WorldAt at(PodStory("cgroup: v1, cgroup_driver: cgroupfs"), seconds(20));
  EXPECT_EQ(at.Read("/proc/27341/stat"),
            "27341 (python3) R 1 27341 27341 0 -1 4194560 1204 0 0 0 512 128 0 0 20 0 1 0 8641000 "
            "24159191040 524288 18446744073709551615 4198400 4763361 140723412344560 0 0 0 0 "
            "16781312 0 0 0 0 17 1 0 0 0 0 0 4937392 4960944 893165568 140723412345001 "
            "140723412345030 140723412345030 140723412348912 0\n");
  const std::string path =
      "/kubepods/burstable/pod0a1b2c3d-4e5f-6789-abcd-ef0123456789/"
      "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999\n";
  EXPECT_EQ(at.Read("/proc/27341/cgroup"),
            "12:hugetlb:" + path + "11:memory:" + path + "10:net_cls,net_prio:" + path +
                "9:perf_event:" + path + "8:cpu,cpuacct:" + path + "7:rdma:" + path +
                "6:devices:" + path + "5:pids:" + path + "4:cpuset:" + path + "3:freezer:" + path +
                "2:blkio:" + path + "1:name=systemd:" + path +
                "0::/system.slice/containerd.service\n");
  EXPECT_EQ(at.Read("/proc/27341/cmdline"),
            std::string("/usr/bin/python3\0train.py\0--epochs\0003\0", 37));
  EXPECT_EQ(at.Read("/proc/27341/comm"), "python3\n");
  EXPECT_EQ(at.Read("/proc/stat").find("\nbtime 1767484800\n") != std::string::npos, true);
  EXPECT_EQ(at.Read("/etc/passwd"),
            "root:x:0:0:root:/root:/bin/bash\nalice:x:1001:1001::/home/alice:/bin/bash\n");
}

TEST(Root, OfAPodOnCgroupV2WithSystemdIsWhatTheKernelWrites) {
  WorldAt at(PodStory("cgroup: v2, cgroup_driver: systemd"), seconds(20));
  EXPECT_EQ(at.Read("/proc/27341/cgroup"),
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
            "pod0a1b2c3d_4e5f_6789_abcd_ef0123456789.slice/cri-containerd-"
            "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999.scope\n");
  EXPECT_EQ(at.Read("/proc/27341/status"),
            "Name:\tpython3\nUmask:\t0022\nState:\tR (running)\nTgid:\t27341\nNgid:\t0\n"
            "Pid:\t27341\nPPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
            "FDSize:\t256\nGroups:\t0 \nNStgid:\t27341\t1\nNSpid:\t27341\t1\nNSpgid:\t27341\t1\n"
            "NSsid:\t27341\t1\nVmPeak:\t23592960 kB\nVmSize:\t23592960 kB\nVmLck:\t       0 kB\n"
            "VmPin:\t       0 kB\nVmHWM:\t 2097152 kB\nVmRSS:\t 2097152 kB\nRssAnon:\t 1572864 kB\n"
            "RssFile:\t  524288 kB\nRssShmem:\t       0 kB\nVmData:\t 8388608 kB\n"
            "VmStk:\t     132 kB\nVmExe:\t     552 kB\nVmLib:\t  262144 kB\nVmPTE:\t    6144 kB\n"
            "VmSwap:\t       0 kB\nHugetlbPages:\t       0 kB\nCoreDumping:\t0\nTHP_enabled:\t1\n"
            "Threads:\t1\nSigQ:\t0/96369\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n"
            "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
            "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n"
            "voluntary_ctxt_switches:\t1024\nnonvoluntary_ctxt_switches:\t64\n");
  EXPECT_EQ(at.Links("/proc/27341/fd"),
            "/dev/null pipe:[41233] pipe:[41234] /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia0 "
            "/dev/nvidia1");
  EXPECT_EQ(at.Links("/proc/27341/task/27341/fd"), at.Links("/proc/27341/fd"));
  EXPECT_NE(at.Links("/proc/27341/ns"), "pid:[4026531836]");
  EXPECT_EQ(at.Links("/proc/1/ns"), "pid:[4026531836]");
}

}  // namespace
}  // namespace gpuassay::sim
