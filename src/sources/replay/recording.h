// Recordings: what the sources read, frame by frame, zstd-compressed. A recorded incident is a
// test.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "model/snapshot.h"
#include "sources/source.h"

namespace gpuassay {

class RecordingWriter {
 public:
  struct Options {
    // Replaces what identifies a site: host name, UUIDs, serials, PCI addresses, PIDs and process
    // names, by stable stand-ins of the same form.
    bool neutral = false;
  };
  // kIo, kPermission: the file cannot be made; it is never overwritten unless it is empty.
  static Result<std::unique_ptr<RecordingWriter>> Create(const std::string& path, Options options);
  virtual ~RecordingWriter() = default;
  virtual Result<void> Write(const Snapshot& snapshot) = 0;
  // Ends the file and syncs it. A file that was cut off (crash) can still be read up to there.
  virtual Result<void> Close() = 0;
};

enum class ReplayPace {
  kRecorded,      // frames arrive when they did, from now on; Read() between frames repeats none
  kAsFastAsRead,  // each Read() is the next frame
};

// kNotFound, kMalformed (not a recording; which byte). Snapshots keep their recorded times. A torn
// end is reported once in the last snapshot's source status.
Result<std::unique_ptr<Source>> OpenReplay(const std::string& path, ReplayPace pace,
                                           const Clock& clock);

}  // namespace gpuassay
