// The processes on a GPU: compute, graphics and MPS lists joined, each process once.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/snapshot.h"
#include "sources/nvml/cycle.h"
#include "sources/nvml/device_calls.h"
#include "sources/nvml/mig.h"
#include "sources/nvml/process_names.h"

namespace gpuassay {

class ProcessLists {
 public:
  // Fills gpu.processes (identity and memory), processes_dropped, readings.process_count and the
  // counts of gpu.mig. In MIG mode the GPU itself is asked first, and the instances when it
  // refuses.
  void Read(DeviceCalls& calls, std::span<const Mig::Instance> mig, ProcessNames& names, Gpu& gpu);

 private:
  enum Kind : std::uint8_t { kCompute = 1, kGraphics = 2, kMps = 4 };
  struct Row {
    std::uint32_t pid = 0;
    std::uint32_t gpu_instance_id = 0;
    std::uint32_t compute_instance_id = 0;
    Reading memory;
    std::uint8_t kinds = 0;
  };

  nvmlReturn_t AskGpu(DeviceCalls& calls, Kind kind);
  nvmlReturn_t AskInstance(DeviceCalls& calls, Kind kind, const Mig::Instance& instance);
  template <NvmlFunction F, class Info>
  nvmlReturn_t Fill(DeviceCalls& calls, nvmlDevice_t device, bool remember, Kind kind,
                    std::vector<Info>& buffer);
  template <NvmlFunction V3, NvmlFunction V2, NvmlFunction V1>
  nvmlReturn_t FillNewest(DeviceCalls& calls, nvmlDevice_t device, bool remember, Kind kind);
  nvmlReturn_t AskKind(DeviceCalls& calls, Kind kind, nvmlDevice_t device, bool remember);
  void AddRow(const nvmlProcessInfo_t& info, Kind kind);
  void AddRow(const nvmlProcessInfo_v1_t& info, Kind kind);
  void Join();
  void Publish(ProcessNames& names, Gpu& gpu) const;

  std::vector<nvmlProcessInfo_t> buffer_;
  std::vector<nvmlProcessInfo_v1_t> old_buffer_;
  std::vector<Row> rows_;
};

}  // namespace gpuassay
