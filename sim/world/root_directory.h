// A directory that stands for the root of a node: /proc, /etc/passwd, and what is on its disk.
// A process appears and goes in one step, as in a real /proc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "sim/world/node_files.h"
#include "sim/world/proc_text.h"

namespace gpuassay::sim {

class RootDirectory {
 public:
  // Makes `directory`/root and `directory`/staging. kIo.
  static Result<RootDirectory> Create(const std::filesystem::path& directory);

  std::string path() const { return root_.string(); }

  // Of files below the root, "etc/passwd"; directories are made. kIo, as everywhere here.
  Result<void> Write(const std::string& name, const std::string& content) const;
  Result<void> AddProcess(std::uint32_t pid, const ProcessFiles& files,
                          std::uint32_t second_thread) const;
  Result<void> RemoveProcess(std::uint32_t pid) const;
  // Makes what is in `after` and not, or otherwise, in `before`; removes what is only in `before`.
  // A file appears whole.
  Result<void> Change(const NodeFiles& before, const NodeFiles& after) const;

 private:
  RootDirectory(std::filesystem::path root, std::filesystem::path staging)
      : root_(std::move(root)), staging_(std::move(staging)) {}

  std::filesystem::path root_, staging_;
};

}  // namespace gpuassay::sim
