#include "base/root_fs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

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

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

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
  const std::string full = Resolve(path);
  const FileDescriptor file(open(full.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FailErrno("read", full);
  std::string content;
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", full);
    if (got == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
    if (content.size() > kFileBytesMax) {
      return Fail(ErrorCode::kIo,
                  fmt::format("read {}: larger than {} bytes", full, kFileBytesMax));
    }
  }
}

}  // namespace gpuassay
