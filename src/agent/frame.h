// Frames between the driver worker and the serving process: kind, length, payload. The reader takes
// bytes as they come and trusts none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuassay {

enum class FrameKind : std::uint8_t {
  kSnapshot = 'S',  // payload: snapshot_codec.h
  kFailure = 'E',   // payload: one line; the worker ends after it
};

struct Frame {
  FrameKind kind = FrameKind::kSnapshot;
  std::string payload;
};

inline constexpr std::size_t kFrameHeaderBytes = 5;
inline constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20;

// Kind byte and length in little-endian order; the payload follows.
std::string FrameHeader(FrameKind kind, std::size_t payload_bytes);

class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame; nullopt when more bytes are needed; kMalformed for an unknown kind or a
  // length over kFrameBytesMax, after which the stream is of no use.
  Result<std::optional<Frame>> Next();

 private:
  std::string buffer_;
};

}  // namespace gpuassay
