// The simulated NVIDIA driver: NVML's interface (functions.def) over an Engine. Two ways in:
//   * libnvidia-ml.so.1 (library.cc): real time x GPUASSAY_SIM_SPEED, scenario from the file
//     GPUASSAY_SIM_SCENARIO, start from GPUASSAY_SIM_START (seconds since 1970, with fraction) so
//     that several programs see the same moment; without it, the first nvmlInit of the process;
//   * in process: Install() with a clock, then Resolve() instead of dlsym.
#pragma once

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "sim/engine/engine.h"

namespace gpuassay::sim {

// Scenario time as the driver sees it.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual Duration Now() = 0;               // since the scenario's start
  virtual WallTime WallAt(Duration t) = 0;  // for time stamps
  // Blocks until scenario time `t` (a hanging call); kForever: never returns, in real time. In
  // virtual time it moves the clock, and kForever is answered with false: the call then fails with
  // a time-out.
  virtual bool WaitUntil(Duration t) = 0;
  // Scenario seconds per second of the caller: time-outs that callers give are in their own time.
  virtual double Speed() const { return 1; }
};

// Scenario time follows the clock's steady time. Virtual.
std::unique_ptr<TimeSource> MakeVirtualTime(VirtualClock& clock);

// Makes the driver of this process; replaces a previous one (its handles are dead). The TimeSource
// must stay alive as long as it is installed.
void Install(Engine engine, TimeSource& time);
void Uninstall();

// The function of that name as a pointer, or nullptr when the scenario's driver is too old to have
// it.
void* Resolve(std::string_view name);

// First driver branch that has the function; nullopt when the simulated driver does not implement
// it.
std::optional<std::uint32_t> IntroducedIn(std::string_view name);

}  // namespace gpuassay::sim
