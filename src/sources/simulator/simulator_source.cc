#include "sources/simulator/simulator_source.h"

#include <utility>

#include "base/check.h"
#include "sim/driver/driver.h"
#include "sources/nvml/nvml_source.h"
#include "sources/simulator/real_time.h"

namespace gpuassay {
namespace {

constexpr std::string_view kName = "simulator";

std::unique_ptr<Source> OpenInstalled(const Clock& clock, std::string hostname) {
  NvmlOptions options;
  options.resolve = [](const char* function) { return sim::Resolve(function); };
  options.source_name = kName;
  options.hostname = std::move(hostname);
  options.clock = &clock;
  auto source = OpenNvml(std::move(options));
  Check(source.has_value(), "the simulated driver has the required functions");
  return std::move(*source);
}

std::string HostnameOf(const sim::Scenario& scenario, std::string hostname) {
  return hostname.empty() ? scenario.hostname : std::move(hostname);
}

class VirtualSimulator final : public Source {
 public:
  VirtualSimulator(sim::Scenario scenario, VirtualClock& clock, std::string hostname)
      : time_(sim::MakeVirtualTime(clock)) {
    hostname = HostnameOf(scenario, std::move(hostname));
    sim::Install(sim::Engine(std::move(scenario)), *time_);
    driver_ = OpenInstalled(clock, std::move(hostname));
  }
  ~VirtualSimulator() override {
    driver_.reset();  // shuts the driver down while there still is one
    sim::Uninstall();
  }
  VirtualSimulator(const VirtualSimulator&) = delete;
  VirtualSimulator& operator=(const VirtualSimulator&) = delete;

  std::string_view name() const override { return kName; }
  Snapshot Read() override { return driver_->Read(); }
  bool NeedsNewProcess() const override { return driver_->NeedsNewProcess(); }

 private:
  std::unique_ptr<sim::TimeSource> time_;
  std::unique_ptr<Source> driver_;
};

class RealTimeSimulator final : public Source {
 public:
  RealTimeSimulator(sim::Scenario scenario, const Clock& clock, double speed, std::string hostname)
      : clock_(clock), scaled_(clock, speed), time_(scaled_) {
    hostname = HostnameOf(scenario, std::move(hostname));
    sim::Install(sim::Engine(std::move(scenario)), time_);
    driver_ = OpenInstalled(scaled_, std::move(hostname));
  }
  ~RealTimeSimulator() override {
    driver_.reset();
    sim::Uninstall();
  }
  RealTimeSimulator(const RealTimeSimulator&) = delete;
  RealTimeSimulator& operator=(const RealTimeSimulator&) = delete;

  std::string_view name() const override { return kName; }
  Snapshot Read() override;
  bool NeedsNewProcess() const override { return driver_->NeedsNewProcess(); }

 private:
  const Clock& clock_;
  ScaledClock scaled_;
  RealTime time_;
  std::unique_ptr<Source> driver_;
  std::optional<WallTime> last_success_;
};

// The story may run faster than the clock, but a snapshot is of the moment in which it was read.
Snapshot RealTimeSimulator::Read() {
  const WallTime wall = clock_.Wall();
  const SteadyTime steady = clock_.Steady();
  Snapshot snapshot = driver_->Read();
  snapshot.time = wall;
  snapshot.steady = steady;
  for (DriverEvent& event : snapshot.events) event.time = wall;
  for (SourceStatus& source : snapshot.sources) {
    if (source.error.empty()) last_success_ = wall;
    source.last_success = last_success_;
    source.readings.duration_seconds = Seconds(clock_.Steady() - steady);
  }
  return snapshot;
}

}  // namespace

std::unique_ptr<Source> MakeSimulator(sim::Scenario scenario, VirtualClock& clock,
                                      std::string hostname) {
  return std::make_unique<VirtualSimulator>(std::move(scenario), clock, std::move(hostname));
}

std::unique_ptr<Source> MakeRealTimeSimulator(sim::Scenario scenario, const Clock& clock,
                                              double speed, std::string hostname) {
  return std::make_unique<RealTimeSimulator>(std::move(scenario), clock, speed,
                                             std::move(hostname));
}

}  // namespace gpuassay
