#include "views/owner_text.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

TEST(OwnerText, NamesTheClosestOwner) {
  ProcessOwner owner;
  EXPECT_EQ(OwnerText(owner), "unknown owner");
  owner.user = "alice";
  EXPECT_EQ(OwnerText(owner), "user alice");
  owner.systemd_unit = "train.service";
  EXPECT_EQ(OwnerText(owner), "train.service (alice)");
  owner.job = {"slurm", "4711", "0"};
  EXPECT_EQ(OwnerText(owner), "Slurm job 4711 step 0 (alice)");
  owner.container = {"4f5c0a6b1c2d3e4f5a6b", "", "docker"};
  EXPECT_EQ(OwnerText(owner), "container 4f5c0a6b1c2d (docker)");
  owner.pod = {"ml", "train-0", "0d5e5b4a"};
  EXPECT_EQ(OwnerText(owner), "ml/train-0 (4f5c0a6b1c2d)");
  owner.container->name = "main";
  EXPECT_EQ(OwnerText(owner), "ml/train-0 (main)");
}

TEST(OwnerText, APodGoesByItsUidWhileItsNameIsUnknown) {
  EXPECT_EQ(PodText({"", "", "0d5e5b4a"}), "pod 0d5e5b4a");
}

TEST(DeviceText, TellsTheInstance) {
  GpuIdentity gpu;
  gpu.index = 2;
  const MigIdentity mig = {1, 9, 0, "MIG-1", "1g.5gb"};
  EXPECT_EQ(DeviceText(gpu, nullptr), "GPU 2");
  EXPECT_EQ(DeviceText(gpu, &mig), "GPU 2 MIG 1 (1g.5gb)");
}

TEST(MebibytesText, RoundsToWholeMebibytes) { EXPECT_EQ(MebibytesText(4439670784.0), "4234 MiB"); }

}  // namespace
}  // namespace gpuassay
