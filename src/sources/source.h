// Where snapshots come from: the live driver, the simulator, a recording. Everything behind a
// Source is the same code for all of them.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "model/snapshot.h"

namespace gpuassay {

class Source {
 public:
  virtual ~Source() = default;

  virtual std::string_view name() const = 0;

  // One reading of everything. Never fails as a whole: what could not be read is missing with its
  // reason, and `sources[0]` tells success, duration and error. May block for as long as the driver
  // does, which is why the agent calls it in a child process. kDerived fields are left alone.
  virtual Snapshot Read() = 0;

  // True when no further reading will come (the end of a recording).
  virtual bool AtEnd() const { return false; }

  // True when only a new process can go on (driver library and kernel module differ after an
  // upgrade).
  virtual bool NeedsNewProcess() const { return false; }
};

}  // namespace gpuassay
