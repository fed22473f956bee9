#include "sources/replay/recording_reader.h"

#include <fmt/format.h>
#include <zstd.h>

#include "model/snapshot_codec.h"
#include "sources/replay/recording_format.h"

namespace gpuassay {
namespace {

constexpr std::size_t kInputBytes = std::size_t{64} << 10;

void FreeDecompressor(ZSTD_DCtx* context) { ZSTD_freeDCtx(context); }

std::uint32_t Uint32At(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

}  // namespace

RecordingReader::RecordingReader(ReadBytes read)
    : read_(std::move(read)), decompressor_(ZSTD_createDCtx(), FreeDecompressor) {
  chunk_.resize(ZSTD_DStreamOutSize());
}
RecordingReader::~RecordingReader() = default;

Result<std::unique_ptr<RecordingReader>> RecordingReader::Open(ReadBytes read) {
  std::unique_ptr<RecordingReader> reader(new RecordingReader(std::move(read)));
  if (reader->decompressor_ == nullptr) return Fail(ErrorCode::kIo, "no memory to decompress");
  ZSTD_DCtx_setParameter(reader->decompressor_.get(), ZSTD_d_windowLogMax, kWindowLogMax);
  if (Result<void> result = reader->ReadHeader(); !result) return std::unexpected(result.error());
  return reader;
}

Error RecordingReader::Damaged(std::string_view what) const {
  return {ErrorCode::kMalformed, fmt::format("byte {}: {}", input_offset_ + input_at_, what)};
}

// Keeps what is unconsumed. Nothing is added at the end of the recording.
Result<void> RecordingReader::FillInput() {
  input_offset_ += input_at_;
  input_.erase(0, input_at_);
  input_at_ = 0;
  const std::size_t size = input_.size();
  input_.resize(size + kInputBytes);
  const Result<std::size_t> read = read_(std::span<char>(input_).subspan(size));
  input_.resize(size + read.value_or(0));
  if (!read) return std::unexpected(read.error());
  return {};
}

Result<void> RecordingReader::ReadHeader() {
  while (input_.size() < kRecordingHeaderBytes) {
    const std::size_t size = input_.size();
    if (Result<void> result = FillInput(); !result) return result;
    if (input_.size() == size) break;
  }
  const std::string_view input = input_;
  const std::string_view start = input.substr(0, kRecordingMagic.size());
  if (input.empty()) return Fail(ErrorCode::kMalformed, "byte 0: the file is empty");
  if (!kRecordingMagic.starts_with(start)) {
    return Fail(ErrorCode::kMalformed,
                "byte 0: not a recording made by `gpuassay record` (it would begin with GPUASSAY)");
  }
  if (input.size() < kRecordingHeaderBytes) {
    return Fail(ErrorCode::kMalformed, fmt::format("byte {}: ends within the header of {} bytes",
                                                   input.size(), kRecordingHeaderBytes));
  }
  const auto version = static_cast<std::uint8_t>(input[8]);
  if (version != kRecordingVersion) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("byte 8: recording version {}, this program reads version {}", version,
                            kRecordingVersion));
  }
  neutral_ = (static_cast<std::uint8_t>(input[9]) & kRecordingNeutral) != 0;
  input_at_ = kRecordingHeaderBytes;
  return {};
}

Result<void> RecordingReader::FillPlain(std::size_t size) {
  while (plain_.size() < size) {
    if (input_at_ == input_.size()) {
      if (Result<void> result = FillInput(); !result) return result;
    }
    // At the end of the bytes the decompressor may still hold some that are finished.
    const bool exhausted = input_.empty();
    ZSTD_inBuffer in = {input_.data(), input_.size(), input_at_};
    ZSTD_outBuffer out = {chunk_.data(), chunk_.size(), 0};
    const std::size_t result = ZSTD_decompressStream(decompressor_.get(), &out, &in);
    input_at_ = in.pos;
    if (ZSTD_isError(result) != 0) return std::unexpected(Damaged(ZSTD_getErrorName(result)));
    plain_.append(chunk_, 0, out.pos);
    if (exhausted && out.pos == 0) {
      return std::unexpected(Damaged("ends without its end mark (cut off while recording)"));
    }
  }
  return {};
}

Result<std::optional<Snapshot>> RecordingReader::Next() {
  if (ended_) return std::optional<Snapshot>();
  ended_ = true;  // unless this turns out to be a whole frame
  if (Result<void> result = FillPlain(kFrameHeaderBytes); !result) {
    return std::unexpected(result.error());
  }
  const std::size_t size = Uint32At(plain_, 0);
  const std::uint32_t checksum = Uint32At(plain_, 4);
  if (size == 0) {
    if (checksum == 0) return std::optional<Snapshot>();
    return std::unexpected(Damaged("a frame of no bytes"));
  }
  if (size > kFrameBytesMax) {
    return std::unexpected(
        Damaged(fmt::format("a frame of {} bytes, at most {} are allowed", size, kFrameBytesMax)));
  }
  if (Result<void> result = FillPlain(kFrameHeaderBytes + size); !result) {
    return std::unexpected(result.error());
  }
  const std::string_view frame = std::string_view(plain_).substr(kFrameHeaderBytes, size);
  if (FrameChecksum(frame) != checksum) return std::unexpected(Damaged("checksum does not match"));
  Result<Snapshot> snapshot = DecodeSnapshot(frame);
  if (!snapshot) {
    return std::unexpected(
        Damaged(fmt::format("frame {}: {}", frames_ + 1, snapshot.error().what)));
  }
  plain_.erase(0, kFrameHeaderBytes + size);
  ended_ = false;
  ++frames_;
  return std::optional<Snapshot>(std::move(*snapshot));
}

}  // namespace gpuassay
