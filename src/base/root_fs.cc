#include "base/root_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/file_descriptor.h"

namespace gpuassay {
namespace {

ErrorCode CodeOf(int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR || error_number == ESRCH) {
    return ErrorCode::kNotFound;
  }
  if (error_number == EACCES || error_number == EPERM) return ErrorCode::kPermission;
  return ErrorCode::kIo;
}

std::unexpected<Error> FailErrno(std::string_view what, std::string_view path) {
  const int error_number = errno;
  return Fail(CodeOf(error_number),
              fmt::format("{} {}: {}", what, path, std::strerror(error_number)));
}

}  // namespace

Result<RootFs> RootFs::Open(std::string root) {
  while (!root.empty() && root.back() == '/') root.pop_back();
  const std::string directory = root.empty() ? "/" : root;
  struct stat status = {};
  if (stat(directory.c_str(), &status) != 0) return FailErrno("root", directory);
  if (!S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kNotFound, fmt::format("root {}: not a directory", directory));
  }
  if (access(directory.c_str(), R_OK | X_OK) != 0) return FailErrno("root", directory);
  return RootFs(std::move(root));
}

std::string RootFs::Resolve(std::string_view path) const { return root_ + std::string(path); }

Result<std::string> RootFs::Read(std::string_view path) const {
  std::string content;
  const Result<void> read = Read(path, content);
  if (!read) return std::unexpected(read.error());
  return content;
}

Result<void> RootFs::Read(std::string_view path, std::string& content) const {
  content.clear();
  const std::string full = Resolve(path);
  const FileDescriptor file(open(full.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FailErrno("read", full);
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const auto failure = FailErrno("read", full);
      content.clear();
      return failure;
    }
    if (got == 0) return {};
    content.append(chunk.data(), static_cast<std::size_t>(got));
    if (content.size() > kFileBytesMax) {
      content.clear();
      return Fail(ErrorCode::kIo,
                  fmt::format("read {}: larger than {} bytes", full, kFileBytesMax));
    }
  }
}

Result<std::vector<std::string>> RootFs::List(std::string_view path) const {
  const std::string full = Resolve(path);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(full.c_str()), closedir);
  if (!directory) return FailErrno("list", full);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == kNamesMax) {
      return Fail(ErrorCode::kIo, fmt::format("list {}: more than {} names", full, kNamesMax));
    }
    names.emplace_back(name);
  }
  if (errno != 0) return FailErrno("list", full);
  return names;
}

Result<std::string> RootFs::ReadLink(std::string_view path) const {
  const std::string full = Resolve(path);
  std::array<char, 4096> target;
  const ssize_t size = readlink(full.c_str(), target.data(), target.size());
  if (size < 0) return FailErrno("read link", full);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

std::optional<std::size_t> RootFs::ReadStart(std::string_view path, std::span<char> into) const {
  std::array<char, 4096> full;
  if (root_.size() + path.size() >= full.size()) return std::nullopt;
  *std::ranges::copy(path, std::ranges::copy(root_, full.begin()).out).out = '\0';
  const FileDescriptor file(open(full.data(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return std::nullopt;
  const ssize_t got = read(file.get(), into.data(), into.size());
  if (got < 0) return std::nullopt;
  return static_cast<std::size_t>(got);
}

Result<LinkTargets> RootFs::ReadLinks(std::string_view path, std::string_view prefix) const {
  const std::string full = Resolve(path);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(full.c_str()), closedir);
  if (!directory) return FailErrno("list", full);
  LinkTargets targets;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    std::array<char, 4096> target;
    const ssize_t size =
        readlinkat(dirfd(directory.get()), entry->d_name, target.data(), target.size());
    if (size < 0) continue;
    ++targets.links;
    const std::string_view text(target.data(), static_cast<std::size_t>(size));
    if (!text.starts_with(prefix) || targets.matching.size() == kTargetsMax) continue;
    const auto place = std::ranges::lower_bound(targets.matching, text);
    if (place == targets.matching.end() || *place != text) targets.matching.emplace(place, text);
  }
  if (errno != 0) return FailErrno("list", full);
  return targets;
}

std::optional<FileStamp> RootFs::Stamp(std::string_view path) const {
  struct stat status = {};
  if (stat(Resolve(path).c_str(), &status) != 0) return std::nullopt;
  return FileStamp{
      .inode = status.st_ino,
      .bytes = static_cast<std::uint64_t>(status.st_size),
      .changed_ns = status.st_ctim.tv_sec * std::int64_t{1'000'000'000} + status.st_ctim.tv_nsec};
}

bool RootFs::Exists(std::string_view path) const {
  struct stat status = {};
  return lstat(Resolve(path).c_str(), &status) == 0;
}

}  // namespace gpuassay
