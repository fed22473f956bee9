#include "agent/frame.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"

namespace gpuassay {

void FinishFrame(FrameKind kind, std::string& frame) {
  Check(frame.size() >= kFrameHeaderBytes, "a frame has room for its header");
  const std::size_t payload_bytes = frame.size() - kFrameHeaderBytes;
  Check(payload_bytes <= kFrameBytesMax, "frame too long");
  frame[0] = static_cast<char>(kind);
  for (std::size_t i = 0; i < 4; ++i) {
    frame[1 + i] = static_cast<char>((payload_bytes >> (8 * i)) & 0xFF);
  }
}

std::span<char> FrameReader::Space(std::size_t bytes_min) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.size() - end_ < bytes_min && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < bytes_min) buffer_.resize(end_ + bytes_min);
  return std::span(buffer_).subspan(end_);
}

Result<std::optional<Frame>> FrameReader::Next() {
  if (end_ - begin_ < kFrameHeaderBytes) return std::optional<Frame>();
  const char* header = buffer_.data() + begin_;
  const auto kind = static_cast<FrameKind>(header[0]);
  if (kind != FrameKind::kSnapshot && kind != FrameKind::kFailure) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("unknown frame kind {}", static_cast<unsigned>(kind)));
  }
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length |= std::size_t{static_cast<unsigned char>(header[1 + i])} << (8 * i);
  }
  if (length > kFrameBytesMax) {
    return Fail(ErrorCode::kMalformed, fmt::format("frame of {} bytes", length));
  }
  if (end_ - begin_ < kFrameHeaderBytes + length) return std::optional<Frame>();
  begin_ += kFrameHeaderBytes + length;
  return std::optional<Frame>(Frame{kind, {header + kFrameHeaderBytes, length}});
}

}  // namespace gpuassay
