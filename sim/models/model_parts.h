// Parts of the rows of gpu_models.cc: MIG profiles and feature sets. The marks of sources ([q],
// [d], [s], [mig], [?]) are explained there.
#pragma once

#include <array>

#include "sim/models/gpu_model.h"

namespace gpuassay::sim::parts {

inline constexpr std::uint64_t kMiB = 1024 * 1024;

// name, compute slices, memory slices, SMs, memory, instances at most.
inline constexpr std::array<MigProfile, 7> kMigA100Of40 = {{
    // [mig]; 1g.5gb's 4864 MiB [d]
    {"1g.5gb", 1, 1, 14, 4864 * kMiB, 7},
    {"1g.5gb+me", 1, 1, 14, 4864 * kMiB, 1},
    {"1g.10gb", 1, 2, 14, 9856 * kMiB, 4},
    {"2g.10gb", 2, 2, 28, 9856 * kMiB, 3},
    {"3g.20gb", 3, 4, 42, 19968 * kMiB, 2},
    {"4g.20gb", 4, 4, 56, 19968 * kMiB, 1},
    {"7g.40gb", 7, 8, 98, 40192 * kMiB, 1},
}};
inline constexpr std::array<MigProfile, 7> kMigA100Of80 = {{
    // [mig]
    {"1g.10gb", 1, 1, 14, 9728 * kMiB, 7},
    {"1g.10gb+me", 1, 1, 14, 9728 * kMiB, 1},
    {"1g.20gb", 1, 2, 14, 19968 * kMiB, 4},
    {"2g.20gb", 2, 2, 28, 19968 * kMiB, 3},
    {"3g.40gb", 3, 4, 42, 40192 * kMiB, 2},
    {"4g.40gb", 4, 4, 56, 40192 * kMiB, 1},
    {"7g.80gb", 7, 8, 98, 80640 * kMiB, 1},
}};
inline constexpr std::array<MigProfile, 7> kMigH100Of80 = {{
    // 1g.10gb, 2g.20gb, 3g.40gb [q]; the others [mig], their memory [?]
    {"1g.10gb", 1, 1, 16, 9984 * kMiB, 7},
    {"1g.10gb+me", 1, 1, 16, 9984 * kMiB, 1},
    {"1g.20gb", 1, 2, 26, 20096 * kMiB, 4},
    {"2g.20gb", 2, 2, 32, 20096 * kMiB, 3},
    {"3g.40gb", 3, 4, 60, 40448 * kMiB, 2},
    {"4g.40gb", 4, 4, 64, 40448 * kMiB, 1},
    {"7g.80gb", 7, 8, 132, 81152 * kMiB, 1},
}};
inline constexpr std::array<MigProfile, 7> kMigH200 = {{
    // names and counts [mig]; memory [?]: shares of the card as on H100
    {"1g.18gb", 1, 1, 16, 16384 * kMiB, 7},
    {"1g.18gb+me", 1, 1, 16, 16384 * kMiB, 1},
    {"1g.35gb", 1, 2, 26, 33280 * kMiB, 4},
    {"2g.35gb", 2, 2, 32, 33280 * kMiB, 3},
    {"3g.71gb", 3, 4, 60, 71424 * kMiB, 2},
    {"4g.71gb", 4, 4, 64, 71424 * kMiB, 1},
    {"7g.141gb", 7, 8, 132, 143104 * kMiB, 1},
}};
inline constexpr std::array<MigProfile, 7> kMigB200 = {{
    // names and counts [mig]; memory and SMs [?]
    {"1g.23gb", 1, 1, 18, 22016 * kMiB, 7},
    {"1g.23gb+me", 1, 1, 18, 22016 * kMiB, 1},
    {"1g.45gb", 1, 2, 30, 44800 * kMiB, 4},
    {"2g.45gb", 2, 2, 36, 44800 * kMiB, 3},
    {"3g.90gb", 3, 4, 70, 90880 * kMiB, 2},
    {"4g.90gb", 4, 4, 72, 90880 * kMiB, 1},
    {"7g.180gb", 7, 8, 148, 182528 * kMiB, 1},
}};
inline constexpr std::array<MigProfile, 7> kMigGb200 = {{
    // names and counts [mig]; memory and SMs [?]
    {"1g.24gb", 1, 1, 18, 23040 * kMiB, 7},
    {"1g.24gb+me", 1, 1, 18, 23040 * kMiB, 1},
    {"1g.47gb", 1, 2, 32, 46592 * kMiB, 4},
    {"2g.47gb", 2, 2, 36, 46592 * kMiB, 3},
    {"3g.95gb", 3, 4, 70, 93952 * kMiB, 2},
    {"4g.95gb", 4, 4, 72, 93952 * kMiB, 1},
    {"7g.189gb", 7, 8, 152, 188672 * kMiB, 1},
}};

// GeForce: no ECC, no serial (a few early boards print one), no memory sensor, no NVLink counters.
inline constexpr Features kGeForce = {.power_averaged = false,
                                      .power_instant_field = false,
                                      .ecc = false,
                                      .row_remapping = false,
                                      .memory_temperature = false,
                                      .fan = true,
                                      .application_clocks = false,
                                      .serial = false};
// Data-centre cards before Ampere: page retirement instead of row remapping, power of the moment
// (a capture of a V100 and one of a Turing GeForce have the instant reading and no average).
inline constexpr Features kTesla = {
    .power_averaged = false, .row_remapping = false, .page_retirement = true};
inline constexpr Features kGa100 = {.power_averaged = false};
inline constexpr Features kHopper = {.margin_temperature = true, .gpm = true};

constexpr Features KeplerFeatures() {
  Features features = kTesla;
  features.power_instant_field = false;  // its last driver has no such field
  features.energy = false;               // NVML: Volta and newer
  features.memory_temperature = false;
  features.process_utilization = false;  // NVML: Maxwell and newer
  return features;
}
constexpr Features PascalGeForceFeatures() {
  Features features = kGeForce;
  features.energy = false;
  return features;
}
constexpr Features AdaGeForceFeatures() {
  Features features = kGeForce;
  features.power_averaged = true;  // [q] of an RTX 4080 SUPER: both average and instant
  features.power_instant_field = true;
  return features;
}
constexpr Features TuringFeatures() {
  Features features = kTesla;
  features.memory_temperature = false;  // [d]: field 140 reads 0
  return features;
}
constexpr Features AdaFeatures() {
  Features features;
  features.memory_temperature = false;  // [q]: N/A
  features.margin_temperature = true;
  return features;
}

}  // namespace gpuassay::sim::parts
