// Who is who: how a node, a GPU, a MIG instance and the owner of a process are called. Plain
// values. A text that nobody told is empty, everything else that can be unknown is optional.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/boxed.h"

namespace gpuassay {

// Bytes of one text of an owner; whoever fills it cuts there, and so does the codec. Holds a
// Kubernetes name (253), a systemd unit (255), a user (at most 256, usually 32) and a container id
// (64); it is also the longest value of a label.
inline constexpr std::size_t kOwnerTextBytesMax = 256;

struct NodeIdentity {
  std::string hostname;
  std::string driver_version;  // "570.86.15"; empty when unknown
  std::string nvml_version;    // "12.570.86.15"
  std::string cuda_version;    // highest CUDA version of the driver, "12.8"
};

// How a GPU is called. Texts are empty when the driver does not tell them.
struct GpuIdentity {
  std::uint32_t index = 0;  // NVML order, which is PCI order, not CUDA order
  std::string uuid;         // "GPU-..."
  std::string pci_bus_id;   // NVML form, "00000000:1A:00.0"
  std::string name;         // "NVIDIA H100 80GB HBM3"
  std::string serial;
  std::string vbios_version;
  std::string architecture;                   // "Hopper"
  std::optional<std::uint32_t> minor_number;  // N of /dev/nvidiaN
};

struct MigIdentity {
  std::uint32_t index = 0;  // MIG device index on its GPU
  std::uint32_t gpu_instance_id = 0;
  std::uint32_t compute_instance_id = 0;
  std::string uuid;     // "MIG-..."
  std::string profile;  // "1g.10gb"

  bool operator==(const MigIdentity&) const = default;
};

enum class ProcessType : std::uint8_t {
  kCompute = 0,
  kGraphics = 1,
  kComputeAndGraphics = 2,
  kMps = 3
};
std::string_view ProcessTypeName(
    ProcessType type);  // "compute", "graphics", "compute+graphics", "mps"

// A container, of Kubernetes or not. The id and the runtime are parts of the path in
// /proc/PID/cgroup; the name is what the pod or the runtime calls it.
struct ContainerIdentity {
  std::string id;  // in full, without the runtime: 64 hexadecimal digits of most runtimes
  std::string name;
  std::string runtime;  // "containerd", "cri-o", "docker", "podman" ...

  bool operator==(const ContainerIdentity&) const = default;
};

// A pod. The UID is in the path of the cgroup; namespace and name come from the kubelet or the API
// server. Names are used again by another pod, UIDs never.
struct PodIdentity {
  std::string namespace_name;
  std::string name;
  std::string uid;

  bool operator==(const PodIdentity&) const = default;
};

// What a scheduler calls the work. Of Slurm: from the cgroup or the environment of the process. Of
// Kubernetes: the object that controls the pod, in the pod's namespace.
struct JobIdentity {
  std::string kind;  // "slurm", else the Kubernetes kind: "Job", "PyTorchJob", "StatefulSet" ...
  std::string id;    // "4711", "4711_3" of a Slurm array; name of the Kubernetes object
  std::string step;  // of Slurm: "0", "batch", "extern", "interactive"; empty elsewhere

  bool operator==(const JobIdentity&) const = default;
};

// Who a process belongs to, as far as it is known: a member without value (or an empty text) says
// that nobody found one, not that there is none. attribution/ fills it, from outside the driver.
// Every text is at most kOwnerTextBytesMax long.
struct ProcessOwner {
  Boxed<ContainerIdentity> container;
  Boxed<PodIdentity> pod;
  Boxed<JobIdentity> job;
  std::string user;  // real user in the host's names; its number as text when it has no name
  std::string systemd_unit;  // "train.service", "session-3.scope"; from the path of the cgroup

  bool operator==(const ProcessOwner&) const = default;
};

}  // namespace gpuassay
