// The commands as people call them, in this process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.h"
#include "cli/scenario_files.h"
#include "cli/source_reading.h"

namespace gpuassay {
namespace {

struct Outcome {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Outcome Call(std::vector<std::string> arguments) {
  CLI::App app;
  CommandContext context;
  AddSnapshotCommand(app, context);
  AddSimulateCommand(app, context);
  AddMetricsCommand(app, context);
  AddExplainCommand(app, context);
  AddRecordCommand(app, context);
  std::ranges::reverse(arguments);  // as CLI11 wants them
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    context.exit_code = kExitBadInput;
  }
  std::fflush(stdout);
  const std::string out = testing::internal::GetCapturedStdout();
  return {context.exit_code, out, testing::internal::GetCapturedStderr()};
}

class CommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "commands-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

std::string Line(const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string line;
  for (std::size_t i = 0; i < number; ++i) std::getline(lines, line);
  return line;
}

TEST_F(CommandsTest, SimulateIsTheSameEveryTime) {
  const Outcome first = Call({"simulate", "tiny-kernels", "--for", "10s", "--json"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(std::ranges::count(first.out, '\n'), 11);
  EXPECT_EQ(Call({"simulate", "tiny-kernels", "--for", "10s", "--json"}).out, first.out);
}

TEST_F(CommandsTest, SimulateJsonHasTheReadingsOfEachGpu) {
  const Outcome run =
      Call({"simulate", "tiny-kernels", "--for", "1m", "--every", "2s", "--json", "--last"});
  const auto snapshot = nlohmann::json::parse(run.out);
  ASSERT_EQ(snapshot["gpus"].size(), 3u);
  EXPECT_GT(snapshot["gpus"][0]["utilization_ratio"], 0.8);
  EXPECT_LT(snapshot["gpus"][0]["sm_active_ratio"], 0.002);
  EXPECT_EQ(snapshot["gpus"][0]["observed_seconds_total"], 60);
}

TEST_F(CommandsTest, SimulateWithoutALengthRunsAsLongAsTheScenarioSuggests) {
  const Outcome run = Call({"simulate", "tiny-kernels", "--every", "1m"});  // length: 5m
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(std::ranges::count(run.out, '\n'), 1 + 6);
  EXPECT_TRUE(Line(run.out, 7).starts_with("       5m   3/3")) << run.out;
}

TEST_F(CommandsTest, AReadingThatHungTakesScenarioTime) {
  const Outcome run = Call({"simulate", "driver-hang", "--for", "1m", "--every", "5s"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out.find("      25s "), std::string::npos) << run.out;  // hangs from 20 s to 30 s
  EXPECT_NE(run.out.find("      35s "), std::string::npos) << run.out;
}

TEST_F(CommandsTest, AGpuThatIsLostIsTold) {
  const Outcome run = Call({"simulate", "gpu-lost", "--for", "2m", "--every", "30s"});
  EXPECT_NE(run.out.find("7/8"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("gpu lost (GPU 7)"), std::string::npos) << run.out;
}

TEST_F(CommandsTest, SnapshotShowsOneGpuOrAll) {
  const Outcome all = Call({"snapshot", "--source", "simulator=tiny-kernels"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("!   GPU 0: "), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("real-work"), std::string::npos);
  const Outcome one = Call({"snapshot", "--source", "simulator=tiny-kernels", "--gpu", "1"});
  EXPECT_EQ(one.out.find("real-work"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("rare-kernels"), std::string::npos) << one.out;
  const Outcome none = Call({"snapshot", "--source", "simulator=tiny-kernels", "--gpu", "3"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err, "gpuassay snapshot: --gpu 3: there is no such GPU; there is 0-2\n");
}

TEST_F(CommandsTest, ARecordingIsReplayedAsItWas) {
  const Outcome record = Call({"record", Path("a"), "--source", "simulator=xid", "--for", "1m"});
  ASSERT_EQ(record.exit_code, 0) << record.err;
  EXPECT_TRUE(record.out.starts_with(Path("a") + ": 61 frames, ")) << record.out;
  const Outcome live = Call({"simulate", "xid", "--for", "1m", "--json", "--last"});
  const Outcome replay = Call({"snapshot", "--source", "replay=" + Path("a"), "--json"});
  ASSERT_EQ(replay.exit_code, 0) << replay.err;
  const auto expected = nlohmann::json::parse(live.out);
  const auto got = nlohmann::json::parse(replay.out);
  EXPECT_EQ(got["time"], expected["time"]);
  EXPECT_EQ(got["gpus"], expected["gpus"]);
}

TEST_F(CommandsTest, ANeutralCopyKeepsTheNumbersAndLosesTheNames) {
  ASSERT_EQ(Call({"record", Path("a"), "--source", "simulator=demo", "--for", "30s"}).exit_code, 0);
  ASSERT_EQ(Call({"record", Path("n"), "--source", "replay=" + Path("a"), "--neutral"}).exit_code,
            0);
  const auto original =
      nlohmann::json::parse(Call({"snapshot", "--source", "replay=" + Path("a"), "--json"}).out);
  const Outcome neutral = Call({"snapshot", "--source", "replay=" + Path("n"), "--json"});
  const auto copy = nlohmann::json::parse(neutral.out);
  EXPECT_EQ(copy["node"]["hostname"], "host-1");
  for (const auto& gpu : original["gpus"]) {
    EXPECT_EQ(neutral.out.find(gpu["uuid"].get<std::string>()), std::string::npos);
    for (const auto& process : gpu["processes"]) {
      EXPECT_EQ(neutral.out.find(process["name"].get<std::string>()), std::string::npos);
    }
  }
  EXPECT_EQ(copy["gpus"][0]["power_watts"], original["gpus"][0]["power_watts"]);
  EXPECT_EQ(copy["gpus"][0]["processes"][0]["memory_used_bytes"],
            original["gpus"][0]["processes"][0]["memory_used_bytes"]);
}

TEST_F(CommandsTest, ARecordingMayBeCalledLikeItsScenario) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(Path("xid")).parent_path());
  const Outcome run = Call({"record", "xid", "--source", "simulator=xid", "--for", "2s"});
  std::filesystem::current_path(before);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("xid: 3 frames, ")) << run.out;
}

TEST_F(CommandsTest, ARecordingThatCouldNotBeginLeavesNoFile) {
  const Outcome run = Call({"record", Path("a"), "--source", "replay=" + Path("absent")});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "gpuassay record: " + Path("absent") +
                         ": cannot open the recording: No such file or directory\n");
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

TEST_F(CommandsTest, BadInputIsOneLineAndCode2) {
  std::ofstream(Path("text")) << "this is no recording";
  const std::vector<std::vector<std::string>> cases = {
      {"snapshot", "--source", "nmvl"},
      {"snapshot", "--source", "replay=" + Path("text")},
      {"snapshot", "--source", "nvml=" + Path("absent.so")},
      {"snapshot", "--source", "simulator=no-such-scenario"},
      {"snapshot", "--source", "simulator=demo", "--interval", "1ms"},
      {"snapshot", "--source", "simulator=demo", "--at", "yesterday"},
      {"snapshot", "--source", "nvml", "--at", "1m"},
      {"simulate", "demo", "--every", "0"},
      {"simulate", "demo", "--for", "100d", "--every", "100ms"},
      {"explain", "no_such_metric"},
      {"explain", "missing", "--source", "nmvl"},
      {"record", Path("new"), "--source", "simulator="},
  };
  for (const auto& arguments : cases) {
    const Outcome run = Call(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments.back() << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_TRUE(run.err.starts_with("gpuassay " + arguments[0] + ": ")) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(CommandsTest, ExplainMissingReadsTheSource) {
  const Outcome run = Call({"explain", "missing", "--source", "simulator=old-driver"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("driver_too_old\n"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("Functions that the installed driver library lacks\n"), std::string::npos);
}

// A driver that never answers must not make a command hang; the library is the simulated one, in
// real time, a hundred times as fast.
TEST_F(CommandsTest, ADriverThatHangsIsAFailureAndNotAHang) {
  const std::string library = GPUASSAY_BINARY_DIR "/sim/libnvidia-ml.so.1";
  ASSERT_TRUE(std::filesystem::exists(library)) << library;
  setenv("GPUASSAY_SIM_SCENARIO", FindScenario("driver-hang-forever")->c_str(), 1);
  setenv("GPUASSAY_SIM_SPEED", "100", 1);
  const Outcome run = Call({"snapshot", "--source", "nvml=" + library, "--timeout", "1s"});
  unsetenv("GPUASSAY_SIM_SCENARIO");
  unsetenv("GPUASSAY_SIM_SPEED");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err,
            "gpuassay snapshot: the driver has not answered for 2s; look into the kernel log "
            "(dmesg) for NVRM lines\n");
}

TEST_F(CommandsTest, MetricsIsATableJsonOrMarkdown) {
  EXPECT_TRUE(Call({"metrics"}).out.starts_with("Metric "));
  EXPECT_TRUE(Call({"metrics", "--json"}).out.starts_with("[\n"));
  EXPECT_TRUE(Call({"metrics", "--markdown"}).out.starts_with("# Metrics\n"));
  EXPECT_EQ(Call({"metrics", "--json", "--markdown"}).exit_code, 2);
}

TEST(ScenarioFiles, AreFoundByNameOrPath) {
  const auto by_name = FindScenario("demo");
  ASSERT_TRUE(by_name) << by_name.error().what;
  EXPECT_EQ(FindScenario(*by_name).value_or(""), *by_name);
  EXPECT_FALSE(FindScenario("../scenarios/demo"));
  EXPECT_FALSE(FindScenario(""));
}

TEST(ScenarioRun, TimeNeverGoesBack) {
  auto run = ScenarioRun::Open("tiny-kernels");
  ASSERT_TRUE(run) << run.error().what;
  const Snapshot later = run->ReadAt(std::chrono::seconds(10));
  EXPECT_EQ(run->ReadAt(std::chrono::seconds(5)).time, later.time);
  EXPECT_EQ(run->now(), std::chrono::seconds(10));
}

}  // namespace
}  // namespace gpuassay
