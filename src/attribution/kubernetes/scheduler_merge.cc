#include "attribution/kubernetes/scheduler_merge.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "attribution/kubernetes/device_id.h"

namespace gpuassay {
namespace {

using PodKey = std::pair<std::string, std::string>;  // namespace, name

auto Order(const DeviceUnit& unit) { return std::tie(unit.resource, unit.device_id); }

class Merger {
 public:
  Merger(const KubernetesAnswers& answers, const std::vector<std::string>& resource_names)
      : answers_(answers), resource_names_(resource_names) {}

  Scheduler Merge() {
    if (answers_.api) ReadApiPods();
    if (answers_.kubelet) {
      for (const KubeletPod& pod : answers_.kubelet->pods) ReadKubeletPod(pod);
      for (const KubeletDevices& devices : answers_.kubelet->allocatable) {
        if (!IsGpuResource(devices.resource, resource_names_)) continue;
        for (const std::string& id : devices.ids) {
          view_.allocatable.push_back(Unit(devices.resource, id));
        }
      }
    }
    if (answers_.api) ReadSlices();
    SortAndBound();
    return std::move(view_);
  }

 private:
  // Only the other server knows of it, and that one is out of date.
  bool IsGone(bool known_to_kubelet) const {
    if (known_to_kubelet) {
      return answers_.api && answers_.api_current && !answers_.kubelet_current;
    }
    return answers_.kubelet && answers_.kubelet_current && !answers_.api_current;
  }

  void ReadApiPods() {
    std::set<PodKey> of_kubelet;
    if (answers_.kubelet) {
      for (const KubeletPod& pod : answers_.kubelet->pods) {
        of_kubelet.emplace(CutOwnerText(pod.namespace_name), CutOwnerText(pod.name));
      }
    }
    view_.dropped += answers_.api->dropped;
    for (const auto& [uid, pod] : answers_.api->pods) {
      const PodIdentity& identity = pod->pod.identity;
      const PodKey key(identity.namespace_name, identity.name);
      if (pod->finished) {
        finished_.insert(key);
        continue;
      }
      if (!of_kubelet.contains(key) && IsGone(/*known_to_kubelet=*/false)) continue;
      // Two of one name: one of them has just been replaced by the other, whose events come later.
      by_key_.insert_or_assign(key, &pod->pod);
      view_.dropped += pod->dropped;
      view_.pods.push_back(pod->pod);
    }
  }

  void ReadKubeletPod(const KubeletPod& told) {
    PodIdentity identity{CutOwnerText(told.namespace_name), CutOwnerText(told.name), ""};
    const PodKey key(identity.namespace_name, identity.name);
    const auto found = by_key_.find(key);
    const Pod* pod = found == by_key_.end() ? nullptr : found->second;
    if (pod == nullptr && (finished_.contains(key) || IsGone(/*known_to_kubelet=*/true))) return;
    if (pod == nullptr) {
      Pod& added = view_.pods.emplace_back();
      added.identity = identity;
      for (const KubeletContainer& container : told.containers) {
        if (added.containers.size() < kPodContainersMax) {
          added.containers.push_back({CutOwnerText(container.name), ""});
        } else {
          ++view_.dropped;
        }
      }
    }
    for (const KubeletContainer& container : told.containers) {
      ReadContainer(container, Owner(identity, pod, container.name));
    }
  }

  static ProcessOwner Owner(const PodIdentity& identity, const Pod* pod,
                            const std::string& container) {
    ProcessOwner owner;
    owner.pod = pod == nullptr ? identity : pod->identity;
    owner.container = ContainerIdentity{"", CutOwnerText(container), ""};
    if (pod == nullptr) return owner;
    const auto found =
        std::ranges::find(pod->containers, owner.container->name, &PodContainer::name);
    if (found != pod->containers.end()) owner.container->id = found->id;
    if (!pod->controller.kind.empty()) owner.job = pod->controller;
    return owner;
  }

  void ReadContainer(const KubeletContainer& container, const ProcessOwner& owner) {
    for (const KubeletDevices& devices : container.devices) {
      if (!IsGpuResource(devices.resource, resource_names_)) continue;
      for (const std::string& id : devices.ids) {
        Allocation& allocation = view_.allocations.emplace_back();
        allocation.unit = Unit(devices.resource, id);
        allocation.owner = owner;
      }
    }
    for (const KubeletClaimDevice& device : container.claim_devices) {
      if (!IsGpuDraDriver(device.driver, resource_names_)) continue;
      Allocation& allocation = view_.allocations.emplace_back();
      allocation.unit = ClaimUnit(device);
      allocation.claim = CutOwnerText(device.claim);
      allocation.owner = owner;
    }
  }

  static DeviceUnit Unit(const std::string& resource, const std::string& id) {
    DeviceUnit unit;
    unit.resource = CutOwnerText(resource);
    unit.device_id = CutOwnerText(id);
    if (const std::optional<DeviceId> parsed = ParseDeviceId(id)) unit.replica = parsed->replica;
    return unit;
  }

  DeviceUnit ClaimUnit(const KubeletClaimDevice& device) const {
    DeviceUnit unit = Unit(device.driver, device.device);
    if (!answers_.api) return unit;
    for (const SliceDevice& slice : answers_.api->slices) {
      if (slice.driver != device.driver || slice.pool != device.pool ||
          slice.name != device.device) {
        continue;
      }
      unit.gpu_uuid = slice.gpu_uuid;
      unit.mig_uuid = slice.mig_uuid;
    }
    return unit;
  }

  void ReadSlices() {
    for (const SliceDevice& slice : answers_.api->slices) {
      if (!IsGpuDraDriver(slice.driver, resource_names_)) continue;
      const std::optional<DeviceId> id = ParseDeviceId(slice.name);
      const bool is_mig =
          id && (!id->mig_profile.empty() || id->mig_placement_start || id->gpu_instance_id);
      if (is_mig && slice.mig_uuid.empty()) continue;  // could be made
      DeviceUnit unit = Unit(slice.driver, slice.name);
      unit.gpu_uuid = slice.gpu_uuid;
      unit.mig_uuid = slice.mig_uuid;
      view_.allocatable.push_back(std::move(unit));
    }
  }

  template <class T>
  void Bound(std::vector<T>& list, std::size_t max) {
    const auto rest = std::ranges::unique(list);
    list.erase(rest.begin(), rest.end());
    if (list.size() <= max) return;
    view_.dropped += static_cast<std::uint32_t>(list.size() - max);
    list.resize(max);
  }

  void SortAndBound() {
    std::ranges::sort(view_.allocatable, {}, [](const DeviceUnit& unit) { return Order(unit); });
    Bound(view_.allocatable, kAllocatableMax);
    const auto order = [](const Allocation& one) {
      return std::tuple_cat(Order(one.unit),
                            std::tie(one.owner.pod->namespace_name, one.owner.pod->name,
                                     one.owner.pod->uid, one.owner.container->name, one.claim));
    };
    std::ranges::sort(view_.allocations, {}, order);
    Bound(view_.allocations, kAllocationsMax);
    std::ranges::sort(view_.pods, {}, [](const Pod& pod) {
      return std::tie(pod.identity.namespace_name, pod.identity.name, pod.identity.uid);
    });
    Bound(view_.pods, kPodsMax);
  }

  const KubernetesAnswers& answers_;
  const std::vector<std::string>& resource_names_;
  Scheduler view_;
  std::set<PodKey> finished_;
  std::map<PodKey, const Pod*> by_key_;  // of the API server
};

}  // namespace

Scheduler MergeAnswers(const KubernetesAnswers& answers,
                       const std::vector<std::string>& resource_names) {
  return Merger(answers, resource_names).Merge();
}

bool HasUnknownDevice(const KubernetesAnswers& answers,
                      const std::vector<std::string>& resource_names) {
  if (!answers.kubelet || !answers.api) return false;
  const auto unknown = [&](const KubeletClaimDevice& device) {
    return IsGpuDraDriver(device.driver, resource_names) &&
           std::ranges::none_of(answers.api->slices, [&](const SliceDevice& slice) {
             return slice.driver == device.driver && slice.pool == device.pool &&
                    slice.name == device.device;
           });
  };
  return std::ranges::any_of(answers.kubelet->pods, [&](const KubeletPod& pod) {
    return std::ranges::any_of(pod.containers, [&](const KubeletContainer& container) {
      return std::ranges::any_of(container.claim_devices, unknown);
    });
  });
}

}  // namespace gpuassay
