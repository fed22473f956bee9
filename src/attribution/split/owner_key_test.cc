#include "attribution/split/owner_key.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

ProcessOwner InPod(const char* container_id, const char* container) {
  ProcessOwner owner;
  owner.pod = {"ml", "train-0", "0d5e5b4a"};
  owner.container = {container_id, container, "containerd"};
  owner.user = "root";
  return owner;
}

TEST(OwnerKey, AContainerThatWasRestartedIsTheSameOwner) {
  EXPECT_EQ(OwnerKey(InPod("4f5c", "main")), OwnerKey(InPod("77aa", "main")));
}

TEST(OwnerKey, TwoContainersOfAPodAreTwoOwners) {
  EXPECT_NE(OwnerKey(InPod("4f5c", "main")), OwnerKey(InPod("77aa", "sidecar")));
  EXPECT_NE(OwnerKey(InPod("4f5c", "")), OwnerKey(InPod("77aa", "")));
}

TEST(OwnerKey, OneNameInTwoNamespacesIsTwoOwners) {
  ProcessOwner other = InPod("4f5c", "main");
  other.pod->namespace_name = "web";
  EXPECT_NE(OwnerKey(InPod("4f5c", "main")), OwnerKey(other));
}

TEST(OwnerKey, TheUserInsideAContainerIsNoPartOfIt) {
  ProcessOwner other = InPod("4f5c", "main");
  other.user = "1000";
  EXPECT_EQ(OwnerKey(InPod("4f5c", "main")), OwnerKey(other));
  EXPECT_EQ(OwnerAsOne(other), OwnerAsOne(InPod("4f5c", "main")));
}

TEST(OwnerKey, StepsOfAJobAndJobsOfAUserAreApart) {
  ProcessOwner step0;
  step0.job = {"slurm", "4711", "0"};
  step0.user = "alice";
  ProcessOwner step1 = step0;
  step1.job->step = "1";
  EXPECT_NE(OwnerKey(step0), OwnerKey(step1));
  EXPECT_EQ(OwnerAsOne(step0).user, "alice");
}

TEST(KindOfOwner, IsTheClosestThatIsKnown) {
  ProcessOwner owner;
  EXPECT_EQ(KindOfOwner(owner), OwnerKind::kUnknown);
  owner.user = "alice";
  EXPECT_EQ(KindOfOwner(owner), OwnerKind::kUser);
  owner.systemd_unit = "train.service";
  EXPECT_EQ(KindOfOwner(owner), OwnerKind::kUnit);
  owner.job = {"slurm", "4711", "0"};
  EXPECT_EQ(KindOfOwner(owner), OwnerKind::kJob);
  owner.pod = {"ml", "train-0", ""};
  EXPECT_EQ(KindOfOwner(owner), OwnerKind::kPod);
  owner.container = {"4f5c", "", "docker"};
  EXPECT_EQ(KindOfOwner(owner), OwnerKind::kContainer);
}

}  // namespace
}  // namespace gpuassay
