#include "attribution/join/join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "attribution/join/test_root.h"

namespace gpuassay {
namespace {

using std::chrono::seconds;

// Tells what a test wants. The real one is tested where it is (attribution/kubernetes).
class ToldKubernetes final : public Kubernetes {
 public:
  explicit ToldKubernetes(SchedulerPtr told, int* pokes) : told_(std::move(told)), pokes_(pokes) {}
  SchedulerPtr Latest() const override { return told_; }
  std::vector<SourceStatus> Sources() const override {
    SourceStatus source;
    source.name = "pod_resources";
    return {source};
  }
  void Poke() override { ++*pokes_; }
  void WaitForFirst(Duration) override {}

 private:
  SchedulerPtr told_;
  int* pokes_;
};

class JoinTest : public testing::Test {
 protected:
  void Make(const MemoryReports* reports = nullptr) {
    join_ = std::make_unique<Join>(JoinOptions{.root = root_.Root(),
                                               .self_pid = 0,
                                               .holder_interval = seconds(30),
                                               .reports = reports,
                                               .clock = &clock_,
                                               .wait_for_new = seconds(10),
                                               .in_background = false});
  }
  // A snapshot of one GPU with these PIDs.
  Gpu& Apply(const std::vector<std::uint32_t>& pids) {
    if (!join_) Make();
    snapshot_ = {};
    Gpu& gpu = snapshot_.gpus.emplace_back();
    gpu.identity.uuid = "GPU-0";
    gpu.identity.minor_number = 0;
    for (const std::uint32_t pid : pids) gpu.processes.emplace_back().pid = pid;
    join_->Apply(snapshot_);
    return gpu;
  }
  void Tell(std::string pod_name) {
    auto told = std::make_shared<Scheduler>();
    Pod& pod = told->pods.emplace_back();
    pod.identity = {"ml", std::move(pod_name), std::string(kPodUid)};
    pod.controller = {"Job", "train", ""};
    pod.containers = {{"side", ContainerId('b')}, {"main", ContainerId('a')}};
    join_->SetKubernetes(std::make_unique<ToldKubernetes>(told, &pokes_));
  }
  const SourceStatus& Source(std::string_view name) const {
    const auto found = std::ranges::find(snapshot_.sources, name, &SourceStatus::name);
    Check(found != snapshot_.sources.end(), "there is such a source");
    return *found;
  }

  TestRoot root_;
  SystemClock clock_;
  std::unique_ptr<Join> join_;
  Snapshot snapshot_;
  int pokes_ = 0;
};

TEST_F(JoinTest, AProcessGetsOwnerStartAndName) {
  root_.Process(42, 500);
  const GpuProcess& process = Apply({42}).processes[0];
  EXPECT_EQ(process.owner.systemd_unit, "train.service");
  EXPECT_EQ(process.owner.user, "alice");
  EXPECT_EQ(process.start_after_boot, seconds(5));
  EXPECT_EQ(process.name, "python3");
  EXPECT_EQ(Source("procfs").error, "");
}

TEST_F(JoinTest, TheNameOfTheDriverIsKept) {
  root_.Process(42, 500);
  Make();
  snapshot_.gpus.emplace_back().processes.emplace_back().pid = 42;
  snapshot_.gpus[0].processes[0].name = "/opt/train";
  join_->Apply(snapshot_);
  EXPECT_EQ(snapshot_.gpus[0].processes[0].name, "/opt/train");
}

TEST_F(JoinTest, APidThatIsUsedAgainGetsTheNewOwner) {
  root_.Process(42, 500);
  EXPECT_EQ(Apply({42}).processes[0].owner.systemd_unit, "train.service");
  root_.Process(42, 700, "0::/system.slice/other.service\n");
  const GpuProcess& process = Apply({42}).processes[0];
  EXPECT_EQ(process.owner.systemd_unit, "other.service");
  EXPECT_EQ(process.start_after_boot, seconds(7));
  root_.End(42);
  EXPECT_EQ(Apply({42}).processes[0].owner, ProcessOwner{});
  EXPECT_EQ(snapshot_.gpus[0].processes[0].start_after_boot, std::nullopt);
}

TEST_F(JoinTest, ThePodIsNamedByWhoeverKnowsMost) {
  root_.Process(42, 500, PodCgroup('a'));
  root_.MakeDirectory(fmt::format("var/log/pods/ml_from-logs_{}/main", kPodUid));
  const ProcessOwner by_logs = Apply({42}).processes[0].owner;
  EXPECT_EQ(*by_logs.pod, (PodIdentity{"ml", "from-logs", std::string(kPodUid)}));
  EXPECT_EQ(by_logs.container->name, "main");
  Tell("train-0");
  const ProcessOwner told = Apply({42}).processes[0].owner;
  EXPECT_EQ(told.pod->name, "train-0");
  EXPECT_EQ(told.container->name, "main");
  EXPECT_EQ(told.container->runtime, by_logs.container->runtime);
  EXPECT_EQ(*told.job, (JobIdentity{"Job", "train", ""}));
  EXPECT_EQ(Source("pod_resources").error, "");
  EXPECT_EQ(pokes_, 0);
}

TEST_F(JoinTest, AskingAnewKeepsWhatWasToldUntilTheAnswer) {
  root_.Process(42, 500, PodCgroup('a'));
  Make();
  Tell("train-0");
  EXPECT_EQ(Apply({42}).processes[0].owner.pod->name, "train-0");
  join_->SetKubernetes(std::make_unique<ToldKubernetes>(nullptr, &pokes_));
  EXPECT_EQ(Apply({42}).processes[0].owner.pod->name, "train-0");
  Tell("renamed");
  EXPECT_EQ(Apply({42}).processes[0].owner.pod->name, "renamed");
}

TEST_F(JoinTest, APodThatKubernetesDoesNotKnowYetMakesItAsk) {
  root_.Process(42, 500,
                fmt::format("0::/kubepods/pod{}/{}\n", "11111111-1111-1111-1111-111111111111",
                            ContainerId('c')));
  Make();
  Tell("train-0");
  Apply({42});
  EXPECT_EQ(pokes_, 1);
}

TEST_F(JoinTest, AnotherPidNamespaceIsSaid) {
  root_.Process(1, 1);
  Apply({42, 43});
  EXPECT_EQ(Source("procfs").error,
            "none of the 2 processes of the driver is in /proc of the root: it is of another PID "
            "namespace than the driver's; their owners are not known (run with the host's PIDs)");
  EXPECT_EQ(Source("procfs").readings.up, Reading(0));
  root_.Process(42, 500);
  Apply({42, 43});
  EXPECT_EQ(Source("procfs").error, "");
}

TEST_F(JoinTest, OneThatHangsHasTheOwnerOfItsCgroup) {
  root_.Process(42, 500);
  root_.Hang(42);
  const GpuProcess& process = Apply({42}).processes[0];
  EXPECT_EQ(process.owner.systemd_unit, "train.service");
  EXPECT_EQ(process.owner.user, "alice");
  EXPECT_EQ(Source("procfs").error,
            "a process does not let itself be read: it hangs in the kernel");
  root_.LetGo(42);
}

TEST_F(JoinTest, SlurmJobsHaveTheirDevices) {
  root_.Process(42, 500, "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n");
  root_.Environment(42, std::string_view("SLURM_JOB_ID=4711\0SLURM_JOB_GPUS=0\0", 35));
  Apply({42});
  ASSERT_NE(snapshot_.scheduler, nullptr);
  ASSERT_EQ(snapshot_.scheduler->allocations.size(), 1U);
  EXPECT_EQ(snapshot_.scheduler->allocations[0].unit.gpu_uuid, "GPU-0");
  EXPECT_EQ(snapshot_.scheduler->allocations[0].owner.job->id, "4711");
}

TEST_F(JoinTest, HoldersAreThoseOfTheLastLook) {
  root_.Process(42, 500);
  root_.Open(42, 3, "/dev/nvidia0");
  EXPECT_TRUE(Apply({}).holders.empty());
  join_->LookForHolders();
  ASSERT_EQ(Apply({}).holders.size(), 1U);
  EXPECT_TRUE(Apply({42}).holders.empty());  // the driver lists it now
}

TEST_F(JoinTest, ReportsOfPoolsReachTheirProcess) {
  root_.Process(42, 500);
  root_.Process(43, 500);
  MemoryReports reports;
  Make(&reports);
  reports.Set(42, {{"", 800, 600}}, clock_.Steady());
  const Gpu& gpu = Apply({42, 43});
  EXPECT_EQ(gpu.processes[0].readings.memory_pool_reserved_bytes, Reading(800));
  EXPECT_EQ(gpu.processes[0].readings.memory_pool_allocated_bytes, Reading(600));
  EXPECT_EQ(gpu.processes[1].readings.memory_pool_reserved_bytes, Reading(Missing::kNotReported));
  reports.Set(42, {{"", 800, 600}}, clock_.Steady() - std::chrono::hours(1));
  EXPECT_EQ(Apply({42}).processes[0].readings.memory_pool_reserved_bytes,
            Reading(Missing::kNotReported));
}

}  // namespace
}  // namespace gpuassay
