#include "exposition/owners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "attribution/split/ledger.h"
#include "counters/integrator.h"
#include "exposition/exposition.h"

namespace gpuassay {
namespace {

Allocation Given(std::string gpu_uuid, std::string mig_uuid, std::string pod) {
  Allocation allocation;
  allocation.unit.resource = "nvidia.com/gpu";
  allocation.unit.device_id = gpu_uuid + mig_uuid;
  allocation.unit.gpu_uuid = std::move(gpu_uuid);
  allocation.unit.mig_uuid = std::move(mig_uuid);
  allocation.owner.pod = {"ml", std::move(pod), ""};
  allocation.owner.container = {"", "main", ""};
  return allocation;
}

TEST(Owners, ADeviceOfOnePodIsItsAlone) {
  Scheduler scheduler;
  scheduler.allocations = {Given("GPU-1", "", "a"), Given("GPU-2", "MIG-1", "b"),
                           Given("GPU-2", "MIG-2", "c")};
  const ProcessOwner* const whole = ExclusiveOwner(&scheduler, "GPU-1", "");
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->pod->name, "a");
  const ProcessOwner* const instance = ExclusiveOwner(&scheduler, "GPU-2", "MIG-2");
  ASSERT_NE(instance, nullptr);
  EXPECT_EQ(instance->pod->name, "c");
  EXPECT_EQ(ExclusiveOwner(&scheduler, "GPU-2", ""), nullptr);  // two pods have parts of it
  EXPECT_EQ(ExclusiveOwner(&scheduler, "GPU-3", ""), nullptr);
  EXPECT_EQ(ExclusiveOwner(nullptr, "GPU-1", ""), nullptr);
}

TEST(Owners, ASharedDeviceIsNobodysAlone) {
  Scheduler scheduler;
  scheduler.allocations = {Given("GPU-1", "", "a"), Given("GPU-1", "", "b")};
  EXPECT_EQ(ExclusiveOwner(&scheduler, "GPU-1", ""), nullptr);
  scheduler.allocations = {Given("GPU-1", "", "a")};
  scheduler.allocations[0].unit.replica = 0;  // others may get the other replicas
  EXPECT_EQ(ExclusiveOwner(&scheduler, "GPU-1", ""), nullptr);
  scheduler.allocations = {Given("GPU-1", "", "a")};
  scheduler.allocations[0].scheduler = SchedulerKind::kContainerRuntime;
  EXPECT_EQ(ExclusiveOwner(&scheduler, "GPU-1", ""), nullptr);
}

Snapshot TwoPodsOnOneGpu(int second) {
  Snapshot snapshot;
  snapshot.node.hostname = "node1";
  snapshot.steady = SteadyTime(std::chrono::seconds(second));
  Gpu& gpu = snapshot.gpus.emplace_back();
  gpu.identity.uuid = "GPU-1";
  GpuReadings& readings = gpu.readings;
  readings.up = 1;
  readings.utilization_mean_ratio = 0.75;
  readings.memory_used_bytes = 1000;
  readings.power_watts = 120;
  readings.power_limit_default_watts = 400;
  readings.process_count = 2;
  for (std::uint32_t pid = 1; pid <= 2; ++pid) {
    GpuProcess& process = gpu.processes.emplace_back();
    process.pid = pid;
    process.readings.memory_used_bytes = 300 * pid;
    process.readings.sm_utilization_ratio = 0.25 * pid;
    process.owner.pod = {"ml", "pod-" + std::to_string(pid), ""};
    process.owner.container = {std::to_string(pid), "main", "containerd"};
  }
  auto scheduler = std::make_shared<Scheduler>();
  scheduler->allocations = {Given("GPU-1", "", "pod-1"), Given("GPU-1", "", "pod-2")};
  scheduler->allocatable = {scheduler->allocations[0].unit};
  Pod& pod = scheduler->pods.emplace_back();
  pod.identity = {"ml", "pod-1", ""};
  pod.labels = {{"app.kubernetes.io/name", "train"}, {"team", "a\"b"}};
  pod.memory_request_bytes = 512;
  snapshot.scheduler = std::move(scheduler);
  return snapshot;
}

std::string RenderTwoPods() {
  Integrator integrator;
  OwnerLedger ledger;
  std::string text;
  for (int second = 0; second < 5; ++second) {
    Snapshot snapshot = TwoPodsOnOneGpu(second);
    integrator.Apply(snapshot);
    ledger.Apply(snapshot);
    text = RenderMetrics(snapshot, {});
  }
  return text;
}

// Sum of all series of one name.
double SumOf(const std::string& text, const std::string& name) {
  double sum = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(name + "{")) sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

TEST(Owners, SeriesOfAllOwnersAddUpToTheDevice) {
  const std::string text = RenderTwoPods();
  const std::map<std::string, std::string> pairs = {
      {"gpuassay_owner_memory_used_bytes", "gpuassay_gpu_memory_used_bytes"},
      {"gpuassay_owner_power_watts", "gpuassay_gpu_power_watts"},
      {"gpuassay_owner_energy_joules_total", "gpuassay_gpu_energy_joules_total"},
      {"gpuassay_owner_busy_seconds_total", "gpuassay_gpu_busy_seconds_total"},
      {"gpuassay_owner_sm_share_ratio", "gpuassay_gpu_utilization_mean_ratio"}};
  for (const auto& [parts, device] : pairs) {
    EXPECT_GT(SumOf(text, device), 0) << device;
    EXPECT_NEAR(SumOf(text, parts), SumOf(text, device), 1e-9) << parts;
  }
  EXPECT_EQ(SumOf(text, "gpuassay_gpu_busy_seconds_total"), 3);
}

TEST(Owners, NoValueIsGivenToTwoPods) {
  const std::string text = RenderTwoPods();
  EXPECT_NE(text.find("gpuassay_owner_sm_share_ratio{gpu=\"0\",uuid=\"GPU-1\",hostname=\"node1\","
                      "owner_kind=\"container\",container=\"main\",pod=\"pod-1\","
                      "namespace=\"ml\"} 0.25\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("pod=\"pod-2\",namespace=\"ml\"} 0.5\n"), std::string::npos);
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("DCGM_")) {
      EXPECT_EQ(line.find("pod="), std::string::npos) << line;
    }
  }
}

TEST(Owners, DcgmSeriesOfAnExclusiveGpuCarryItsPod) {
  Snapshot snapshot = TwoPodsOnOneGpu(0);
  auto scheduler = std::make_shared<Scheduler>();
  scheduler->allocations = {Given("GPU-1", "", "pod-1")};
  snapshot.scheduler = std::move(scheduler);
  const std::string text = RenderMetrics(snapshot, {});
  EXPECT_NE(text.find("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\",pci_bus_id=\"\","
                      "device=\"nvidia0\",modelName=\"\",hostname=\"node1\",container=\"main\","
                      "namespace=\"ml\",pod=\"pod-1\"} 120"),
            std::string::npos)
      << text;
}

TEST(Owners, TheSchedulersViewHasSeriesOfItsOwn) {
  const std::string text = RenderTwoPods();
  EXPECT_NE(text.find("gpuassay_allocation_info{gpu=\"0\",uuid=\"GPU-1\",hostname=\"node1\","
                      "scheduler=\"kubernetes\",resource=\"nvidia.com/gpu\",device_id=\"GPU-1\","
                      "container=\"main\",pod=\"pod-1\",namespace=\"ml\"} 1\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("gpuassay_allocatable_units{hostname=\"node1\",resource=\"nvidia.com/gpu\"} 1"),
      std::string::npos);
  EXPECT_NE(text.find("gpuassay_allocated_units{hostname=\"node1\",resource=\"nvidia.com/gpu\"} 2"),
            std::string::npos);
  EXPECT_NE(text.find("gpuassay_pod_labels{hostname=\"node1\",pod=\"pod-1\",namespace=\"ml\","
                      "label_app_kubernetes_io_name=\"train\",label_team=\"a\\\"b\"} 1\n"),
            std::string::npos);
  EXPECT_NE(text.find("gpuassay_pod_memory_request_bytes{hostname=\"node1\",pod=\"pod-1\","
                      "namespace=\"ml\"} 512\n"),
            std::string::npos);
}

}  // namespace
}  // namespace gpuassay
