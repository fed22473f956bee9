// Who a share of a device goes to: what of an owner makes it one owner. Two processes of one
// container are one, two containers of one pod are two.
#pragma once

#include <string>

#include "model/snapshot.h"

namespace gpuassay {

// kContainer to kUser by what is known, kUnknown when nothing is.
OwnerKind KindOfOwner(const ProcessOwner& owner);
// Equal for processes of one owner. Of a container in a pod by names, where they are known: an
// allocation has no container id, and a container that was restarted is the same owner.
std::string OwnerKey(const ProcessOwner& owner);
// The owner without what differs between its processes: their users inside a container, the unit
// that started a job.
ProcessOwner OwnerAsOne(const ProcessOwner& owner);

}  // namespace gpuassay
