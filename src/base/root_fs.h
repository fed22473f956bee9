// The file system as an argument: everything we read from /proc, /sys, /etc goes through a RootFs,
// so that a test (or a container with the host mounted elsewhere) reads another root.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace gpuassay {

class RootFs {
 public:
  // A larger file is an error, never a silent cut.
  static constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;

  // kNotFound or kPermission when `root` is no readable directory.
  static Result<RootFs> Open(std::string root);

  // Reads a whole file. `path` is absolute inside the root: "/proc/driver/nvidia/version".
  Result<std::string> Read(std::string_view path) const;

  // Path outside the root, for messages and for libraries that open files themselves.
  std::string Resolve(std::string_view path) const;

 private:
  explicit RootFs(std::string root) : root_(std::move(root)) {}
  std::string root_;  // without a trailing slash; empty for "/"
};

}  // namespace gpuassay
