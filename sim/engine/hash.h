// Noise and names that depend on nothing but their inputs: the engine must give the same answer
// whenever and however often it is asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuassay::sim {

// SplitMix64's finaliser: every bit of the input changes every bit of the output.
constexpr std::uint64_t Mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

enum class NoiseChannel : std::uint32_t {
  kUtilization,
  kMemoryUtilization,
  kPower,
  kTemperature,
  kMemoryTemperature,
  kGarbage,
};

constexpr std::uint64_t HashOf(std::uint64_t seed, std::uint32_t gpu, NoiseChannel channel,
                               std::uint64_t tick) {
  return Mix(Mix(seed ^ (std::uint64_t{gpu} << 32U) ^ static_cast<std::uint64_t>(channel)) ^ tick);
}

// Nearly normal, mean 0, standard deviation 1, within +-3: three uniform numbers.
constexpr double Gauss(std::uint64_t hash) {
  constexpr double kScale = 1.0 / 2097152.0;  // 21 bits
  const double sum = static_cast<double>(hash & 0x1FFFFFU) +
                     static_cast<double>((hash >> 21U) & 0x1FFFFFU) +
                     static_cast<double>((hash >> 42U) & 0x1FFFFFU);
  return (sum * kScale - 1.5) * 2.0;
}

// "GPU-8e1c6a9e-...": a version 4 UUID from a hash.
std::string MakeUuid(std::string_view prefix, std::uint64_t key);
std::string MakeSerial(std::uint64_t key);  // 13 digits, as NVIDIA's are
// Addresses as on an eight-GPU board; one PCI domain per eight.
std::string MakeBusId(std::uint32_t index);

}  // namespace gpuassay::sim
