#include "sim/engine/hash.h"

#include <fmt/format.h>

#include <array>

namespace gpuassay::sim {

std::string MakeUuid(std::string_view prefix, std::uint64_t key) {
  const std::uint64_t a = Mix(key);
  const std::uint64_t b = Mix(a ^ key);
  return fmt::format("{}{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", prefix, a >> 32U,
                     (a >> 16U) & 0xFFFFU, a & 0xFFFU, 0x8000U | ((b >> 48U) & 0x3FFFU),
                     b & 0xFFFFFFFFFFFFULL);
}

std::string MakeSerial(std::uint64_t key) {
  return fmt::format("165{:010d}", Mix(key) % 10'000'000'000ULL);
}

std::string MakeBusId(std::uint32_t index) {
  constexpr std::array<std::uint32_t, 8> kBuses = {0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF};
  return fmt::format("{:08X}:{:02X}:00.0", index / kBuses.size(), kBuses[index % kBuses.size()]);
}

}  // namespace gpuassay::sim
