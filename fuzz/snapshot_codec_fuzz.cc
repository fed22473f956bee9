// Any bytes either are refused or are a snapshot that encodes and decodes again to the same bytes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/snapshot_codec.h"
#include "model/snapshot_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gpuassay::Check;
  const std::string bytes(data, data + size);
  const auto snapshot = gpuassay::DecodeSnapshot(bytes);
  if (!snapshot) {
    Check(snapshot.error().code == gpuassay::ErrorCode::kMalformed, "bad bytes are malformed");
    return 0;
  }
  std::string first;
  gpuassay::EncodeSnapshot(*snapshot, first);
  const auto again = gpuassay::DecodeSnapshot(first);
  Check(again.has_value(), "what was encoded decodes");
  std::string second;
  gpuassay::EncodeSnapshot(*again, second);
  Check(first == second, "encoding is canonical");
  Check(!gpuassay::SnapshotJson(*snapshot).empty(), "every snapshot has a JSON form");
  return 0;
}
