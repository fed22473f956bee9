// Looks who has the device files of GPUs open (M26), in a thread of its own that may hang. That is
// to read the open files of all processes of the node, so it is done soon only when there is a
// reason: memory that no listed process holds, or a process that has left the driver's list, whose
// children may have stayed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attribution/join/leavable_thread.h"
#include "attribution/node/holders.h"
#include "base/clock.h"
#include "base/root_fs.h"
#include "model/snapshot.h"

namespace gpuassay {

struct HolderWatchOptions {
  std::uint32_t self_pid = 0;  // left out, with its children
  // At least so long between two looks; of 10,000 processes one takes half a second of one core.
  Duration interval = std::chrono::seconds(30);
  // Without a reason: who has a device open without holding memory keeps the driver from being
  // reloaded.
  Duration quiet_interval = std::chrono::minutes(5);
  // False: no thread; only Scan() looks, and may block.
  bool in_background = true;
};

// Not thread-safe.
class HolderWatch {
 public:
  HolderWatch(RootFs root, HolderWatchOptions options);
  ~HolderWatch();

  // Looks now, here. Only without a thread.
  void Scan();
  // Fills Gpu::holders: processes that have a GPU's device file open and are in no GPU's process
  // list. Left out are children of a listed process, which inherit its files: they hold memory only
  // once it has ended. At most kHoldersPerGpuMax per GPU, by PID. A snapshot may be a reason to
  // look.
  void Fill(Snapshot& snapshot);
  // What is wrong, one line; empty while all is well.
  std::string trouble() const;

 private:
  struct State;
  bool IsReason(const Snapshot& snapshot);
  static void ScanInto(const RootFs& root, std::uint32_t self_pid, ProcessOwners& owners,
                       State& state);

  RootFs root_;
  Proc proc_;
  HolderWatchOptions options_;
  SystemClock clock_;
  std::shared_ptr<State> state_;
  std::vector<std::uint32_t> listed_;      // PIDs of the last snapshot, ascending
  std::unique_ptr<ProcessOwners> owners_;  // without a thread
  std::unique_ptr<LeavableThread> thread_;
};

}  // namespace gpuassay
