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

std::string_view OwnerKindName(OwnerKind kind) {
  constexpr std::array<std::string_view, 9> kNames = {
      "container", "pod", "job", "unit", "user", "unknown", "other", "idle", "unattributed"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view SchedulerKindName(SchedulerKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"kubernetes", "slurm", "container"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view HolderKindName(HolderKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {
      "defunct_leader", "container_gone",  "orphan", "other_pid_namespace",
      "mps_server",     "uninterruptible", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view CleanUpName(CleanUp clean_up) {
  constexpr std::array<std::string_view, 5> kNames = {"end_process", "end_mps_server", "gpu_reset",
                                                      "driver_reload", "reboot"};
  return kNames[static_cast<std::size_t>(clean_up)];
}

std::string_view CleanUpInterrupts(CleanUp clean_up) {
  constexpr std::array<std::string_view, 5> kTexts = {
      "Interrupts this process and nothing else.", "Interrupts every client of this MPS server.",
      "Interrupts every process on this GPU and on those it is linked to.",
      "Interrupts all GPU work on this node.", "Interrupts all work on this node."};
  return kTexts[static_cast<std::size_t>(clean_up)];
}

}  // namespace gpuassay
