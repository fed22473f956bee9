// Bytes from a driver worker: the frame reader must give the same frames however the bytes are cut,
// and never more than it was given.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/frame.h"
#include "base/check.h"

namespace {

using gpuassay::Check;
using gpuassay::Frame;
using gpuassay::FrameReader;
using gpuassay::Result;

// All frames as text, "!" at a malformed one.
std::string Drain(FrameReader& reader, std::string text) {
  for (;;) {
    const Result<std::optional<Frame>> frame = reader.Next();
    if (!frame) return text + "!";
    if (!frame->has_value()) return text;
    text += static_cast<char>((*frame)->kind);
    text += (*frame)->payload;
  }
}

void Give(FrameReader& reader, std::string_view bytes) {
  std::ranges::copy(bytes, reader.Space(bytes.size()).begin());
  reader.Filled(bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FrameReader whole;
  Give(whole, bytes);
  const std::string at_once = Drain(whole, "");
  Check(at_once.size() <= bytes.size() + 1, "no frame is longer than its bytes");

  FrameReader cut;
  std::string in_pieces;
  for (std::size_t at = 0; at < size; at += 3) {
    Give(cut, bytes.substr(at, 3));
    in_pieces = Drain(cut, std::move(in_pieces));
    if (in_pieces.ends_with('!') && at_once.ends_with('!')) return 0;
  }
  Check(in_pieces == at_once, "frames do not depend on how the bytes were cut");
  return 0;
}
