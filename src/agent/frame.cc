#include "agent/frame.h"

#include <fmt/format.h>

#include "base/check.h"

namespace gpuassay {

std::string FrameHeader(FrameKind kind, std::size_t payload_bytes) {
  Check(payload_bytes <= kFrameBytesMax, "frame too long");
  std::string header(1, static_cast<char>(kind));
  for (int shift = 0; shift < 32; shift += 8) {
    header.push_back(static_cast<char>((payload_bytes >> shift) & 0xFF));
  }
  return header;
}

Result<std::optional<Frame>> FrameReader::Next() {
  if (buffer_.size() < kFrameHeaderBytes) return std::optional<Frame>();
  const auto kind = static_cast<FrameKind>(buffer_[0]);
  if (kind != FrameKind::kSnapshot && kind != FrameKind::kFailure) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("unknown frame kind {}", static_cast<unsigned>(kind)));
  }
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length |= std::size_t{static_cast<unsigned char>(buffer_[1 + i])} << (8 * i);
  }
  if (length > kFrameBytesMax) {
    return Fail(ErrorCode::kMalformed, fmt::format("frame of {} bytes", length));
  }
  if (buffer_.size() < kFrameHeaderBytes + length) return std::optional<Frame>();
  Frame frame{kind, buffer_.substr(kFrameHeaderBytes, length)};
  buffer_.erase(0, kFrameHeaderBytes + length);
  return std::optional<Frame>(std::move(frame));
}

}  // namespace gpuassay
