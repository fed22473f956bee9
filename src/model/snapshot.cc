#include "model/snapshot.h"

#include <array>

namespace gpuassay {

std::string_view ProcessTypeName(ProcessType type) {
  constexpr std::array<std::string_view, 4> kNames = {"compute", "graphics", "compute+graphics",
                                                      "mps"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view EventKindName(EventKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"xid",
                                                      "single_bit_ecc",
                                                      "double_bit_ecc",
                                                      "mig_config_change",
                                                      "gpu_unavailable",
                                                      "recovery_action"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace gpuassay
