// Who a process belongs to by the path of its cgroup: container and runtime, pod UID, Slurm job and
// step, systemd unit. Pure. Knows cgroup v1, v2 and hybrid; cgroupfs and systemd drivers; nested
// ones (kind, a kubelet in a container): the innermost container counts, and the pod it is in.
// Paths relative to another cgroup namespace ("/../../x") are read as far as they say something.
//
// The runtime is told only by a path that names it: 64 hexadecimal digits in a folder of anybody's
// name are a container of somebody. A monitor (conmon) belongs to the pod and is no container.
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
  Boxed<JobIdentity> pbs;                  // id, as the server calls it: "123.pbs01"
  // Innermost .service or .scope that is not a container's own scope; empty when a container or a
  // job is known, which say more.
  std::string systemd_unit;
  std::optional<std::uint32_t> login_uid;  // of user-N.slice

  bool operator==(const CgroupOwner&) const = default;
};

// `text` is /proc/PID/cgroup: lines "ID:CONTROLLERS:PATH". Never fails: what is not understood
// tells nothing. A path longer than 4096 bytes is not looked at.
CgroupOwner ParseCgroup(std::string_view text);

// One path, without the line around it.
CgroupOwner ParseCgroupPath(std::string_view path);

// The name of a step that is numbered specially ("4294967291": "batch"), else the step as it is.
std::string SlurmStepName(std::string_view step);

}  // namespace gpuassay
