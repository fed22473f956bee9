// Finds who has a GPU's device file open (M26): a look at the open files of all processes of the
// node, so done seldom. Nothing is ever killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/node/proc.h"
#include "attribution/node/process_owners.h"
#include "base/clock.h"
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
  // One who waits in the kernel for as long hangs. Disks answer sooner; so does a driver that
  // starts a GPU, for which others wait.
  Duration hangs_after = std::chrono::seconds(5);
};

// kPermission or kNotFound only when /proc itself cannot be listed. `owners` resolves owners of
// what is found. May block.
//
// Kinds as HolderKind says, but for kContainerGone, which only the runtime or the kubelet can tell
// (attribution/join). Orphan: the leader of its group or session is gone, and its parent is of
// another session (init, or a subreaper) and is no container's init. A process of a service that is
// neither in a container nor in a job is none: daemons leave their session likewise. Of an MPS
// server `clean_up` says so whatever else it is.
//
// Uninterruptible: a thread is in state D and has not been woken for HolderOptions::hangs_after;
// the scan waits for that long while there is one, else not at all. Then kill does nothing, and a
// reset or a reload of the driver waits for the file to be closed: `clean_up` is kReboot, whatever
// else it is; and nothing is read that it may have locked (its environment).
Result<HolderScan> ScanHolders(const Proc& proc, ProcessOwners& owners,
                               const HolderOptions& options);

// N of /dev/nvidiaN, whatever the directory; nullopt for the control files.
std::optional<std::uint32_t> MinorOfDeviceFile(std::string_view file);

}  // namespace gpuassay
