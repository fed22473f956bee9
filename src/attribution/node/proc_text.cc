// The parsers of proc.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "attribution/node/proc.h"
#include "model/identity.h"

namespace gpuassay {
namespace {

// The kernel writes each of these files into one page, or a few.
constexpr std::size_t kStatBytesMax = 4096;
constexpr std::size_t kEnvironmentValueBytesMax = 4096;
constexpr std::size_t kNamespaceDepthMax = 32;  // the kernel's limit is also 32
constexpr std::uint64_t kKernelThreadFlag = 0x00200000;

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The next word of `text`, which loses it.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

std::unexpected<Error> FailStat(std::string_view field) {
  return Fail(ErrorCode::kMalformed,
              fmt::format("stat of a process: {} is missing or no number", field));
}

// Group and session are -1 while a process ends.
std::uint32_t GroupOrNone(std::string_view word) {
  const std::optional<std::uint32_t> number = ParseNumber<std::uint32_t>(word);
  return number ? *number : 0;
}

// Calls `use` with each line and stops when it returns false.
template <class Use>
void ForEachLine(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!use(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// status writes a newline as "\n" and a backslash as "\\".
std::string WithoutEscapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape && (text[i + 1] == '\\' || text[i + 1] == 'n')) {
      out += text[++i] == 'n' ? '\n' : '\\';
    } else {
      out += text[i];
    }
  }
  return out;
}

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// At most `bytes_max` bytes of `text`, without a part of a character at the end.
std::string_view CutAtCharacter(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  constexpr std::size_t kContinuationMax = 3;
  for (std::size_t i = 0; i < kContinuationMax && end > 0 && ContinuesCharacter(text[end]); ++i) {
    --end;
  }
  return text.substr(0, ContinuesCharacter(text[end]) ? bytes_max : end);
}

}  // namespace

Result<ProcStat> ParseProcStat(std::string_view text) {
  if (text.size() > kStatBytesMax) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("stat of a process: longer than {} bytes", kStatBytesMax));
  }
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
    return Fail(ErrorCode::kMalformed, "stat of a process: no name in brackets");
  }
  const auto pid = ParseNumber<std::uint32_t>(text.substr(0, open));
  if (!pid) return FailStat("the PID");
  std::string_view rest = text.substr(close + 2);
  constexpr std::size_t kFirstField = 3;
  constexpr std::size_t kLastField = 22;
  std::array<std::string_view, kLastField + 1> fields;
  for (std::size_t field = kFirstField; field <= kLastField; ++field) {
    fields[field] = TakeWord(rest);
  }
  if (fields[3].size() != 1) return FailStat("the state (field 3)");
  const auto parent = ParseNumber<std::uint32_t>(fields[4]);
  const auto flags = ParseNumber<std::uint64_t>(fields[9]);
  const auto threads = ParseNumber<std::uint32_t>(fields[20]);
  const auto start = ParseNumber<std::uint64_t>(fields[22]);
  if (!parent) return FailStat("the parent (field 4)");
  if (!flags) return FailStat("the flags (field 9)");
  if (!threads) return FailStat("the number of threads (field 20)");
  // Cut in the middle, the last number would be another one.
  if (!start || rest.empty()) return FailStat("the start (field 22)");
  return ProcStat{.pid = *pid,
                  .name = std::string(text.substr(open + 2, close - open - 2)),
                  .state = fields[3][0],
                  .parent_pid = *parent,
                  .process_group = GroupOrNone(fields[5]),
                  .session = GroupOrNone(fields[6]),
                  .kernel_thread = (*flags & kKernelThreadFlag) != 0,
                  .threads = *threads,
                  .start_ticks = *start};
}

Result<ProcStatus> ParseProcStatus(std::string_view text) {
  ProcStatus status;
  bool tgid_found = false;
  ForEachLine(text, [&](std::string_view line) {
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view key = line.substr(0, colon);
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    if (key == "Name" && status.name.empty()) {
      value.remove_prefix(value.starts_with('\t') ? 1 : 0);
      status.name = WithoutEscapes(CutAtCharacter(value, kOwnerTextBytesMax));
    } else if (key == "Tgid") {
      const auto tgid = ParseNumber<std::uint32_t>(TakeWord(value));
      tgid_found = tgid.has_value();
      if (tgid) status.tgid = *tgid;
    } else if (key == "Uid") {
      status.real_uid = ParseNumber<std::uint32_t>(TakeWord(value));
    } else if (key == "NSpid") {
      status.namespace_pids.clear();
      while (const auto pid = ParseNumber<std::uint32_t>(TakeWord(value))) {
        if (status.namespace_pids.size() < kNamespaceDepthMax) {
          status.namespace_pids.push_back(*pid);
        }
      }
    } else if (key == "voluntary_ctxt_switches") {
      status.voluntary_switches = ParseNumber<std::uint64_t>(TakeWord(value));
    }
    return true;
  });
  if (!tgid_found) {
    return Fail(ErrorCode::kMalformed, "status of a process: Tgid is missing or no number");
  }
  return status;
}

std::vector<std::pair<std::string, std::string>> ParseEnvironment(
    std::string_view text, const std::vector<std::string_view>& names) {
  std::vector<std::pair<std::string, std::string>> found;
  while (!text.empty()) {
    const std::string_view variable = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(variable.size() + 1, text.size()));
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    if (std::ranges::find(names, name) == names.end()) continue;
    // Of a name that is there twice the first counts, as for getenv.
    if (std::ranges::find(found, name, [](const auto& pair) -> std::string_view {
          return pair.first;
        }) != found.end()) {
      continue;
    }
    found.emplace_back(name, variable.substr(equals + 1, kEnvironmentValueBytesMax));
  }
  return found;
}

std::string ParseCommandLine(std::string_view text, std::size_t bytes_max) {
  // A process that has set its title leaves NULs behind it.
  while (text.ends_with('\0')) text.remove_suffix(1);
  std::string line(CutAtCharacter(text, bytes_max));
  std::ranges::replace(line, '\0', ' ');
  return line;
}

Result<ProcIo> ParseProcIo(std::string_view text) {
  std::optional<std::uint64_t> read;
  std::optional<std::uint64_t> written;
  ForEachLine(text, [&](std::string_view line) {
    const std::string_view key = line.substr(0, line.find(':'));
    std::string_view value = line.substr(std::min(key.size() + 1, line.size()));
    if (key == "read_bytes") read = ParseNumber<std::uint64_t>(TakeWord(value));
    if (key == "write_bytes") written = ParseNumber<std::uint64_t>(TakeWord(value));
    return true;
  });
  if (!read || !written) {
    return Fail(ErrorCode::kMalformed, fmt::format("io of a process: {} is missing or no number",
                                                   read ? "write_bytes" : "read_bytes"));
  }
  return ProcIo{.read_bytes = *read, .written_bytes = *written};
}

}  // namespace gpuassay
