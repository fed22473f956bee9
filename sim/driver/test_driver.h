// For the tests of this folder: a scenario in text, installed in process on virtual time.
#pragma once

#include <memory>
#include <string_view>

#include "sim/driver/core.h"

namespace gpuassay::sim {

class TestDriver {
 public:
  // Installs the scenario; `initialize` false leaves nvmlInit to the test.
  explicit TestDriver(std::string_view yaml, bool initialize = true);
  ~TestDriver();
  TestDriver(const TestDriver&) = delete;
  TestDriver& operator=(const TestDriver&) = delete;

  void AdvanceTo(Duration t) { clock_.AdvanceTo(t); }
  Duration Now() const { return clock_.Elapsed(); }
  nvmlDevice_t Gpu(unsigned int index) const;
  nvmlDevice_t Mig(unsigned int gpu, unsigned int index) const;

 private:
  VirtualClock clock_;
  std::unique_ptr<TimeSource> time_;
};

}  // namespace gpuassay::sim
