#include "attribution/node/process_owners.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

namespace gpuassay {
namespace {

constexpr std::size_t kUsersMax = 65536;

// The users of an /etc/passwd, by number. Read again when the file changes.
class Users {
 public:
  // Its number as text when it has no name.
  std::string NameOf(const RootFs& root, std::uint32_t uid) {
    const std::optional<FileStamp> stamp = root.Stamp(kPasswdFile);
    if (!read_ || stamp != stamp_) {
      read_ = true;
      stamp_ = stamp;
      Parse(root.Read(kPasswdFile));
    }
    const auto found = names_.find(uid);
    return found == names_.end() ? std::to_string(uid) : found->second;
  }

 private:
  // Lines "name:x:uid:...". Of two names for one number the first counts, as for getpwuid.
  void Parse(const Result<std::string>& content) {
    names_.clear();
    if (!content) return;
    std::string_view text = *content;
    while (!text.empty() && names_.size() < kUsersMax) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      const std::size_t first = line.find(':');
      const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
      if (first == 0 || second == line.npos) continue;
      std::uint32_t uid = 0;
      const auto [end, error] =
          std::from_chars(line.data() + second + 1, line.data() + line.size(), uid);
      if (error != std::errc() || end == line.data() + line.size() || *end != ':') continue;
      names_.emplace(uid, line.substr(0, std::min(first, kOwnerTextBytesMax)));
    }
  }

  std::unordered_map<std::uint32_t, std::string> names_;
  std::optional<FileStamp> stamp_;
  bool read_ = false;
};

}  // namespace

struct ProcessOwners::Impl {
  struct Entry {
    ProcessFacts facts;
    std::string comm;
    std::size_t cgroup_hash = 0;
    std::uint32_t asked = 0;  // times; starts differently for each PID, so that not all are due
    bool unasked = false;     // since the last ForgetUnasked
    bool outdated = false;
  };

  Impl(RootFs root_fs, double ticks_per_second)
      : root(std::move(root_fs)), proc(root, ticks_per_second) {}

  void MakeRoom();

  RootFs root;
  Proc proc;
  Users users;
  std::unordered_map<std::uint32_t, Entry> entries;
  std::set<std::uint32_t> to_learn;
};

void ProcessOwners::Impl::MakeRoom() {
  if (entries.size() < kRememberedMax) return;
  std::erase_if(entries, [](const auto& pair) { return pair.second.unasked; });
  if (entries.size() >= kRememberedMax) entries.erase(entries.begin());
}

ProcessOwners::ProcessOwners(RootFs root, double ticks_per_second)
    : impl_(std::make_unique<Impl>(std::move(root), ticks_per_second)) {}

ProcessOwners::~ProcessOwners() = default;

const ProcessFacts* ProcessOwners::FindKnown(std::uint32_t pid) {
  const std::optional<ProcStat> stat = impl_->proc.StatQuickly(pid);
  const auto found = impl_->entries.find(pid);
  if (!stat) {
    if (found != impl_->entries.end()) impl_->entries.erase(found);
    return nullptr;
  }
  if (found == impl_->entries.end() ||
      found->second.facts.start_after_boot != impl_->proc.TicksToDuration(stat->start_ticks)) {
    if (found != impl_->entries.end()) impl_->entries.erase(found);
    if (impl_->to_learn.size() < kRememberedMax) impl_->to_learn.insert(pid);
    return nullptr;
  }
  Impl::Entry& entry = found->second;
  entry.unasked = false;
  if (entry.comm != stat->name) entry.outdated = true;
  if (++entry.asked % kCgroupEvery == 0) {
    const Result<std::string> cgroup = impl_->proc.Cgroup(impl_->proc.LiveThread(*stat));
    if (cgroup && std::hash<std::string>{}(*cgroup) != entry.cgroup_hash) entry.outdated = true;
  }
  if (entry.outdated && impl_->to_learn.size() < kRememberedMax) impl_->to_learn.insert(pid);
  return &entry.facts;
}

const ProcessFacts* ProcessOwners::Remember(LearnedProcess learned) {
  if (learned.real_uid) {
    learned.facts.owner.user = impl_->users.NameOf(impl_->root, *learned.real_uid);
  }
  auto found = impl_->entries.find(learned.pid);
  if (found == impl_->entries.end()) {
    impl_->MakeRoom();
    found = impl_->entries.emplace(learned.pid, Impl::Entry{}).first;
    found->second.asked = learned.pid % kCgroupEvery;
  }
  Impl::Entry& entry = found->second;
  entry.facts = std::move(learned.facts);
  entry.comm = std::move(learned.comm);
  entry.cgroup_hash = learned.cgroup_hash;
  entry.unasked = false;
  entry.outdated = false;
  impl_->to_learn.erase(learned.pid);
  return &entry.facts;
}

const ProcessFacts* ProcessOwners::Find(std::uint32_t pid) {
  const ProcessFacts* const known = FindKnown(pid);
  if (impl_->to_learn.erase(pid) == 0) return known;
  std::optional<LearnedProcess> learned = LearnProcess(impl_->proc, pid, ReadDepth::kAll);
  if (!learned) {
    impl_->entries.erase(pid);
    return nullptr;
  }
  return Remember(std::move(*learned));
}

std::vector<std::uint32_t> ProcessOwners::TakeToLearn() {
  std::vector<std::uint32_t> pids(impl_->to_learn.begin(), impl_->to_learn.end());
  impl_->to_learn.clear();
  return pids;
}

void ProcessOwners::ForgetUnasked() {
  std::erase_if(impl_->entries, [](const auto& pair) { return pair.second.unasked; });
  for (auto& [pid, entry] : impl_->entries) entry.unasked = true;
}

std::size_t ProcessOwners::remembered() const { return impl_->entries.size(); }

}  // namespace gpuassay
