// One GPU: everything that is read of it, and what has to be remembered between readings.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/snapshot.h"
#include "sources/nvml/counter_rate.h"
#include "sources/nvml/cycle.h"
#include "sources/nvml/device_calls.h"
#include "sources/nvml/fields.h"
#include "sources/nvml/gpm.h"
#include "sources/nvml/mig.h"
#include "sources/nvml/nvlink.h"
#include "sources/nvml/process_names.h"
#include "sources/nvml/process_utilization.h"
#include "sources/nvml/processes.h"
#include "sources/nvml/readings.h"
#include "sources/nvml/utilization.h"

namespace gpuassay {

class NvmlDevice {
 public:
  NvmlDevice(NvmlLibrary& library, std::uint32_t index, nvmlDevice_t handle, std::string uuid);

  // Enumeration found it at this place. Handles die with nvmlShutdown, not before.
  void Found(std::uint32_t index, nvmlDevice_t handle);
  // Enumeration could not reach it, or not find it any more (NVML_ERROR_GPU_IS_LOST). It keeps its
  // identity; Read() makes no calls until it is found again.
  void Unreachable(nvmlReturn_t why) { unreachable_ = why; }
  // Nothing may be called on it, because a call did not come back: it stands in the snapshot with
  // this reason, and it is not up.
  void Skip(Missing reason);

  // One reading into gpu(). The slow part is done when it is due: `slow_every` after the last one,
  // the first time early by `stagger`, so that the GPUs of a node take turns.
  void Read(const Cycle& cycle, Duration slow_every, Duration stagger, ProcessNames& names);
  // No reading was possible: all values of the snapshot are missing for this reason.
  void MarkUnread(Missing reason);

  void RequestSlow() { next_slow_.reset(); }

  const Gpu& gpu() const { return gpu_; }
  nvmlDevice_t handle() const { return calls_.handle(); }
  bool reachable() const { return unreachable_ == NVML_SUCCESS && !skipped_; }
  bool lost() const { return lost_; }
  std::uint64_t ignored_process_samples() const { return process_utilization_.ignored_samples(); }

 private:
  void ReadSlow();
  void ReadFast(const Cycle& cycle, ProcessNames& names);
  void ReadProfiling(const Cycle& cycle);
  void ReadPcieRates(const Cycle& cycle);
  void ReadSlowPcieRates();
  void ArrangeFields();
  void ArrangeMetrics();
  void CheckCounters();
  void Conclude();
  void SetLost(bool lost);

  Gpu gpu_;
  DeviceCalls calls_;
  nvmlReturn_t unreachable_ = NVML_SUCCESS;
  bool skipped_ = false;
  bool lost_ = false;
  bool identified_ = false;
  unsigned int architecture_ = 0;
  std::optional<SteadyTime> next_slow_;
  bool staggered_ = false;

  FieldBatch fast_, slow_;
  bool counters_ = false;  // the batch has the PCIe and NVLink counters
  bool rearrange_ = false;
  PcieFields pcie_;
  CounterRate pcie_transmit_, pcie_receive_;
  Reading pcie_transmit_slow_ = Missing::kNotSupported, pcie_receive_slow_ = Missing::kNotSupported;
  bool pcie_slow_wanted_ = false;
  NvLinks links_;
  GpmSupport gpm_support_;
  GpmSampler gpm_;
  std::optional<Missing> no_gpm_;
  UtilizationSamples utilization_;
  Mig mig_;
  ProcessLists process_lists_;
  ProcessUtilization process_utilization_;
};

}  // namespace gpuassay
