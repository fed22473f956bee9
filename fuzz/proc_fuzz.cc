// Text of /proc about a process, which names, arguments and environment of anybody are in: either
// it is refused in one line or what is taken is within its bounds. The input is one text, given to
// each parser.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/node/proc.h"
#include "base/check.h"

namespace {

using gpuassay::Check;
using gpuassay::ErrorCode;

constexpr std::size_t kPageBytes = 4096;

template <class Parsed>
bool Taken(const gpuassay::Result<Parsed>& parsed) {
  if (parsed) return true;
  Check(parsed.error().code == ErrorCode::kMalformed, "bad text is malformed");
  Check(parsed.error().what.find('\n') == std::string::npos, "an error is one line");
  return false;
}

bool IsFollowing(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

void CheckCommandLine(std::string_view text) {
  constexpr std::size_t kBytesMax = 64;
  const std::string whole = gpuassay::ParseCommandLine(text, text.size());
  const std::string cut = gpuassay::ParseCommandLine(text, kBytesMax);
  Check(whole.find('\0') == std::string::npos, "no NUL between arguments");
  Check(cut.size() <= kBytesMax, "a command line is bounded");
  Check(whole.starts_with(cut), "a command line is cut at its end");
  if (cut.size() == whole.size() || !IsFollowing(whole[cut.size()])) return;
  // No character has four bytes after its first: then it is no UTF-8, and cut anywhere.
  Check(cut.size() == kBytesMax && std::ranges::all_of(whole.substr(kBytesMax - 3, 4), IsFollowing),
        "a command line is cut at a character");
}

void CheckEnvironment(std::string_view text) {
  const std::vector<std::string_view> names = {"SLURM_JOB_ID", "NVIDIA_VISIBLE_DEVICES", "A"};
  const auto found = gpuassay::ParseEnvironment(text, names);
  Check(found.size() <= names.size(), "each variable once");
  for (const auto& [name, value] : found) {
    Check(std::ranges::find(names, name) != names.end(), "only what was asked for is kept");
    Check(value.size() <= kPageBytes, "a value is bounded");
    Check(text.find(name + "=" + value) != std::string_view::npos, "it is in the text");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto stat = gpuassay::ParseProcStat(text);
  if (Taken(stat)) {
    Check(size <= kPageBytes, "no longer than the kernel's page");
    Check(text.find("(" + stat->name + ")") != std::string_view::npos, "the name is in the text");
  }
  const auto status = gpuassay::ParseProcStatus(text);
  if (Taken(status)) {
    Check(status->namespace_pids.size() <= size, "no more PIDs than the text has");
    Check(status->name.size() <= size, "no longer than the text");
  }
  Taken(gpuassay::ParseProcIo(text));
  CheckCommandLine(text);
  CheckEnvironment(text);
  return 0;
}
