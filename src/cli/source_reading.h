// How commands read a source: one moment of it, or a scenario in virtual time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/completion.h"
#include "agent/node_join.h"
#include "agent/source_spec.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/snapshot.h"
#include "sources/source.h"

namespace gpuassay {

// A scenario on virtual time: an hour in a moment, and the same every time. One per process at a
// time (sources/simulator).
class ScenarioRun {
 public:
  // `name_or_path` as in FindScenario. kMalformed with file, line and column.
  static Result<ScenarioRun> Open(const std::string& name_or_path, const NodeOptions& node = {});

  // The driver's state at scenario time `t` with the owners of its processes, integrated since the
  // first reading. Time never goes back: an earlier `t` reads the present again.
  Snapshot ReadAt(Duration t);
  // The same without the integrals and shares.
  Snapshot ReadJoinedAt(Duration t);

  Duration length() const { return length_; }  // that the scenario suggests
  Duration now() const { return clock_->Elapsed(); }
  const std::string& name() const { return name_; }

 private:
  ScenarioRun() = default;
  Snapshot ReadSourceAt(Duration t);

  std::string name_;
  Duration length_ = {};
  std::unique_ptr<VirtualClock> clock_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<SystemClock> system_clock_;  // of the servers around the scenario
  std::unique_ptr<Completion> completion_;
};

struct MomentRequest {
  SourceSpec source;
  NodeOptions node;
  // Between the two readings: rates and profiling metrics are differences.
  Duration interval = std::chrono::seconds(1);
  // Time since the start of a scenario or recording; by default one minute and the end. kMalformed
  // for a live driver.
  std::optional<Duration> at;
  // For a live driver, which can block for ever in the kernel. It is called in a child process.
  Duration timeout = std::chrono::seconds(15);
};

// Reads twice (a recording: from its start) and integrates. kMalformed when the source's argument
// is wrong, kTimeout when the driver does not answer. A driver that answers with errors is no error
// here: it stands in the snapshot's sources.
Result<Snapshot> ReadMoment(const MomentRequest& request);

// A file or library that was named but is not there is bad input.
Error BadSourceArgument(const SourceSpec& spec, Error error);

// NODE_NAME or this machine's name.
std::string ThisHost();

}  // namespace gpuassay
