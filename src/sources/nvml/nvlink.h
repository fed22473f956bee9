// NVLinks of one GPU: state and rates every cycle, speed and errors at the slow pace.
#pragma once

#include <vector>

#include "model/snapshot.h"
#include "sources/nvml/counter_rate.h"
#include "sources/nvml/cycle.h"
#include "sources/nvml/fields.h"
#include "sources/nvml/gpm.h"

namespace gpuassay {

class NvLinks {
 public:
  // GPM tells the rates of this many links.
  static constexpr std::size_t kGpmLinksMax = 18;

  // How many links there are, from the answer of field NVLINK_LINK_COUNT, else by asking for the
  // state of one after the other. True when the number changed; gpu.links has then been made anew.
  bool Count(DeviceCalls& calls, const Reading& field, Gpu& gpu);

  // Adds the links' fields to the batches of the two paces. `counters`: the throughput counters
  // too, for GPUs whose rates GPM does not tell.
  void AddFields(FieldBatch& fast, FieldBatch& slow, bool counters);

  // Two metrics per link (RX, TX) for GPM.
  void AddMetrics(std::vector<unsigned int>& ids) const;

  // After the batches were asked. `first_metric`: place of the links' metrics in `gpm`.
  void ReadFast(DeviceCalls& calls, const Cycle& cycle, const FieldBatch& fast,
                const GpmSampler& gpm, std::size_t first_metric, Gpu& gpu);
  void ReadSlow(DeviceCalls& calls, const FieldBatch& slow, Gpu& gpu) const;

 private:
  struct Link {
    std::size_t state = 0, speed = 0, transmit = 0, receive = 0;  // places in the batches
    CounterRate transmit_rate, receive_rate;
  };
  Reading State(DeviceCalls& calls, const FieldBatch& fast, std::size_t link) const;

  std::vector<Link> links_;
  bool counters_ = false;
};

}  // namespace gpuassay
