// One GPU of the engine: advances its DeviceState tick by tick.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "sim/engine/conditions.h"
#include "sim/engine/engine.h"
#include "sim/engine/hash.h"
#include "sim/engine/physics.h"
#include "sim/engine/timeline.h"

namespace gpuassay::sim {

inline constexpr std::size_t kProcessSamplesMax = 8192;  // of a device
inline constexpr std::size_t kEventsMax = 1024;          // kept per device; the oldest go first

class Device {
 public:
  // `scenario` must outlive this.
  Device(const Scenario& scenario, std::uint32_t index);

  // From TickTime(tick - 1) to TickTime(tick), writing into `state`, which is this device's.
  void Advance(std::uint64_t tick, DeviceState& state);

  // The state at time zero.
  DeviceState Start();

  const std::deque<DeviceEvent>& events() const { return events_; }

 private:
  // The whole GPU, or one MIG instance.
  struct Share {
    Load load = {};           // before sharing: what is asked for
    Load done = {};           // what is done
    double part = 1;          // of what is asked for that is done
    double sm = 1;            // share of the GPU's SMs
    double dram = 1;          // and of its memory slices
    double not_resident = 1;  // product over its processes
  };
  struct Program {
    Timeline timeline;
    bool alive = false;
    Load load = {};  // asked for
    double memory_bytes = 0;
  };

  struct LinkBytes {
    double transmit = 0, receive = 0;
  };

  void UpdateFaults(Duration begin, Duration end, DeviceState& state);
  void Emit(Duration at, std::uint64_t type, std::uint64_t data);
  // What happens at once in (begin, end].
  void EmitMoments(Duration begin, Duration end, DeviceState& state);
  void UpdateMig(Duration at, DeviceState& state);
  void UpdatePrograms(Duration at, DeviceState& state);
  bool Runs(const Program& program, Duration at, const DeviceState& state) const;
  std::size_t ShareOf(const Program& program) const;

  void UpdateLoads(Duration begin, Duration end, double clock);
  void SumShares();
  void WaitForLinks();
  void UpdateClocks(Duration begin, Duration end, DeviceState& state);
  double TargetClock(DeviceState& state);
  double CapPower(Duration begin, Duration end, double mhz, DeviceState& state);
  void UpdateHeat(DeviceState& state);
  void UpdateIdle(DeviceState& state);
  void UpdateEnergy(DeviceState& state);
  void UpdateLinkState(DeviceState& state);
  void CountLinks(DeviceState& state);
  void UpdateHealth(DeviceState& state);
  void UpdateTotals(DeviceState& state);
  void UpdateSamples(Duration at, DeviceState& state);
  void SampleProcesses(Duration at, double utilization, DeviceState& state);
  void AddGarbage(Duration at, DeviceState& state);
  void UpdateMemory(DeviceState& state);
  double Noise(NoiseChannel channel) const;

  const Scenario* scenario_;
  const GpuModel* model_;
  std::uint32_t index_;
  std::uint64_t tick_ = 0;
  double tick_seconds_ = 0;
  std::vector<const Fault*> faults_;
  Conditions conditions_;
  std::vector<Program> programs_;
  std::vector<Share> shares_;
  Load load_ = {};                          // of the whole GPU
  double pcie_room_ = 0, nvlink_room_ = 0;  // bytes per second, one direction
  std::deque<DeviceEvent> events_;
  const Fault* mig_layout_ = nullptr;
  Duration mig_since_ = {};
  std::uint32_t mig_generation_ = 0;

  std::vector<LinkBytes> link_bytes_;

  bool awake_ = false;
  std::uint32_t quiet_ticks_ = 0;
  double thermal_ceiling_mhz_ = 0;
  bool hardware_thermal_ = false;
  bool shut_down_ = false;
  Heat heat_;
  std::array<double, 6> powers_ = {};
  std::size_t powers_count_ = 0;
  double window_resident_ = 0, window_dram_ = 0;  // sums of the sampler's present window
  std::uint32_t window_ticks_ = 0;
  std::vector<Load> window_programs_;
};

}  // namespace gpuassay::sim
