// Who a process belongs to by the path of its cgroup: container and runtime, pod UID, Slurm job and
// step, systemd unit. Pure. Knows cgroup v1, v2 and hybrid; cgroupfs and systemd drivers; nested
// ones (kind, a kubelet in a container): the innermost container counts, and the pod it is in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/identity.h"

namespace gpuassay {

enum class PodQos : std::uint8_t { kGuaranteed, kBurstable, kBestEffort };

struct CgroupOwner {
  Boxed<ContainerIdentity> container;  // id and runtime; the name is not in a path
  std::string pod_uid;                 // with dashes, lower case; a static pod's hash as it is
  std::optional<PodQos> qos;
  Boxed<JobIdentity> slurm;                // id and step
  std::optional<std::uint32_t> slurm_uid;  // of the path uid_N, v1
  std::string systemd_unit;  // innermost .service or .scope that is not a container's own scope
  std::optional<std::uint32_t> login_uid;  // of user-N.slice

  bool operator==(const CgroupOwner&) const = default;
};

// `text` is /proc/PID/cgroup: lines "ID:CONTROLLERS:PATH". Never fails: what is not understood
// tells nothing. A path longer than 4096 bytes is not looked at.
CgroupOwner ParseCgroup(std::string_view text);

// One path, without the line around it.
CgroupOwner ParseCgroupPath(std::string_view path);

}  // namespace gpuassay
