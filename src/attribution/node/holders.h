// Finds who has a GPU's device file open (M26): a look at the open files of all processes of the
// node, so done seldom. Nothing is ever killed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/node/proc.h"
#include "attribution/node/process_owners.h"
#include "base/result.h"
#include "model/holder.h"

namespace gpuassay {

struct HolderScan {
  struct Found {
    DeviceHolder holder;
    std::vector<std::string> files;  // nvidia0, nvidiactl, nvidia-uvm ..., with their directory
  };
  std::vector<Found> found;  // by PID
  // Processes whose open files could not be read: then nobody can say that there is no holder.
  std::uint32_t unreadable = 0;
};

struct HolderOptions {
  std::uint32_t self_pid = 0;  // left out, and so are its children (the driver worker)
  std::vector<std::string> containers_alive;  // ids the runtime or the kubelet still knows
  bool containers_known = false;              // false: `containers_alive` says nothing
};

// kPermission or kNotFound only when /proc itself cannot be listed. `owners` resolves owners of
// what is found. Kinds as HolderKind says; orphan: parent is 1 (or a subreaper that is no
// container's init) and the group or session leader is gone.
Result<HolderScan> ScanHolders(const Proc& proc, ProcessOwners& owners,
                               const HolderOptions& options);

// N of /dev/nvidiaN; nullopt for the control files.
std::optional<std::uint32_t> MinorOfDeviceFile(std::string_view file);

}  // namespace gpuassay
