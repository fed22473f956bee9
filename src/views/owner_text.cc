#include "views/owner_text.h"

#include <fmt/format.h>

#include <cmath>

namespace gpuassay {
namespace {

constexpr std::size_t kShortIdBytes = 12;  // as docker ps shows it

std::string WithUser(std::string text, const std::string& user) {
  return user.empty() ? text : fmt::format("{} ({})", text, user);
}

}  // namespace

std::string PodText(const PodIdentity& pod) {
  if (pod.name.empty()) return fmt::format("pod {}", pod.uid);
  return fmt::format("{}/{}", pod.namespace_name, pod.name);
}

std::string OwnerText(const ProcessOwner& owner) {
  const auto& container = owner.container;
  if (owner.pod) {
    const std::string pod = PodText(*owner.pod);
    if (!container) return pod;
    const std::string name =
        container->name.empty() ? container->id.substr(0, kShortIdBytes) : container->name;
    return name.empty() ? pod : fmt::format("{} ({})", pod, name);
  }
  if (container) {
    const std::string name =
        container->name.empty() ? container->id.substr(0, kShortIdBytes) : container->name;
    return container->runtime.empty() ? fmt::format("container {}", name)
                                      : fmt::format("container {} ({})", name, container->runtime);
  }
  if (owner.job) {
    const std::string kind = owner.job->kind == "slurm" ? "Slurm job" : owner.job->kind;
    const std::string step = owner.job->step.empty() ? "" : " step " + owner.job->step;
    return WithUser(fmt::format("{} {}{}", kind, owner.job->id, step), owner.user);
  }
  if (!owner.systemd_unit.empty()) return WithUser(owner.systemd_unit, owner.user);
  return owner.user.empty() ? "unknown owner" : "user " + owner.user;
}

std::string DeviceText(const GpuIdentity& gpu, const MigIdentity* mig) {
  if (mig == nullptr) return fmt::format("GPU {}", gpu.index);
  return fmt::format("GPU {} MIG {} ({})", gpu.index, mig->index, mig->profile);
}

std::string MebibytesText(double bytes) {
  return fmt::format("{:.0f} MiB", std::round(bytes / (1024.0 * 1024.0)));
}

}  // namespace gpuassay
