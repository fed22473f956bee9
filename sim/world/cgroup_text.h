// /proc/PID/cgroup as the kernel writes it for a process of a pod, a container, a job, a unit or a
// session. Sources: kubelet's cgroup driver, containerd, CRI-O, Docker, Podman and Slurm, with
// their default settings.
#pragma once

#include <string>

#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

std::string CgroupText(const Scenario& scenario, const ScenarioProcFacts& facts);

}  // namespace gpuassay::sim
