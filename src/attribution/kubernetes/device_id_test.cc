#include "attribution/kubernetes/device_id.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

constexpr std::string_view kUuid = "GPU-11111111-2222-3333-4444-555555555555";
constexpr std::string_view kMigUuid = "MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

MigInstance Mig(std::uint32_t index, std::uint32_t gi, std::string uuid, std::string profile) {
  MigInstance mig;
  mig.identity = {index, gi, 0, std::move(uuid), std::move(profile)};
  return mig;
}

// Two GPUs: index 0 is /dev/nvidia1 with three MIG devices, index 1 is /dev/nvidia0 without MIG.
std::vector<Gpu> Node() {
  std::vector<Gpu> gpus(2);
  gpus[0].identity.uuid = kUuid;
  gpus[0].identity.minor_number = 1;
  gpus[0].mig = {Mig(0, 1, std::string(kMigUuid), "3g.20gb"), Mig(1, 7, "MIG-b", "1g.5gb"),
                 Mig(2, 8, "MIG-c", "1g.5gb"), Mig(3, 9, "MIG-d", "1g.5gb+me")};
  gpus[1].identity.index = 1;
  gpus[1].identity.uuid = "GPU-99999999-2222-3333-4444-555555555555";
  gpus[1].identity.minor_number = 0;
  return gpus;
}

std::string Resolve(std::string_view text) {
  const std::optional<DeviceId> id = ParseDeviceId(text);
  if (!id) return "not an id";
  const std::optional<ResolvedDevice> device = ResolveDevice(*id, Node());
  if (!device) return "unknown";
  return device->gpu_uuid.substr(0, 12) + " " + device->mig_uuid.substr(0, 5);
}

void Append(std::string& text, std::string_view name, std::optional<std::uint32_t> number) {
  if (number) text += " " + std::string(name) + "=" + std::to_string(*number);
}

// "uuid=GPU-... replica=3": every member that says something.
std::string Parsed(std::string_view text) {
  const std::optional<DeviceId> id = ParseDeviceId(text);
  if (!id) return "none";
  std::string said;
  if (!id->uuid.empty()) said += " uuid=" + id->uuid;
  Append(said, "minor", id->minor);
  Append(said, "gi", id->gpu_instance_id);
  Append(said, "ci", id->compute_instance_id);
  Append(said, "replica", id->replica);
  if (!id->mig_profile.empty()) said += " profile=" + id->mig_profile;
  Append(said, "start", id->mig_placement_start);
  Append(said, "index", id->index);
  Append(said, "mig", id->mig_index);
  return said.substr(1);
}

TEST(ParseDeviceId, ReadsUuidsAndTheirReplicas) {
  EXPECT_EQ(Parsed(kUuid), "uuid=GPU-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(Parsed("GPU-11111111-2222-3333-4444-555555555555::3"),
            "uuid=GPU-11111111-2222-3333-4444-555555555555 replica=3");
  EXPECT_EQ(Parsed("MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee::0"),
            "uuid=MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee replica=0");
}

TEST(ParseDeviceId, ReadsTheMigFormOfOldDrivers) {
  EXPECT_EQ(Parsed("MIG-GPU-11111111-2222-3333-4444-555555555555/7/0"),
            "uuid=GPU-11111111-2222-3333-4444-555555555555 gi=7 ci=0");
}

TEST(ParseDeviceId, ReadsTheFormsOfGke) {
  EXPECT_EQ(Parsed("nvidia3"), "minor=3");
  EXPECT_EQ(Parsed("nvidia0/gi1"), "minor=0 gi=1");
  EXPECT_EQ(Parsed("nvidia0/gi1/vgpu2"), "minor=0 gi=1 replica=2");
  EXPECT_EQ(Parsed("nvidia0/vgpu1"), "minor=0 replica=1");
}

TEST(ParseDeviceId, ReadsTheNamesOfDra) {
  EXPECT_EQ(Parsed("gpu-4"), "minor=4");
  EXPECT_EQ(Parsed("gpu-0-mig-1g5gb-19-6"), "minor=0 profile=1g.5gb start=6");
  EXPECT_EQ(Parsed("gpu-0-mig-1g10gb-me-20-6"), "minor=0 profile=1g.10gb+me start=6");
  EXPECT_EQ(Parsed("gpu-0-mig-1g5gb-2"), "minor=0 profile=1g.5gb start=2");
  EXPECT_EQ(Parsed("gpu-0-mig-19-4-1"), "minor=0 start=4");
}

TEST(ParseDeviceId, ReadsIndices) {
  EXPECT_EQ(Parsed("0"), "index=0");
  EXPECT_EQ(Parsed("2:1"), "index=2 mig=1");
}

TEST(ParseDeviceId, RefusesWhatIsNone) {
  for (const std::string_view text : {"",
                                      "all",
                                      "none",
                                      "GPU-1",
                                      "nvidia",
                                      "nvidia0/",
                                      "nvidia0/gi",
                                      "nvidia0/gi1/x",
                                      "gpu-",
                                      "gpu-0-mig",
                                      "gpu-0-mig-",
                                      "gpu-0-mig-x-1-1",
                                      "gpu-vfio-0",
                                      "4294967296",
                                      "0:",
                                      "-1",
                                      "0000:3b:00.2",
                                      "GPU-11111111-2222-3333-4444-555555555555::",
                                      "GPU-11111111-2222-3333-4444-555555555555::x",
                                      "GPU-11111111-2222-3333-4444-55555555555g",
                                      "GPU-11111111-2222-3333-4444-555555555555/1/0",
                                      "MIG-GPU-11111111-2222-3333-4444-555555555555/1"}) {
    EXPECT_EQ(Parsed(text), "none") << text;
  }
}

TEST(ParseDeviceId, LooksAt256BytesAtMost) {
  EXPECT_EQ(Parsed("nvidia" + std::string(250, '0')), "minor=0");
  EXPECT_EQ(Parsed("nvidia" + std::string(251, '0')), "none");
}

TEST(ResolveDevice, FindsTheDeviceOfEachForm) {
  EXPECT_EQ(Resolve(kUuid), "GPU-11111111 ");
  EXPECT_EQ(Resolve(kMigUuid), "GPU-11111111 MIG-a");
  EXPECT_EQ(Resolve("gpu-11111111-2222-3333-4444-555555555555"), "GPU-11111111 ");
  EXPECT_EQ(Resolve("mig-AAAAAAAA-bbbb-cccc-dddd-eeeeeeeeeeee::1"), "GPU-11111111 MIG-a");
  EXPECT_EQ(Resolve("MIG-GPU-11111111-2222-3333-4444-555555555555/7/0"), "GPU-11111111 MIG-b");
  EXPECT_EQ(Resolve("0:2"), "GPU-11111111 MIG-c");
}

TEST(ResolveDevice, GoesByTheMinorNumberNotByTheIndex) {
  EXPECT_EQ(Resolve("nvidia0"), "GPU-99999999 ");
  EXPECT_EQ(Resolve("nvidia1/gi8/vgpu0"), "GPU-11111111 MIG-c");
  EXPECT_EQ(Resolve("gpu-1"), "GPU-11111111 ");
  EXPECT_EQ(Resolve("0"), "GPU-11111111 ");
}

TEST(ResolveDevice, FindsAProfileOnlyWhereThereIsOneOfIt) {
  EXPECT_EQ(Resolve("gpu-1-mig-3g20gb-9-0"), "GPU-11111111 MIG-a");
  EXPECT_EQ(Resolve("gpu-1-mig-1g5gb-me-20-6"), "GPU-11111111 MIG-d");
  EXPECT_EQ(Resolve("gpu-1-mig-1g5gb-19-4"), "unknown");
}

TEST(ResolveDevice, NeverTakesAMigDeviceForTheWholeGpu) {
  EXPECT_EQ(Resolve("gpu-1-mig-19-4-1"), "unknown");
  EXPECT_EQ(Resolve("nvidia0/gi1"), "unknown");
  EXPECT_EQ(Resolve("gpu-0-mig-3g20gb-9-0"), "unknown");
}

TEST(ResolveDevice, SaysNothingAboutDevicesThatAreGone) {
  EXPECT_EQ(Resolve("GPU-00000000-2222-3333-4444-555555555555"), "unknown");
  EXPECT_EQ(Resolve("nvidia7"), "unknown");
  std::vector<Gpu> gpus = Node();
  for (Gpu& gpu : gpus) gpu.identity.minor_number.reset();
  EXPECT_EQ(ResolveDevice(*ParseDeviceId("nvidia0"), gpus), std::nullopt);
}

TEST(IsGpuResource, KnowsWhatIsUnderNvidia) {
  EXPECT_TRUE(IsGpuResource("nvidia.com/gpu", {}));
  EXPECT_TRUE(IsGpuResource("nvidia.com/gpu.shared", {}));
  EXPECT_TRUE(IsGpuResource("nvidia.com/mig-1g.5gb", {}));
  EXPECT_TRUE(IsGpuResource("nvidia.com/gpumem-percentage", {}));
  EXPECT_FALSE(IsGpuResource("nvidia.com/hostdev", {}));
  EXPECT_FALSE(IsGpuResource("nvidia.com/rdma_ib", {}));
  EXPECT_FALSE(IsGpuResource("cpu", {}));
}

TEST(IsGpuResource, KnowsOtherSchedulersAndRenamedResources) {
  EXPECT_TRUE(IsGpuResource("volcano.sh/vgpu-memory", {}));
  EXPECT_TRUE(IsGpuResource("gpu-fraction", {}));
  EXPECT_FALSE(IsGpuResource("example.com/a100", {}));
  EXPECT_TRUE(IsGpuResource("example.com/a100", {"example.com/a100"}));
}

TEST(IsGpuDraDriver, KnowsTheDriverThatHandsOutGpus) {
  EXPECT_TRUE(IsGpuDraDriver("gpu.nvidia.com", {}));
  EXPECT_FALSE(IsGpuDraDriver("compute-domain.nvidia.com", {}));
  EXPECT_FALSE(IsGpuDraDriver("dra.net", {}));
}

}  // namespace
}  // namespace gpuassay
