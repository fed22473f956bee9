// Reads processes in a thread of its own, which is given up when one of them does not let itself be
// read. Nobody who asks ever waits longer than he says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attribution/join/leavable_thread.h"
#include "attribution/node/process_owners.h"
#include "base/clock.h"
#include "base/root_fs.h"

namespace gpuassay {

// Not thread-safe.
class ProcessReader {
 public:
  // A process that takes longer to read holds its memory lock: reading takes a millisecond.
  static constexpr Duration kGiveUpAfter = std::chrono::seconds(2);
  // Threads that hang at a time. With more, command lines and environments are not read.
  static constexpr std::size_t kLeftMax = 8;

  struct Answer {
    std::uint32_t pid = 0;
    // With the names of pod and container, as files of the node tell (node_names.h). Nullopt: the
    // process has ended.
    std::optional<LearnedProcess> learned;
    bool hangs = false;  // its environment and command line could not be read
  };

  explicit ProcessReader(RootFs root, Duration give_up_after = kGiveUpAfter);
  ~ProcessReader();

  // In this order; each is answered once for each time it was asked for.
  void Ask(const std::vector<std::uint32_t>& pids);
  // What has been read since the last call; waits until all is read, at most `wait`.
  std::vector<Answer> Take(Duration wait);
  // Threads that hang.
  std::size_t left() const { return left_.size(); }

 private:
  struct State;
  void StartThread();
  void GiveUp();

  RootFs root_;
  Duration give_up_after_;
  SystemClock clock_;
  std::shared_ptr<State> state_;
  std::unique_ptr<LeavableThread> thread_;
  std::vector<std::unique_ptr<LeavableThread>> left_;
};

}  // namespace gpuassay
