#include "attribution/node/cgroup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace gpuassay {
namespace {

constexpr std::string_view kId = "2ee58ae57e9ee6dfd1679e4ea678c498a3da2c9252a867b4c21d2c324fdf57ba";
constexpr std::string_view kInner =
    "fe40b3b1b2b86a91ccb5cb183731bb8141f2ab67096971d22c2838d6271cef18";

// All that was found, in one line; ids are written I (kId) and J (kInner).
std::string Text(const CgroupOwner& owner) {
  const auto short_id = [](const std::string& id) {
    return id == kId ? "I" : id == kInner ? "J" : id;
  };
  std::string text;
  if (owner.container) {
    text += fmt::format("container={}", short_id(owner.container->id));
    if (!owner.container->runtime.empty()) text += "/" + owner.container->runtime;
    EXPECT_EQ(owner.container->name, "");
  }
  if (!owner.pod_uid.empty()) text += " pod=" + owner.pod_uid;
  if (owner.qos) {
    constexpr std::array kNames = {"guaranteed", "burstable", "besteffort"};
    text += fmt::format(" qos={}", kNames[static_cast<std::size_t>(*owner.qos)]);
  }
  if (owner.slurm) text += fmt::format(" slurm={}.{}", owner.slurm->id, owner.slurm->step);
  if (owner.slurm_uid) text += fmt::format(" slurm_uid={}", *owner.slurm_uid);
  if (owner.pbs) text += " pbs=" + owner.pbs->id;
  if (!owner.systemd_unit.empty()) text += " unit=" + owner.systemd_unit;
  if (owner.login_uid) text += fmt::format(" login={}", *owner.login_uid);
  return text.starts_with(' ') ? text.substr(1) : text;
}

// A path with I and J for the two ids, as "{I}" and "{J}".
std::string Path(std::string_view pattern) {
  return fmt::format(fmt::runtime(pattern), fmt::arg("I", kId), fmt::arg("J", kInner));
}

struct Case {
  std::string_view path;
  std::string_view owner;
};

void ExpectOwners(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    EXPECT_EQ(Text(ParseCgroupPath(Path(each.path))), each.owner) << each.path;
  }
}

TEST(Cgroup, KubernetesWithTheDriverCgroupfs) {
  ExpectOwners({
      {"/kubepods/pod76062bea-43ab-5420-8266-a177ac76969d/{I}",
       "container=I pod=76062bea-43ab-5420-8266-a177ac76969d qos=guaranteed"},
      {"/kubepods/burstable/pod76062bea-43ab-5420-8266-a177ac76969d/{I}",
       "container=I pod=76062bea-43ab-5420-8266-a177ac76969d qos=burstable"},
      {"/kubepods/besteffort/pod76062BEA-43ab-5420-8266-a177ac76969d/crio-{I}",
       "container=I/cri-o pod=76062bea-43ab-5420-8266-a177ac76969d qos=besteffort"},
      {"/kubepods/besteffort/pod76062bea-43ab-5420-8266-a177ac76969d/crio-conmon-{I}",
       "pod=76062bea-43ab-5420-8266-a177ac76969d qos=besteffort"},
      {"/kubepods/burstable/pod76062bea-43ab-5420-8266-a177ac76969d",
       "pod=76062bea-43ab-5420-8266-a177ac76969d qos=burstable"},
      {"/kubepods/burstable/pod96bcf4807993447acea5630fa3aa4194/{I}",
       "container=I pod=96bcf4807993447acea5630fa3aa4194 qos=burstable"},
      {"/kubepods/burstable/podmy-own.uid/{I}", "container=I pod=my-own.uid qos=burstable"},
  });
}

TEST(Cgroup, KubernetesWithTheDriverSystemd) {
  ExpectOwners({
      {"/kubepods.slice/kubepods-pod76062bea_43ab_5420_8266_a177ac76969d.slice/"
       "cri-containerd-{I}.scope",
       "container=I/containerd pod=76062bea-43ab-5420-8266-a177ac76969d qos=guaranteed"},
      {"/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-pod76062bea_43ab_5420_8266_a177ac76969d.slice/crio-{I}.scope/container",
       "container=I/cri-o pod=76062bea-43ab-5420-8266-a177ac76969d qos=burstable"},
      {"/kubepods.slice/kubepods-besteffort.slice/"
       "kubepods-besteffort-pod76062bea_43ab_5420_8266_a177ac76969d.slice/docker-{I}.scope",
       "container=I/docker pod=76062bea-43ab-5420-8266-a177ac76969d qos=besteffort"},
      {"/kubepods.slice/kubepods-pod96bcf4807993447acea5630fa3aa4194.slice/{I}",
       "container=I pod=96bcf4807993447acea5630fa3aa4194 qos=guaranteed"},
  });
}

TEST(Cgroup, AMonitorBelongsToThePodAndIsNoContainer) {
  const CgroupOwner owner =
      ParseCgroupPath(Path("/kubepods.slice/kubepods-pod96bcf4807993447acea5630fa3aa4194.slice/"
                           "crio-conmon-{I}.scope"));
  EXPECT_FALSE(owner.container.has_value());
  EXPECT_EQ(owner.pod_uid, "96bcf4807993447acea5630fa3aa4194");
  EXPECT_EQ(owner.systemd_unit, Path("crio-conmon-{I}.scope"));
}

TEST(Cgroup, TheNameOfASliceThatBecameAFolder) {
  ExpectOwners({
      {"/system.slice/containerd.service/"
       "kubepods-burstable-pod76062bea_43ab_5420_8266_a177ac76969d.slice:cri-containerd:{I}",
       "container=I/containerd pod=76062bea-43ab-5420-8266-a177ac76969d qos=burstable"},
      {"/system.slice:docker:{I}", "container=I/docker"},
      {"/a:b:{I}", ""},
  });
}

TEST(Cgroup, TheInnermostContainerCountsAndThePodItIsIn) {
  ExpectOwners({
      {"/docker/{I}/kubelet/kubepods/burstable/pod76062bea-43ab-5420-8266-a177ac76969d/{J}",
       "container=J pod=76062bea-43ab-5420-8266-a177ac76969d qos=burstable"},
      {"/system.slice/docker-{I}.scope/kubelet.slice/kubelet-kubepods.slice/"
       "kubelet-kubepods-besteffort.slice/"
       "kubelet-kubepods-besteffort-pod76062bea_43ab_5420_8266_a177ac76969d.slice/"
       "cri-containerd-{J}.scope",
       "container=J/containerd pod=76062bea-43ab-5420-8266-a177ac76969d qos=besteffort"},
      {"/system.slice/docker-{I}.scope/kubelet.slice/kubelet-kubepods.slice/"
       "kubelet-kubepods-pod76062bea_43ab_5420_8266_a177ac76969d.slice",
       "pod=76062bea-43ab-5420-8266-a177ac76969d qos=guaranteed"},
      {"/docker/{I}/docker/{J}", "container=J/docker"},
      {"/docker/{I}/system.slice/containerd.service", "container=I/docker"},
      {"/kubepods/pod76062bea-43ab-5420-8266-a177ac76969d/{I}/docker/{J}",
       "container=J/docker pod=76062bea-43ab-5420-8266-a177ac76969d qos=guaranteed"},
  });
}

TEST(Cgroup, ContainersOutsideKubernetes) {
  ExpectOwners({
      {"/docker/{I}", "container=I/docker"},
      {"/system.slice/docker-{I}.scope", "container=I/docker"},
      {"/tenants/red/{I}", "container=I"},
      {"/tenants.slice/tenants-red.slice/docker-{I}.scope", "container=I/docker"},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{I}.scope",
       "container=I/docker login=1000"},
      {"/machine.slice/libpod-{I}.scope/container", "container=I/podman"},
      {"/libpod_parent/libpod-{I}", "container=I/podman"},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/run.service/libpod-payload-{I}",
       "container=I/podman login=1000"},
      {"/system.slice/nerdctl-{I}.scope", "container=I/containerd"},
      {"/nerdctl/{I}", "container=I/containerd"},
      {"/default/{I}", "container=I"},
      {"/default/trainer", ""},
      {"/lxc/trainer", "container=trainer/lxc"},
      {"/lxc/101/ns/system.slice/train.service", "container=101/lxc"},
      {"/lxc.payload.trainer/user.slice/user-7.slice/session-1.scope", "container=trainer/lxc"},
      {"/lxc.payload/trainer", "container=trainer/lxc"},
      {"/lxc.payload.box/docker/{I}", "container=I/docker"},
      {"/lxc.monitor.trainer", ""},
      {"/machine.slice/systemd-nspawn@trainer.service/payload/init.scope",
       "container=trainer/nspawn"},
      {"/machine.slice/machine-trainer\\x2d2.scope", "container=trainer-2/nspawn"},
      {"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/emulator",
       "unit=machine-qemu\\x2d1\\x2dvm.scope"},
  });
}

TEST(Cgroup, AnIdHasSixtyFourHexadecimalDigits) {
  const std::string id(kId);
  EXPECT_EQ(Text(ParseCgroupPath("/docker/" + id.substr(1))), "");
  EXPECT_EQ(Text(ParseCgroupPath("/docker/" + id + "0")), "");
  EXPECT_EQ(Text(ParseCgroupPath("/docker/" + id.substr(1) + "g")), "");
  EXPECT_EQ(Text(ParseCgroupPath("/docker/" + id)), "container=I/docker");
}

TEST(Cgroup, SlurmOnBothVersions) {
  ExpectOwners({
      {"/slurm/uid_1000/job_4711/step_0/task_0", "slurm=4711.0 slurm_uid=1000"},
      {"/slurm/uid_1000/job_4711/step_batch/task_0", "slurm=4711.batch slurm_uid=1000"},
      {"/slurm_node1/uid_1000/job_4713/step_2/task_1", "slurm=4713.2 slurm_uid=1000"},
      {"/system.slice/slurmd.service/slurm/uid_5/job_6", "slurm=6. slurm_uid=5"},
      {"/system.slice/slurmstepd.scope/job_4714/step_extern/user/task_special",
       "slurm=4714.extern"},
      {"/system.slice/slurmstepd.scope/job_4714/step_0/slurm", "slurm=4714.0"},
      {"/system.slice/node1_slurmstepd.scope/job_4716/step_interactive/user/task_2",
       "slurm=4716.interactive"},
      {"/system.slice/slurmstepd.scope/job_1/step_4294967291/user/task_0", "slurm=1.batch"},
      {"/system.slice/slurmstepd.scope/system", "unit=slurmstepd.scope"},
      {"/../../job_4711/step_0/user/task_0", "slurm=4711.0"},
      {"/build/job_17/log", ""},
      {"/build/uid_17/step_3", ""},
  });
}

TEST(Cgroup, AContainerInsideOfASlurmJobIsKnownWithItsJob) {
  ExpectOwners({
      {"/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0/docker/{I}",
       "container=I/docker slurm=4711.0"},
      {"/slurm/uid_1000/job_4711/step_0/libpod-{I}",
       "container=I/podman slurm=4711.0 slurm_uid=1000"},
  });
}

TEST(Cgroup, TheInnermostUnitOfSystemd) {
  ExpectOwners({
      {"/system.slice/inference.service", "unit=inference.service"},
      {"/system.slice/system-inference.slice/inference@0.service", "unit=inference@0.service"},
      {"/system.slice/model\\x2dserver.service", "unit=model\\x2dserver.service"},
      {"/batch.slice/batch-night.slice/train.service/payload", "unit=train.service"},
      {"/user.slice/user-1000.slice/session-3.scope", "unit=session-3.scope login=1000"},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service",
       "unit=jupyter.service login=1000"},
      {"/init.scope", "unit=init.scope"},
      {"/user.slice/user-99999999999.slice", ""},
      {"/", ""},
      {"", ""},
      {"/.service/.scope", ""},
  });
}

TEST(Cgroup, PathsOfAnotherNamespaceAreReadAsFarAsTheySaySomething) {
  ExpectOwners({
      {"/../../pod76062bea-43ab-5420-8266-a177ac76969d/{I}",
       "container=I pod=76062bea-43ab-5420-8266-a177ac76969d"},
      {"/../kubepods-burstable-pod76062bea_43ab_5420_8266_a177ac76969d.slice/"
       "cri-containerd-{I}.scope",
       "container=I/containerd pod=76062bea-43ab-5420-8266-a177ac76969d qos=burstable"},
      {"/../{I}", "container=I"},
      {"/../../podcast/{I}", "container=I"},
  });
}

TEST(Cgroup, APathThatHasBeenDeletedIsReadAsBefore) {
  EXPECT_EQ(Text(ParseCgroupPath(Path("/system.slice/docker-{I}.scope (deleted)"))),
            "container=I/docker");
}

TEST(Cgroup, PbsKnowsItsJob) {
  EXPECT_EQ(Text(ParseCgroup("11:memory:/pbs_jobs.service/jobid/123.pbs01\n"
                             "1:name=systemd:/system.slice/pbs.service\n")),
            "pbs=123.pbs01");
}

TEST(Cgroup, OfManyHierarchiesTheOneThatSaysMostCounts) {
  EXPECT_EQ(Text(ParseCgroup(Path("12:pids:/\n"
                                  "11:cpuset:/docker/{I}\n"
                                  "10:memory:/docker/{I}/docker/{J}\n"
                                  "0::/system.slice/k3s.service\n"))),
            "container=J/docker");
  EXPECT_EQ(Text(ParseCgroup("10:memory:/slurm/uid_7/job_8\n9:cpuset:/slurm/uid_7/job_8/step_1\n"
                             "1:name=systemd:/system.slice/slurmd.service\n")),
            "slurm=8.1 slurm_uid=7");
  EXPECT_EQ(Text(ParseCgroup("12:pids:/user.slice/user-7.slice/user@7.service\n"
                             "1:name=systemd:/user.slice/user-7.slice/session-3.scope\n0::/\n")),
            "unit=session-3.scope login=7");
}

TEST(Cgroup, WhatIsNotUnderstoodTellsNothing) {
  for (const std::string_view text : {"", "\n", "0", "0:", "0::", "0::/", ":::::", "\0\0", "a:b"}) {
    EXPECT_EQ(Text(ParseCgroup(text)), "") << text;
  }
}

TEST(Cgroup, APathOverTheLimitIsNotLookedAt) {
  const std::string end = Path("/docker/{I}");
  EXPECT_EQ(Text(ParseCgroupPath(std::string(4096 - end.size(), '/') + end)), "container=I/docker");
  EXPECT_EQ(Text(ParseCgroupPath(std::string(4097 - end.size(), '/') + end)), "");
  EXPECT_EQ(Text(ParseCgroupPath("/lxc/" + std::string(256, 'n'))),
            "container=" + std::string(256, 'n') + "/lxc");
  EXPECT_EQ(Text(ParseCgroupPath("/lxc/" + std::string(257, 'n'))), "");
}

TEST(SlurmStep, NumbersOfSpecialStepsHaveNames) {
  EXPECT_EQ(SlurmStepName("4294967290"), "interactive");
  EXPECT_EQ(SlurmStepName("4294967291"), "batch");
  EXPECT_EQ(SlurmStepName("4294967292"), "extern");
  EXPECT_EQ(SlurmStepName("4294967294"), "batch");
  EXPECT_EQ(SlurmStepName("17"), "17");
}

}  // namespace
}  // namespace gpuassay
