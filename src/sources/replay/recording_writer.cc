#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "model/snapshot_codec.h"
#include "sources/replay/neutral.h"
#include "sources/replay/recording.h"
#include "sources/replay/recording_format.h"

namespace gpuassay {
namespace {

constexpr int kCompressionLevel = 3;

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
using Compressor = std::unique_ptr<ZSTD_CCtx, FreeCompressor>;

Error SystemError(const std::string& path, std::string_view doing) {
  const int code = errno;
  const bool denied = code == EACCES || code == EPERM || code == EROFS;
  return {denied ? ErrorCode::kPermission : ErrorCode::kIo,
          fmt::format("{}: {}: {}", path, doing, std::strerror(code))};
}

void AppendUint32(std::uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
}

class FileWriter final : public RecordingWriter {
 public:
  FileWriter(std::string path, int fd, Options options, Compressor compressor)
      : path_(std::move(path)), fd_(fd), compressor_(std::move(compressor)) {
    if (options.neutral) neutralizer_.emplace();
    output_.resize(ZSTD_CStreamOutSize());
  }
  ~FileWriter() override {
    if (fd_ >= 0) static_cast<void>(Close());  // nobody is left to tell
  }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  Result<void> WriteHeader() {
    std::string header(kRecordingMagic);
    header += static_cast<char>(kRecordingVersion);
    header += static_cast<char>(neutralizer_ ? kRecordingNeutral : 0);
    header.resize(kRecordingHeaderBytes, '\0');
    return WriteBytes(header);
  }

  Result<void> Write(const Snapshot& snapshot) override {
    if (failed_ || fd_ < 0) return Fail(ErrorCode::kIo, path_ + ": the recording has ended");
    payload_.clear();
    if (neutralizer_) {
      Snapshot copy = snapshot;
      if (Result<void> result = neutralizer_->Apply(copy); !result) return result;
      EncodeSnapshot(copy, payload_);
    } else {
      EncodeSnapshot(snapshot, payload_);
    }
    if (payload_.size() > kFrameBytesMax) {
      return Fail(ErrorCode::kUnsupported, fmt::format("{}: a frame of {} bytes, at most {} fit",
                                                       path_, payload_.size(), kFrameBytesMax));
    }
    frame_.clear();
    AppendUint32(static_cast<std::uint32_t>(payload_.size()), frame_);
    AppendUint32(FrameChecksum(payload_), frame_);
    frame_ += payload_;
    Result<void> result = Compress(frame_, ZSTD_e_flush);
    if (result) ++frames_;
    return result;
  }

  Result<void> Close() override {
    if (fd_ < 0) return {};
    Result<void> result;
    if (!failed_) result = Compress(std::string(kFrameHeaderBytes, '\0'), ZSTD_e_end);
    // A pipe cannot be synced and need not be.
    if (result && fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
      result = std::unexpected(SystemError(path_, "cannot sync"));
    }
    if (close(fd_) != 0 && result) result = std::unexpected(SystemError(path_, "cannot close"));
    fd_ = -1;
    return result;
  }

  std::uint64_t frames() const override { return frames_; }
  std::uint64_t file_bytes() const override { return file_bytes_; }

 private:
  Result<void> Compress(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
    std::size_t left = 1;
    while (left != 0) {
      ZSTD_outBuffer out = {output_.data(), output_.size(), 0};
      left = ZSTD_compressStream2(compressor_.get(), &out, &in, directive);
      if (ZSTD_isError(left) != 0) {
        failed_ = true;
        return Fail(ErrorCode::kIo, fmt::format("{}: {}", path_, ZSTD_getErrorName(left)));
      }
      Result<void> result = WriteBytes(std::string_view(output_).substr(0, out.pos));
      if (!result) return result;
    }
    return {};
  }

  Result<void> WriteBytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        failed_ = true;
        return std::unexpected(SystemError(path_, "cannot write"));
      }
      file_bytes_ += static_cast<std::uint64_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  std::string path_;
  int fd_;
  Compressor compressor_;
  std::optional<Neutralizer> neutralizer_;
  std::string payload_, frame_, output_;
  std::uint64_t frames_ = 0;
  std::uint64_t file_bytes_ = 0;
  bool failed_ = false;  // after a partial write nothing behind it could be read
};

}  // namespace

Result<std::unique_ptr<RecordingWriter>> RecordingWriter::Create(const std::string& path,
                                                                 Options options) {
  // No O_TRUNC: what is in the file decides whether it may be written.
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return std::unexpected(SystemError(path, "cannot make the recording"));
  struct stat status = {};
  if (fstat(fd, &status) != 0 || status.st_size != 0) {
    close(fd);
    return Fail(ErrorCode::kIo, path + ": the file exists and is not empty; name a new one");
  }
  Compressor compressor(ZSTD_createCCtx());
  if (compressor == nullptr) {
    close(fd);
    return Fail(ErrorCode::kIo, path + ": no memory for the compressor");
  }
  ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  auto writer = std::make_unique<FileWriter>(path, fd, options, std::move(compressor));
  if (Result<void> result = writer->WriteHeader(); !result) {
    return std::unexpected(result.error());
  }
  return std::unique_ptr<RecordingWriter>(std::move(writer));
}

}  // namespace gpuassay
