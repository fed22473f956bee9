// Series of owners and of the scheduler, and which device is one pod's alone. Private to
// exposition.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exposition/text_writer.h"
#include "model/snapshot.h"

namespace gpuassay {

// `container`, `pod`, `namespace`, `job_id`, `user`: each only when known. A container that has no
// name yet goes by its id.
void AppendOwnerLabels(std::string& labels, const ProcessOwner& owner);

// What tells one row of Gpu::owners from the others: the instance, `owner_kind`, the labels above
// and, where they are needed, `step`, `systemd_unit`, `pod_uid` of a pod without a name.
void AppendUsageLabels(std::string& labels, const Gpu& gpu, const OwnerUsage& usage);

// Who a whole GPU (`mig_uuid` empty) or a MIG device was handed out to, when that is exactly one
// container and the device is in no other hands, in no parts and not one of several replicas; else
// null. Only Kubernetes.
const ProcessOwner* ExclusiveOwner(const Scheduler* scheduler, std::string_view gpu_uuid,
                                   std::string_view mig_uuid);

// gpuassay_allocation_info, gpuassay_allocatable_units, gpuassay_allocated_units,
// gpuassay_pod_labels, gpuassay_pod_memory_request_bytes. Nothing without a scheduler.
void WriteScheduler(TextWriter& writer, const Snapshot& snapshot);

}  // namespace gpuassay
