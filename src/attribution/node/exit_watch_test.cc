#include "attribution/node/exit_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/temporary_directory.h"

namespace gpuassay {
namespace {

// A process that waits until it is ended.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Child() {
    End();
    if (!reaped_) waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  void End() {
    if (!reaped_) kill(pid_, SIGKILL);
  }
  void Reap() {
    waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }

 private:
  pid_t pid_;
  bool reaped_ = false;
};

// What has ended within five seconds, at least `count`.
std::vector<std::uint32_t> WaitForEnded(ExitWatch& watch, std::size_t count) {
  std::vector<std::uint32_t> ended;
  for (int i = 0; i < 5000 && ended.size() < count; ++i) {
    std::ranges::copy(watch.TakeEnded(), std::back_inserter(ended));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::ranges::sort(ended);
  return ended;
}

TEST(ExitWatch, TellsWhoHasEnded) {
  ExitWatch watch(*RootFs::Open("/"));
  Child a, b;
  if (!watch.Watch(a.pid())) return;  // a kernel without pidfd_open: then nothing is promised
  ASSERT_TRUE(watch.Watch(b.pid()));
  EXPECT_TRUE(watch.TakeEnded().empty());
  b.End();
  EXPECT_EQ(WaitForEnded(watch, 1), std::vector{b.pid()});
  EXPECT_TRUE(watch.TakeEnded().empty());
  a.End();
  a.Reap();
  EXPECT_EQ(WaitForEnded(watch, 1), std::vector{a.pid()});
  EXPECT_FALSE(watch.Watch(a.pid()));  // there is none
}

TEST(ExitWatch, ForgetsWhomNobodyAsksAbout) {
  ExitWatch watch(*RootFs::Open("/"));
  Child a;
  if (!watch.Watch(a.pid())) return;
  watch.Forget(a.pid());
  a.End();
  a.Reap();
  EXPECT_TRUE(watch.TakeEnded().empty());
}

TEST(ExitWatch, PidsOfAnotherRootAreOtherProcesses) {
  const TemporaryDirectory root;
  root.Write("proc/1/stat", "");
  ExitWatch watch(root.Root());
  EXPECT_FALSE(watch.Watch(static_cast<std::uint32_t>(getpid())));
  EXPECT_TRUE(watch.TakeEnded().empty());
}

TEST(ExitWatch, WatchesABoundedNumber) {
  ExitWatch watch(*RootFs::Open("/"), 2);
  Child a, b, c;
  if (!watch.Watch(a.pid())) return;
  EXPECT_TRUE(watch.Watch(b.pid()));
  EXPECT_FALSE(watch.Watch(c.pid()));
  b.End();
  EXPECT_EQ(WaitForEnded(watch, 1), std::vector{b.pid()});
  EXPECT_TRUE(watch.Watch(c.pid()));
}

}  // namespace
}  // namespace gpuassay
