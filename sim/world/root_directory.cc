#include "sim/world/root_directory.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace gpuassay::sim {
namespace {

namespace fs = std::filesystem;

Result<void> Failed(const fs::path& path, const std::error_code& code) {
  return Fail(ErrorCode::kIo, fmt::format("{}: {}", path.string(), code.message()));
}

// Makes files until the first error, which it keeps.
class Maker {
 public:
  void Directory(const fs::path& path) {
    std::error_code code;
    fs::create_directories(path, code);
    Keep(path, code);
  }
  void File(const fs::path& path, const std::string& content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << content;
    file.close();
    if (!file) {
      Keep(path, std::make_error_code(std::errc::io_error));
    }
  }
  void Link(const fs::path& path, const std::string& target) {
    std::error_code code;
    fs::create_symlink(target, path, code);
    Keep(path, code);
  }
  void Rename(const fs::path& from, const fs::path& to) {
    std::error_code code;
    fs::rename(from, to, code);
    Keep(to, code);
  }
  void Remove(const fs::path& path) {
    std::error_code code;
    fs::remove_all(path, code);
    Keep(path, code);
  }
  const Result<void>& result() const { return result_; }

 private:
  void Keep(const fs::path& path, const std::error_code& code) {
    if (code && result_) {
      result_ = Failed(path, code);
    }
  }
  Result<void> result_;
};

void Thread(Maker& maker, const fs::path& task, std::uint32_t id, const std::string& stat,
            const std::vector<std::string>& files) {
  const fs::path directory = task / std::to_string(id);
  maker.Directory(directory / "fd");
  maker.File(directory / "stat", stat);
  for (std::size_t i = 0; i < files.size(); ++i) {
    maker.Link(directory / "fd" / std::to_string(i), files[i]);
  }
}

}  // namespace

Result<RootDirectory> RootDirectory::Create(const fs::path& directory) {
  RootDirectory made(directory / "root", directory / "staging");
  Maker maker;
  maker.Directory(made.root_ / "proc");
  maker.Directory(made.root_ / "etc");
  maker.Directory(made.staging_);
  if (!maker.result()) {
    return std::unexpected(maker.result().error());
  }
  return made;
}

Result<void> RootDirectory::Write(const std::string& name, const std::string& content) const {
  Maker maker;
  maker.Directory((root_ / name).parent_path());
  maker.File(root_ / name, content);
  return maker.result();
}

Result<void> RootDirectory::AddProcess(std::uint32_t pid, const ProcessFiles& files,
                                       std::uint32_t second_thread) const {
  const fs::path made = staging_ / std::to_string(pid);
  const std::vector<std::string> none;
  Maker maker;
  maker.Directory(made / "fd");
  maker.Directory(made / "ns");
  maker.File(made / "stat", files.stat);
  maker.File(made / "status", files.status);
  maker.File(made / "cgroup", files.cgroup);
  maker.File(made / "cmdline", files.command_line);
  maker.File(made / "comm", files.name);
  maker.File(made / "environ", files.environment);
  maker.File(made / "io", files.io);
  maker.Link(made / "ns" / "pid", files.pid_namespace);
  const std::vector<std::string>& of_leader = files.leader_is_dead ? none : files.files;
  for (std::size_t i = 0; i < of_leader.size(); ++i) {
    maker.Link(made / "fd" / std::to_string(i), of_leader[i]);
  }
  // The main thread says of itself what the process says.
  maker.Directory(made / "task");
  maker.Link(made / "task" / std::to_string(pid), "..");
  if (!files.thread_stat.empty()) {
    Thread(maker, made / "task", second_thread, files.thread_stat, files.files);
  }
  maker.Rename(made, root_ / "proc" / std::to_string(pid));
  return maker.result();
}

Result<void> RootDirectory::RemoveProcess(std::uint32_t pid) const {
  const fs::path gone = staging_ / fmt::format("{}.gone", pid);
  Maker maker;
  maker.Rename(root_ / "proc" / std::to_string(pid), gone);
  maker.Remove(gone);
  return maker.result();
}

Result<void> RootDirectory::Change(const NodeFiles& before, const NodeFiles& after) const {
  Maker maker;
  for (const auto& [name, entry] : before) {
    const auto kept = after.find(name);
    if (kept == after.end() || (kept->second != entry && entry.kind == NodeEntry::Kind::kLink)) {
      maker.Remove(root_ / name);
    }
  }
  const fs::path made = staging_ / "file";
  for (const auto& [name, entry] : after) {
    const auto old = before.find(name);
    if (old != before.end() && old->second == entry) {
      continue;
    }
    switch (entry.kind) {
      case NodeEntry::Kind::kDirectory:
        maker.Directory(root_ / name);
        break;
      case NodeEntry::Kind::kFile:
        maker.File(made, entry.content);
        maker.Rename(made, root_ / name);
        break;
      case NodeEntry::Kind::kLink:
        maker.Link(root_ / name, entry.content);
        break;
    }
  }
  return maker.result();
}

}  // namespace gpuassay::sim
