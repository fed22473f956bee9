// Recordings: what the sources read, frame by frame, zstd-compressed. A recorded incident is a
// test. docs/record-format.md describes the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "model/snapshot.h"
#include "sources/source.h"

namespace gpuassay {

// Not thread-safe.
class RecordingWriter {
 public:
  struct Options {
    // Replaces what identifies a site: host name, UUIDs, serials, PCI addresses, PIDs, process
    // names and the texts of errors, by stable stand-ins of the same form. Times stay.
    bool neutral = false;
  };
  // kIo, kPermission: the file cannot be made; it is never overwritten unless it is empty.
  static Result<std::unique_ptr<RecordingWriter>> Create(const std::string& path, Options options);
  // Closes the file if Close() was not called.
  virtual ~RecordingWriter() = default;
  // Hands the frame to the kernel before it returns: a crash of the program loses no frame that was
  // written, only one that was being written. kIo; after an error the file stays readable up to
  // the frame before.
  virtual Result<void> Write(const Snapshot& snapshot) = 0;
  // Ends the file and syncs it. A file that was cut off (crash) can still be read up to there.
  virtual Result<void> Close() = 0;

  virtual std::uint64_t frames() const = 0;
  virtual std::uint64_t file_bytes() const = 0;
};

enum class ReplayPace {
  // Frames arrive when they did, from the first Read() on, as if it all happened now: every time is
  // moved by the same amount, so that ages are true. Read() does not wait: it returns the newest
  // frame that is due, with the events of frames that nobody read; between frames the last one
  // again, without its events, so that nothing is counted twice.
  kRecorded,
  kAsFastAsRead,  // each Read() is the next frame, with its recorded times
};

// kNotFound, kPermission, kIo, kMalformed (not a recording, or not one whole frame; which byte).
// Snapshots keep their recorded sources; a source "replay" is added that counts the frames. A torn
// or damaged end is its error, in the last snapshot only. AtEnd() is true as soon as the last frame
// has been returned.
Result<std::unique_ptr<Source>> OpenReplay(const std::string& path, ReplayPace pace,
                                           const Clock& clock);

}  // namespace gpuassay
