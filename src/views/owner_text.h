// How an owner is called in one short text for people.
#pragma once

#include <string>

#include "model/snapshot.h"

namespace gpuassay {

// "ml/train-0 (main)", "container 4f5c0a6b1c2d (docker)", "Slurm job 4711 step 0 (alice)",
// "train.service (alice)", "user alice", "unknown owner".
std::string OwnerText(const ProcessOwner& owner);
// "ml/train-0"; by its UID while its name is unknown.
std::string PodText(const PodIdentity& pod);
// "GPU 0", "GPU 0 MIG 1 (1g.5gb)".
std::string DeviceText(const GpuIdentity& gpu, const MigIdentity* mig);
// "4234 MiB": whole MiB, rounded.
std::string MebibytesText(double bytes);

}  // namespace gpuassay
