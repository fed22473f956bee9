// The readings of one GPU that are single calls or single fields, by pace. Rates, links, MIG and
// processes have files of their own.
#pragma once

#include "model/snapshot.h"
#include "sources/nvml/device_calls.h"
#include "sources/nvml/fields.h"

namespace gpuassay {

// Puts the fields of the table of each pace at the front of the batch, which is empty.
void AddFastFields(FieldBatch& batch);
void AddSlowFields(FieldBatch& batch);
// Places of these in the batches: counters of PCIe bytes behind the table of the fast pace.
struct PcieFields {
  std::size_t transmit = 0, receive = 0;
};
PcieFields AddPcieCounters(FieldBatch& batch);

// The answers of the batch, and single functions for those that it does not have.
void ReadFastFields(DeviceCalls& calls, const FieldBatch& batch, GpuReadings& readings);
void ReadSlowFields(const FieldBatch& batch, GpuReadings& readings);
// The place of the number of NVLinks among the fields of the slow pace.
Reading LinkCountField(const FieldBatch& batch);

void ReadFastCalls(DeviceCalls& calls, GpuReadings& readings);
void ReadSlowCalls(DeviceCalls& calls, GpuReadings& readings);

// Thresholds, from the classic call or from margins; after the temperatures of the same cycle.
void ReadThresholds(DeviceCalls& calls, const FieldBatch& slow, GpuReadings& readings);

// Models that report margins (T.Limit: Ada, Hopper and newer) tell how far the GPU is from the
// point where it begins to slow down (`margin`), and each threshold as its distance from that
// point, counted the same way: 0 the point itself, -2 two degrees hotter. So a threshold in degrees
// is temperature + margin - tlimit. H200 at 28 C, margin 59: max operating (0) 87 C, slowdown (-2)
// 89 C, shutdown (-8) 95 C.
Reading ThresholdFromMargin(const Reading& temperature, const Reading& margin,
                            const Reading& tlimit);

// The driver rounds temperature and margin each by itself, so that a computed threshold wobbles by
// a degree: a former one that close stays.
Reading SteadyThreshold(const Reading& former, const Reading& computed);

}  // namespace gpuassay
