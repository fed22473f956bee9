#include "attribution/join/living_containers.h"

#include <gtest/gtest.h>

#include "attribution/join/test_root.h"

namespace gpuassay {
namespace {

ProcessOwner InContainer(std::string runtime, std::string id) {
  ProcessOwner owner;
  owner.container = {std::move(id), "", std::move(runtime)};
  return owner;
}

ProcessOwner InPod(std::string uid) {
  ProcessOwner owner;
  owner.pod = {"", "", std::move(uid)};
  return owner;
}

TEST(LivingContainers, WhoIsInTheDirectoryOfItsRuntimeLives) {
  const TestRoot root;
  root.MakeDirectory("run/containerd/io.containerd.runtime.v2.task/k8s.io/aa");
  root.MakeDirectory("var/lib/docker/containers/bb");
  root.MakeDirectory("var/lib/containers/storage/overlay-containers/cc");
  root.MakeDirectory("var/lib/kubelet/pods/uid-1");
  const LivingContainers living(root.Root());
  EXPECT_FALSE(living.Gone(InContainer("containerd", "aa")));
  EXPECT_FALSE(living.Gone(InContainer("docker", "bb")));
  EXPECT_FALSE(living.Gone(InContainer("podman", "cc")));
  EXPECT_FALSE(living.Gone(InContainer("cri-o", "cc")));
  EXPECT_FALSE(living.Gone(InPod("uid-1")));
  EXPECT_TRUE(living.Gone(InContainer("containerd", "bb")));
  EXPECT_TRUE(living.Gone(InContainer("docker", "aa")));
  EXPECT_TRUE(living.Gone(InContainer("podman", "aa")));
  EXPECT_TRUE(living.Gone(InContainer("cri-o", "aa")));
  EXPECT_TRUE(living.Gone(InPod("uid-2")));
}

TEST(LivingContainers, ARuntimeThatIsNotThereSaysNothing) {
  const TestRoot root;
  const LivingContainers living(root.Root());
  EXPECT_FALSE(living.Gone(InContainer("containerd", "aa")));
  EXPECT_FALSE(living.Gone(InContainer("docker", "aa")));
  EXPECT_FALSE(living.Gone(InContainer("podman", "aa")));
  EXPECT_FALSE(living.Gone(InPod("uid-1")));
}

TEST(LivingContainers, WhoIsInNoContainerIsNotGone) {
  const TestRoot root;
  root.MakeDirectory("var/lib/docker/containers");
  root.MakeDirectory("var/lib/kubelet/pods");
  const LivingContainers living(root.Root());
  EXPECT_FALSE(living.Gone({}));
  EXPECT_FALSE(living.Gone(InContainer("", "aa")));        // of a runtime that nobody knows
  EXPECT_FALSE(living.Gone(InContainer("enroot", "aa")));  // of one that keeps no list
  EXPECT_FALSE(living.Gone(InContainer("docker", "")));
  EXPECT_FALSE(living.Gone(InPod("")));
}

}  // namespace
}  // namespace gpuassay
