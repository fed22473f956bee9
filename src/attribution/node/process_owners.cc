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
    std::uint32_t look_interval = 0;  // in times that it is asked for
    std::uint32_t look_after = 0;     // so many more
    std::uint64_t asked_in = 0;       // cycle
    bool outdated = false;
    bool watched = false;  // we are told when it ends: until then it is the same process
  };

  Impl(RootFs root_fs, double ticks_per_second, std::size_t watched_max)
      : root(std::move(root_fs)), proc(root, ticks_per_second), exits(root, watched_max) {}

  using Entries = std::unordered_map<std::uint32_t, Entry>;

  // A PID that is not in /proc: of another PID namespace, as a rule, and so it stays.
  struct Absent {
    std::uint64_t wait = 1;      // cycles
    std::uint64_t look_in = 0;   // cycle
    std::uint64_t asked_in = 0;  // cycle
  };

  void Forget(Entries::iterator entry);
  bool IsAbsent(std::uint32_t pid);
  void NoteAbsent(std::uint32_t pid);
  void ForgetUnasked();
  void MakeRoom();
  const ProcessFacts* LookAt(std::uint32_t pid, Entries::iterator found);
  // Of a process that exists. Gives the facts, and asks for new ones when these are old.
  const ProcessFacts* FactsOf(std::uint32_t pid, Entry& entry);
  // Whether the process of the facts, and no other, is watched.
  bool Watch(std::uint32_t pid, const ProcessFacts& facts);

  RootFs root;
  Proc proc;
  ExitWatch exits;
  Users users;
  Entries entries;                                   // by PID
  std::unordered_map<std::uint32_t, Absent> absent;  // by PID
  std::uint64_t cycle = 0;
  std::set<std::uint32_t> to_learn;
};

void ProcessOwners::Impl::Forget(Entries::iterator entry) {
  exits.Forget(entry->first);
  entries.erase(entry);
}

bool ProcessOwners::Impl::IsAbsent(std::uint32_t pid) {
  const auto found = absent.find(pid);
  if (found == absent.end()) return false;
  found->second.asked_in = cycle;
  return cycle < found->second.look_in;
}

void ProcessOwners::Impl::NoteAbsent(std::uint32_t pid) {
  if (absent.size() >= kRememberedMax) return;
  Absent& one = absent[pid];
  one.asked_in = cycle;
  one.look_in = cycle + one.wait;
  one.wait = std::min(one.wait * 2, kAbsentCyclesMax);
}

void ProcessOwners::Impl::ForgetUnasked() {
  std::erase_if(entries, [this](const auto& pair) {
    const bool unasked = pair.second.asked_in != cycle;
    if (unasked) exits.Forget(pair.first);
    return unasked;
  });
  std::erase_if(absent, [this](const auto& pair) { return pair.second.asked_in != cycle; });
}

void ProcessOwners::Impl::MakeRoom() {
  if (entries.size() < kRememberedMax) return;
  ForgetUnasked();
  if (entries.size() >= kRememberedMax) Forget(entries.begin());
}

bool ProcessOwners::Impl::Watch(std::uint32_t pid, const ProcessFacts& facts) {
  if (!exits.Watch(pid)) return false;
  if (proc.StartAfterBoot(pid) == facts.start_after_boot) return true;
  exits.Forget(pid);
  return false;
}

const ProcessFacts* ProcessOwners::Impl::FactsOf(std::uint32_t pid, Entry& entry) {
  if (entry.outdated && to_learn.size() < kRememberedMax) to_learn.insert(pid);
  return &entry.facts;
}

const ProcessFacts* ProcessOwners::Impl::LookAt(std::uint32_t pid, Entries::iterator found) {
  const std::optional<ProcStat> stat = proc.StatQuickly(pid);
  if (stat) {
    absent.erase(pid);
  } else {
    NoteAbsent(pid);
  }
  const bool known = found != entries.end();
  const bool same = known && stat &&
                    found->second.facts.start_after_boot == proc.TicksToDuration(stat->start_ticks);
  if (!same) {
    if (known) Forget(found);
    if (stat && to_learn.size() < kRememberedMax) to_learn.insert(pid);
    return nullptr;
  }
  Entry& entry = found->second;
  if (entry.comm != stat->name) entry.outdated = true;
  if (entry.look_after == 0) {
    if (entry.look_interval * 2 <= kLookAgainMax) entry.look_interval *= 2;
    entry.look_after = entry.look_interval;
    const Result<std::string> cgroup = proc.Cgroup(proc.LiveThread(*stat));
    if (cgroup && std::hash<std::string>{}(*cgroup) != entry.cgroup_hash) entry.outdated = true;
    if (!entry.watched) entry.watched = Watch(pid, entry.facts);
  }
  return FactsOf(pid, entry);
}

ProcessOwners::ProcessOwners(RootFs root, double ticks_per_second, std::size_t watched_max)
    : impl_(std::make_unique<Impl>(std::move(root), ticks_per_second, watched_max)) {}

ProcessOwners::~ProcessOwners() = default;

const ProcessFacts* ProcessOwners::FindKnown(std::uint32_t pid) {
  const auto found = impl_->entries.find(pid);
  if (found == impl_->entries.end()) {
    return impl_->IsAbsent(pid) ? nullptr : impl_->LookAt(pid, found);
  }
  Impl::Entry& entry = found->second;
  entry.asked_in = impl_->cycle;
  if (entry.look_after > 0) --entry.look_after;
  if (entry.watched && entry.look_after > 0) return impl_->FactsOf(pid, entry);
  return impl_->LookAt(pid, found);
}

const ProcessFacts* ProcessOwners::Remember(LearnedProcess learned) {
  if (learned.real_uid) {
    learned.facts.owner.user = impl_->users.NameOf(impl_->root, *learned.real_uid);
  }
  auto found = impl_->entries.find(learned.pid);
  if (found == impl_->entries.end()) {
    impl_->MakeRoom();
    found = impl_->entries.emplace(learned.pid, Impl::Entry{}).first;
    found->second.look_interval = kLookAgainFirst + learned.pid % kLookAgainFirst;
    found->second.look_after = found->second.look_interval;
  }
  Impl::Entry& entry = found->second;
  entry.facts = std::move(learned.facts);
  entry.comm = std::move(learned.comm);
  entry.cgroup_hash = learned.cgroup_hash;
  entry.asked_in = impl_->cycle;
  entry.outdated = false;
  entry.watched = impl_->Watch(learned.pid, entry.facts);
  impl_->to_learn.erase(learned.pid);
  return &entry.facts;
}

const ProcessFacts* ProcessOwners::Find(std::uint32_t pid) {
  impl_->absent.erase(pid);
  const ProcessFacts* const known = FindKnown(pid);
  if (impl_->to_learn.erase(pid) == 0) return known;
  std::optional<LearnedProcess> learned = LearnProcess(impl_->proc, pid, ReadDepth::kAll);
  if (learned) return Remember(std::move(*learned));
  const auto found = impl_->entries.find(pid);
  if (found != impl_->entries.end()) impl_->Forget(found);
  return nullptr;
}

std::vector<std::uint32_t> ProcessOwners::TakeToLearn() {
  std::vector<std::uint32_t> pids(impl_->to_learn.begin(), impl_->to_learn.end());
  impl_->to_learn.clear();
  return pids;
}

void ProcessOwners::BeginCycle() {
  for (const std::uint32_t pid : impl_->exits.TakeEnded()) {
    const auto found = impl_->entries.find(pid);
    if (found != impl_->entries.end()) found->second.watched = false;
  }
  impl_->ForgetUnasked();
  ++impl_->cycle;
}

std::size_t ProcessOwners::remembered() const { return impl_->entries.size(); }

}  // namespace gpuassay
