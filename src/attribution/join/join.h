// Joins what the driver tells with what the node and the schedulers tell: each process of a
// snapshot gets its owner, start, name and pool, each GPU those who hold its device file, the
// snapshot the scheduler's view. The last step before the integrals.
//
// Nothing here waits for a process that does not let itself be read, a kubelet or an API server:
// what is not known yet is missing, and comes with a later snapshot.
#pragma once

#include <cstdint>
#include <memory>

#include "attribution/kubernetes/kubernetes.h"
#include "base/clock.h"
#include "base/root_fs.h"
#include "model/snapshot.h"
#include "progress/memory_report.h"

namespace gpuassay {

struct JoinOptions {
  RootFs root;                                          // where /proc and the files of runtimes are
  std::uint32_t self_pid = 0;                           // 0: not in this root
  Duration holder_interval = std::chrono::seconds(30);  // between looks at open device files
  const MemoryReports* reports = nullptr;               // outlives the join; null: none can come
  const Clock* clock = nullptr;                         // of the reports; outlives the join
  // Longest that Apply() waits for processes it has not seen before, so that a first snapshot is
  // complete as a rule: reading one takes a millisecond.
  Duration wait_for_new = std::chrono::milliseconds(100);
  // False: for one-shot commands. Holders are only looked for by LookForHolders().
  bool in_background = true;
};

// Not thread-safe.
class Join {
 public:
  explicit Join(JoinOptions options);
  ~Join();

  // From now on pods and devices are asked of this one; null: of nobody. What the last one told is
  // forgotten when this one knows something.
  void SetKubernetes(std::unique_ptr<Kubernetes> kubernetes);

  // Looks for holders here and now, which may block; without it, when not in the background, there
  // are none.
  void LookForHolders();

  // Fills GpuProcess::start_after_boot, owner, name (when the driver has none) and pool readings,
  // Gpu::holders and Snapshot::scheduler; appends a source "procfs" and those of Kubernetes. What
  // was there of these is replaced.
  void Apply(Snapshot& snapshot);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuassay
