// Reads a recording frame by frame from any supply of bytes. Nothing in the bytes can make it crash
// or take more than a few times kFrameBytesMax of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "model/snapshot.h"

struct ZSTD_DCtx_s;

namespace gpuassay {

// Not thread-safe.
class RecordingReader {
 public:
  // Fills the buffer as far as it can and returns the number of bytes; 0 at the end.
  using ReadBytes = std::move_only_function<Result<std::size_t>(std::span<char>)>;

  // kMalformed when the bytes do not begin as a recording does; what ReadBytes returns otherwise.
  static Result<std::unique_ptr<RecordingReader>> Open(ReadBytes read);
  ~RecordingReader();

  // The next frame; nullopt behind the last one. kMalformed when the recording ends without its end
  // mark or is damaged ("byte N: ..."); after an error or the end, no further frame comes.
  Result<std::optional<Snapshot>> Next();

  bool neutral() const { return neutral_; }
  std::uint64_t frames() const { return frames_; }  // returned so far

 private:
  explicit RecordingReader(ReadBytes read);
  Result<void> ReadHeader();
  // Decompresses until `plain_` holds `size` bytes.
  Result<void> FillPlain(std::size_t size);
  Result<void> FillInput();
  Error Damaged(std::string_view what) const;

  ReadBytes read_;
  std::unique_ptr<ZSTD_DCtx_s, void (*)(ZSTD_DCtx_s*)> decompressor_;
  std::string input_;               // compressed bytes read but not consumed from input_at_ on
  std::size_t input_at_ = 0;        //
  std::uint64_t input_offset_ = 0;  // of input_[0] in the recording
  std::string plain_;               // decompressed bytes not yet consumed
  std::string chunk_;
  bool neutral_ = false;
  bool ended_ = false;
  std::uint64_t frames_ = 0;
};

}  // namespace gpuassay
