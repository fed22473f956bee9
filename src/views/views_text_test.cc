#include "views/views_text.h"

#include <gtest/gtest.h>

namespace gpuassay {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

Views OneDevice() {
  Views views;
  views.allocations_known = true;
  DeviceView& device = views.devices.emplace_back();
  device.gpu.uuid = "GPU-1";
  device.gpu.name = "Tesla T4";
  device.busy_ratio = 0.8;
  device.memory_used_bytes = 8234 * kMib;
  device.memory_total_bytes = 15360 * kMib;
  DeviceUnit unit{"nvidia.com/gpu", "GPU-1::0", 0U, "GPU-1", ""};
  Allocation& allocation = device.allocations.emplace_back();
  allocation.unit = unit;
  allocation.owner.pod = {"ml", "train-0", ""};
  device.units = {unit, {"nvidia.com/gpu", "GPU-1::1", 1U, "GPU-1", ""}};
  ViewProcess& process = device.processes.emplace_back();
  process.pid = 42;
  process.name = "python3\x1b[2J";
  process.owner = allocation.owner;
  process.memory_used_bytes = 4234 * kMib;
  process.sm_share_ratio = 0.5;
  process.pool_reserved_bytes = 4096 * kMib;
  process.pool_allocated_bytes = 2396 * kMib;
  DeviceHolder& holder = device.holders.emplace_back();
  holder.pid = 27341;
  holder.name = "python";
  holder.kind = HolderKind::kDefunctLeader;
  PodView& pod = views.pods.emplace_back();
  pod.pod.identity = {"ml", "train-0", ""};
  pod.units = {unit};
  pod.processes = 1;
  pod.memory_used_bytes = 4234 * kMib;
  pod.disagreements = {{DisagreementKind::kMemoryUnderRequest, "asked for more", "", "", ""}};
  views.resources = {{"nvidia.com/gpu", 2, 1, 1}};
  return views;
}

TEST(ViewsText, AllThreeViewsOfADeviceAndItsPodsStandThere) {
  const std::string text = ViewsText(OneDevice(), false);
  for (const char* const part :
       {"GPU 0  Tesla T4  GPU-1\n", "busy 80.0 %", "used 8234 MiB", "of 15360 MiB",
        "nvidia.com/gpu replica 0  to ml/train-0  kubernetes", "1 unit not handed out",
        "PID 42  python3?[2J  ml/train-0  4234 MiB  SM 50.0 %  pool 4096 MiB reserved, 2396 MiB",
        "PID 27341 python, unknown owner, defunct_leader: end_process;",
        "pod ml/train-0  GPU 0 GPU-1 replica 0\n", "1 process ", "! asked for more",
        "nvidia.com/gpu  2 units  1 handed out  of 1 device"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(ViewsText, WhatIsNotKnownIsAReasonAndNotZero) {
  const std::string text = ViewsText(OneDevice(), false);
  EXPECT_NE(text.find("SM active never_sampled"), std::string::npos) << text;
  EXPECT_NE(text.find("memory asked for not said"), std::string::npos) << text;
  Views views = OneDevice();
  views.allocations_known = false;
  EXPECT_NE(ViewsText(views, false).find("not known what is handed out"), std::string::npos);
}

TEST(ViewsText, OfAPodWithoutAProcessNothingIsMeasured) {
  Views views = OneDevice();
  views.pods[0].processes = 0;
  const std::string text = ViewsText(views, false);
  EXPECT_NE(text.find("\n    0 processes  memory asked for not said\n"), std::string::npos) << text;
}

TEST(ViewsText, ColourMarksDisagreementsOnly) {
  EXPECT_EQ(ViewsText(OneDevice(), false).find('\x1b'), std::string::npos);
  EXPECT_NE(ViewsText(OneDevice(), true).find("\x1b[33m!\x1b[0m asked for more"),
            std::string::npos);
}

TEST(ViewsText, ADeviceThatIsNotHereIsSaid) {
  Views views = OneDevice();
  views.pods[0].units = {{"nvidia.com/gpu", "GPU-9", std::nullopt, "", ""}};
  EXPECT_NE(ViewsText(views, false).find("pod ml/train-0  GPU-9 (no device of this node)\n"),
            std::string::npos);
  views.pods[0].units.clear();
  EXPECT_NE(ViewsText(views, false).find("pod ml/train-0  no device\n"), std::string::npos);
  EXPECT_EQ(ViewsText({}, false), "No GPU.\n");
}

}  // namespace
}  // namespace gpuassay
