// Frames between the driver worker and the serving process: kind, length, payload. The reader takes
// bytes as they come and trusts none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuassay {

enum class FrameKind : std::uint8_t {
  kSnapshot = 'S',  // payload: snapshot_codec.h
  kFailure = 'E',   // payload: one line; the worker ends after it
};

struct Frame {
  FrameKind kind = FrameKind::kSnapshot;
  std::string_view payload;  // valid until the reader takes in more bytes
};

inline constexpr std::size_t kFrameHeaderBytes = 5;
inline constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20;

// Writes the header over the first kFrameHeaderBytes of `frame`, whose payload follows them
// already: a frame is sent in one piece, so that the other side wakes up once.
void FinishFrame(FrameKind kind, std::string& frame);

class FrameReader {
 public:
  // Memory for at least `bytes_min` more bytes, to be filled from its beginning; then Filled() says
  // how many there are.
  std::span<char> Space(std::size_t bytes_min);
  void Filled(std::size_t bytes) { end_ += bytes; }
  // The next whole frame; nullopt when more bytes are needed; kMalformed for an unknown kind or a
  // length over kFrameBytesMax, after which the stream is of no use.
  Result<std::optional<Frame>> Next();
  void Clear() { begin_ = end_ = 0; }

 private:
  std::vector<char> buffer_;  // keeps its size: frames are much alike
  std::size_t begin_ = 0;     // of what is not yet handed out
  std::size_t end_ = 0;
};

}  // namespace gpuassay
