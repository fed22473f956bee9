// A small node for the tests: one whole H100, one divided one.
#pragma once

#include <chrono>
#include <string>

#include "model/snapshot.h"

namespace gpuassay {

inline constexpr double kMebibyte = 1024.0 * 1024.0;

inline Gpu ExampleGpu() {
  Gpu gpu;
  gpu.identity.index = 0;
  gpu.identity.uuid = "GPU-00000000-0000-4000-8000-000000000001";
  gpu.identity.pci_bus_id = "00000000:1A:00.0";
  gpu.identity.name = "NVIDIA H100 80GB HBM3";
  gpu.identity.serial = "1650522000001";
  gpu.identity.architecture = "Hopper";
  gpu.identity.minor_number = 3;
  GpuReadings& readings = gpu.readings;
  readings.up = 1;
  readings.observed_seconds_total = 10;
  readings.utilization_ratio = 0.96;
  readings.sm_active_ratio = 0.874213;
  readings.sm_clock_hertz = 1.98e9;
  readings.memory_total_bytes = 81559 * kMebibyte;
  readings.memory_used_bytes = 63488 * kMebibyte + 1000;
  readings.memory_free_bytes = 17551 * kMebibyte - 1000;
  readings.memory_reserved_bytes = 520 * kMebibyte;
  readings.power_watts = 320.125;
  readings.energy_joules_total = 3200.5;
  readings.driver_energy_joules = 123456.789;
  readings.temperature_celsius = 41;
  readings.throttled_power_brake_seconds_total = 1.5;
  readings.driver_throttled_power_seconds = 2.5;
  return gpu;
}

inline Gpu ExampleMigGpu() {
  Gpu gpu;
  gpu.identity.index = 1;
  gpu.identity.uuid = "GPU-00000000-0000-4000-8000-000000000002";
  gpu.identity.pci_bus_id = "00000000:3B:00.0";
  gpu.identity.name = "NVIDIA H100 80GB HBM3";
  gpu.readings.up = 1;
  gpu.readings.utilization_ratio = Missing::kNotSupported;
  gpu.readings.power_watts = 200;
  gpu.readings.memory_used_bytes = 1000 * kMebibyte;
  for (std::uint32_t i = 0; i < 3; ++i) {
    MigInstance instance;
    // The second and third are compute instances of one GPU instance.
    instance.identity.index = i;
    instance.identity.gpu_instance_id = i == 0 ? 7 : 1;
    instance.identity.compute_instance_id = i == 2 ? 1 : 0;
    instance.identity.uuid = "MIG-" + std::to_string(i);
    instance.identity.profile = i == 0 ? "1g.10gb" : "1c.3g.40gb";
    instance.readings.memory_used_bytes = (i == 0 ? 300 : 700) * kMebibyte;
    instance.readings.sm_active_ratio = 0.25;
    gpu.mig.push_back(instance);
  }
  return gpu;
}

inline Snapshot ExampleSnapshot() {
  Snapshot snapshot;
  snapshot.time = WallTime(std::chrono::seconds(1'700'000'000));
  snapshot.node.hostname = "node1";
  snapshot.node.driver_version = "570.86.15";
  snapshot.node.nvml_version = "12.570.86.15";
  snapshot.node.cuda_version = "12.8";
  snapshot.gpus.push_back(ExampleGpu());
  snapshot.gpus.push_back(ExampleMigGpu());
  return snapshot;
}

}  // namespace gpuassay
