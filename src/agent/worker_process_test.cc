#include "agent/worker_process.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <thread>

#include "agent/script_worker.h"

namespace gpuassay {
namespace {

// Waits for something that must happen; only a bug takes that long.
template <class Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::unique_ptr<WorkerProcess> Start(const std::string& program) {
  Result<std::unique_ptr<WorkerProcess>> worker = WorkerProcess::Start(program, {});
  EXPECT_TRUE(worker.has_value());
  return std::move(*worker);
}

// All frames until the end of the stream, as text.
std::string Frames(WorkerProcess& worker) {
  FrameReader reader;
  const bool ended = Eventually([&] { return !worker.Receive(reader); });
  EXPECT_TRUE(ended);
  std::string text;
  for (;;) {
    Result<std::optional<Frame>> frame = reader.Next();
    if (!frame || !frame->has_value()) return text;
    text += static_cast<char>((*frame)->kind);
    text += std::string((*frame)->payload) + ";";
  }
}

TEST(WorkerArguments, SayEverythingTheWorkerNeeds) {
  WorkerOptions options;
  options.source = {SourceSpec::Kind::kReplay, "x.rec"};
  options.hostname = "node-1";
  options.gpus_to_skip = {3, 5};
  std::string joined;
  for (const std::string& argument : WorkerArguments(options)) joined += argument + " ";
  EXPECT_EQ(joined,
            "gpuassay driver-worker --source replay=x.rec --hostname node-1 --interval-us 1000000 "
            "--simulator-speed 1 --frames-fd 3 --watch-fd 4 --skip-gpu 3 --skip-gpu 5 ");
}

TEST(WorkerProcess, HandsOverFramesAndTheExitCode) {
  ScriptWorker script;
  const auto worker =
      Start(script.Program("printf 'E\\003\\000\\000\\000abcS\\002\\000\\000\\000xy' >&3; exit 4"));
  EXPECT_EQ(Frames(*worker), "Eabc;Sxy;");
  EXPECT_TRUE(Eventually([&] { return worker->TryReap().has_value(); }));
  EXPECT_EQ(worker->TryReap(), 4);
}

TEST(WorkerProcess, ReportsTheSignalThatEndedIt) {
  ScriptWorker script;
  const auto worker = Start(script.Program("exec sleep 60"));
  EXPECT_FALSE(worker->TryReap().has_value());
  worker->Kill();
  EXPECT_TRUE(Eventually([&] { return worker->TryReap().has_value(); }));
  EXPECT_EQ(worker->TryReap(), 128 + 9);
}

TEST(WorkerProcess, TheWorkerSeesTheEndOfTheSocketWhenAskedToEnd) {
  ScriptWorker script;
  const auto worker = Start(script.Program("cat <&3 >/dev/null; exit 7"));
  worker->AskToEnd();
  EXPECT_EQ(worker->fd(), -1);
  EXPECT_TRUE(Eventually([&] { return worker->TryReap().has_value(); }));
  EXPECT_EQ(worker->TryReap(), 7);
}

TEST(WorkerProcess, NoCallIsUnderWayBeforeTheFirst) {
  ScriptWorker script;
  const auto worker = Start(script.Program("exit 0"));
  EXPECT_FALSE(worker->function_under_way().has_value());
  EXPECT_FALSE(worker->gpu_under_way().has_value());
  EXPECT_TRUE(Eventually([&] { return worker->TryReap().has_value(); }));
}

TEST(WorkerProcess, SaysWhyItCannotStart) {
  const auto worker = WorkerProcess::Start("/nowhere/worker", {});
  ASSERT_FALSE(worker.has_value());
  EXPECT_EQ(worker.error().what,
            "cannot start the driver worker: /nowhere/worker: No such file or directory");
}

}  // namespace
}  // namespace gpuassay
