// What the writer and the reader of recordings agree on (docs/record-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuassay {

// The file begins with: magic, version byte, flags byte, two zero bytes. A zstd stream follows.
inline constexpr std::string_view kRecordingMagic = "GPUASSAY";
inline constexpr std::uint8_t kRecordingVersion = 1;
inline constexpr std::uint8_t kRecordingNeutral = 0x01;  // flag
inline constexpr std::size_t kRecordingHeaderBytes = 12;

// In the stream, each frame is its size, its checksum (both 32 bits, little endian) and an encoded
// snapshot. Size 0 and checksum 0 are the end mark.
inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20;
inline constexpr int kWindowLogMax = 23;  // 8 MiB: what the reader is willing to keep

// FNV-1a, 32 bits: finds damage, proves nothing about intent.
constexpr std::uint32_t FrameChecksum(std::string_view bytes) {
  std::uint32_t hash = 2166136261u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace gpuassay
