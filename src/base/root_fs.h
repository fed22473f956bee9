// The file system as an argument: everything we read from /proc, /sys, /etc goes through a RootFs,
// so that a test (or a container with the host mounted elsewhere) reads another root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpuassay {

// Where the kernel tells of processes, where it puts the files of devices, and where users have
// their names: inside a root.
inline constexpr std::string_view kProcDirectory = "/proc";
inline constexpr std::string_view kDeviceDirectory = "/dev";
inline constexpr std::string_view kPasswdFile = "/etc/passwd";

// Which content a file has: another file of the same name or a change of it gives another stamp.
struct FileStamp {
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// What the symbolic links of a directory say.
struct LinkTargets {
  std::vector<std::string> matching;  // each once, sorted
  std::size_t links = 0;              // all there are, whatever they say
};

class RootFs {
 public:
  // A larger file is an error, never a silent cut.
  static constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;
  // A process can have a million open files; more names are an error.
  static constexpr std::size_t kNamesMax = std::size_t{1} << 20;

  // kNotFound or kPermission when `root` is no readable directory.
  static Result<RootFs> Open(std::string root);

  // Reads a whole file. `path` is absolute inside the root: "/proc/driver/nvidia/version".
  Result<std::string> Read(std::string_view path) const;
  // The same into memory that is used again and again; `content` is empty after an error.
  Result<void> Read(std::string_view path, std::string& content) const;

  // Names in a directory, without "." and "..", in no particular order; at most kNamesMax.
  Result<std::vector<std::string>> List(std::string_view path) const;

  // What a symbolic link says, not followed: it may name nothing, or a path of the host.
  Result<std::string> ReadLink(std::string_view path) const;

  // The first bytes of a file, as many as fit: for small files that are read all the time. One
  // open, read and close, no allocation. Nullopt on any error.
  std::optional<std::size_t> ReadStart(std::string_view path, std::span<char> into) const;

  // Reads all links of a directory (the open files of a process) and keeps what starts with
  // `prefix`, at most kTargetsMax of them. A link that disappears meanwhile is passed over.
  static constexpr std::size_t kTargetsMax = 1024;
  Result<LinkTargets> ReadLinks(std::string_view path, std::string_view prefix) const;

  // Nullopt when there is no such file. Follows links.
  std::optional<FileStamp> Stamp(std::string_view path) const;

  // True when there is something of that name (a link is not followed).
  bool Exists(std::string_view path) const;

  // Path outside the root, for messages and for libraries that open files themselves.
  std::string Resolve(std::string_view path) const;

 private:
  explicit RootFs(std::string root) : root_(std::move(root)) {}
  std::string root_;  // without a trailing slash; empty for "/"
};

}  // namespace gpuassay
