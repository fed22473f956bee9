// Finds who has a GPU's device file open (M26): a look at the open files of all processes of the
// node, so done seldom. Nothing is ever killed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/node/proc.h"
#include "attribution/node/process_owners.h"
#include "base/result.h"
#include "base/root_fs.h"
#include "model/holder.h"

namespace gpuassay {

struct HolderScan {
  static constexpr std::size_t kFoundMax = 8192;
  struct Found {
    DeviceHolder holder;
    std::vector<std::string> files;  // nvidia0, nvidiactl, nvidia-uvm ..., with their directory
  };
  std::vector<Found> found;  // by PID
  // Processes whose open files could not be read, or that were over kFoundMax: then nobody can say
  // that there is no holder. Where /proc hides the processes of others (hidepid=2) it counts one.
  std::uint32_t unreadable = 0;
};

struct HolderOptions {
  std::uint32_t self_pid = 0;  // left out, and so are its children (the driver worker)
  // Where the links of /proc/PID/fd say that device files are.
  std::string_view device_directory = kDeviceDirectory;
};

// kPermission or kNotFound only when /proc itself cannot be listed. `owners` resolves owners of
// what is found. May block.
//
// Kinds as HolderKind says, but for kContainerGone, which only the runtime or the kubelet can tell
// (attribution/join). Orphan: its parent is 1, or is in another session without having started that
// session (a subreaper) and is no container's init; and the leader of its group or session is gone.
// Uninterruptible: a thread is in state D and has not been woken until the end of the scan; then
// kill does nothing, and a reset or a reload of the driver waits for the file to be closed: only a
// reboot helps, whatever else it is.
Result<HolderScan> ScanHolders(const Proc& proc, ProcessOwners& owners,
                               const HolderOptions& options);

// N of /dev/nvidiaN, whatever the directory; nullopt for the control files.
std::optional<std::uint32_t> MinorOfDeviceFile(std::string_view file);

}  // namespace gpuassay
