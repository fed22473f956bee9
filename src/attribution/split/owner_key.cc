#include "attribution/split/owner_key.h"

namespace gpuassay {
namespace {

// Between the parts of a key: in no name of Kubernetes, Slurm or systemd.
constexpr char kSeparator = '\x1f';

std::string PodKey(const PodIdentity& pod) {
  if (pod.name.empty()) return pod.uid;
  return pod.namespace_name + '/' + pod.name;
}

}  // namespace

OwnerKind KindOfOwner(const ProcessOwner& owner) {
  if (owner.container) return OwnerKind::kContainer;
  if (owner.pod) return OwnerKind::kPod;
  if (owner.job) return OwnerKind::kJob;
  if (!owner.systemd_unit.empty()) return OwnerKind::kUnit;
  if (!owner.user.empty()) return OwnerKind::kUser;
  return OwnerKind::kUnknown;
}

std::string OwnerKey(const ProcessOwner& owner) {
  const OwnerKind kind = KindOfOwner(owner);
  std::string key(OwnerKindName(kind));
  key += kSeparator;
  switch (kind) {
    case OwnerKind::kContainer:
      if (owner.pod) key += PodKey(*owner.pod) + kSeparator;
      key +=
          owner.pod && !owner.container->name.empty() ? owner.container->name : owner.container->id;
      break;
    case OwnerKind::kPod:
      key += PodKey(*owner.pod);
      break;
    case OwnerKind::kJob:
      key += owner.job->kind + kSeparator + owner.job->id + kSeparator + owner.job->step;
      break;
    case OwnerKind::kUnit:
      key += owner.systemd_unit + kSeparator + owner.user;
      break;
    case OwnerKind::kUser:
      key += owner.user;
      break;
    case OwnerKind::kUnknown:
    case OwnerKind::kOther:
    case OwnerKind::kIdle:
    case OwnerKind::kUnattributed:
      break;
  }
  return key;
}

ProcessOwner OwnerAsOne(const ProcessOwner& owner) {
  ProcessOwner one = owner;
  const OwnerKind kind = KindOfOwner(owner);
  if (kind == OwnerKind::kContainer || kind == OwnerKind::kPod) {
    one.user.clear();  // a user of the image, who means nothing outside
    one.systemd_unit.clear();
  } else if (kind == OwnerKind::kJob) {
    one.systemd_unit.clear();
  }
  return one;
}

}  // namespace gpuassay
