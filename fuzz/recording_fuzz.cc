// Any bytes read as a recording give some frames, then an end or one error; nothing else.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "sources/replay/recording_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gpuassay::Check;
  std::size_t position = 0;
  // In small pieces, so that frames and headers are cut at every place.
  auto reader = gpuassay::RecordingReader::Open(
      [data, size, &position](std::span<char> buffer) -> gpuassay::Result<std::size_t> {
        const std::size_t length = std::min({buffer.size(), size - position, std::size_t{97}});
        std::copy_n(data + position, length, buffer.begin());
        position += length;
        return length;
      });
  if (!reader) return 0;
  constexpr std::uint64_t kFramesMax = 4096;  // a few bytes of zstd can say the same very often
  while ((*reader)->frames() < kFramesMax) {
    const auto frame = (*reader)->Next();
    if (frame && *frame) continue;
    const auto after = (*reader)->Next();
    Check(after.has_value() && !after->has_value(), "nothing comes after the end");
    return 0;
  }
  return 0;
}
