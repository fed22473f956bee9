// For tests: a directory with files that goes away by itself.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/root_fs.h"

namespace gpuassay {

// A directory of its own that goes away with this.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpuassayXXXXXX").string();
    Check(mkdtemp(pattern.data()) != nullptr, "a temporary directory can be made");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  RootFs Root() const { return *RootFs::Open(path_); }
  // `path` inside of it, without a leading slash; makes the directories around it.
  void Write(const std::string& path, std::string_view content) const {
    std::ofstream(Place(path), std::ios::binary) << content;
  }
  void Link(const std::string& path, const std::string& target) const {
    std::filesystem::remove(Place(path));
    std::filesystem::create_symlink(target, Place(path));
  }
  void MakeDirectory(const std::string& path) const {
    std::filesystem::create_directories(path_ + "/" + path);
  }

 private:
  std::filesystem::path Place(const std::string& path) const {
    const std::filesystem::path full = path_ + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    return full;
  }
  std::string path_;
};

}  // namespace gpuassay
