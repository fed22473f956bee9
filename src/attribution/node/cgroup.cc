#include "attribution/node/cgroup.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

namespace gpuassay {
namespace {

constexpr std::size_t kPathBytesMax = 4096;
constexpr std::string_view kDeleted = " (deleted)";

// What a container's scope or folder is called before "-" and its id, and whose name that is.
struct Prefix {
  std::string_view text;
  std::string_view runtime;  // empty: a monitor, which is no container
};
constexpr std::array kPrefixes = {
    Prefix{"cri-containerd", "containerd"},
    Prefix{"containerd", "containerd"},
    Prefix{"nerdctl", "containerd"},
    Prefix{"docker", "docker"},
    Prefix{"crio", "cri-o"},
    Prefix{"crio-conmon", ""},
    Prefix{"libpod", "podman"},
    Prefix{"libpod-payload", "podman"},
    Prefix{"libpod-conmon", ""},
};

// Folders in which a runtime makes one folder per container, named by its id.
constexpr std::array kFolders = {
    Prefix{"docker", "docker"},
    Prefix{"nerdctl", "containerd"},
    Prefix{"k8s.io", "containerd"},
};

// Numbers of steps that have a name: slurm.h of 20.11 and later; the last two are those of before.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kStepNames = {{
    {"4294967290", "interactive"},
    {"4294967291", "batch"},
    {"4294967292", "extern"},
    {"4294967293", "pending"},
    {"4294967294", "batch"},
    {"4294967295", "extern"},
}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool IsContainerId(std::string_view text) {
  constexpr std::size_t kIdDigits = 64;
  return text.size() == kIdDigits && std::ranges::all_of(text, IsHexDigit);
}

bool IsNumber(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }

// "X" of "PREFIX" + "X" + "SUFFIX", unless it is empty.
std::optional<std::string_view> Between(std::string_view text, std::string_view prefix,
                                        std::string_view suffix = "") {
  if (text.size() <= prefix.size() + suffix.size()) return std::nullopt;
  if (!text.starts_with(prefix) || !text.ends_with(suffix)) return std::nullopt;
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

std::optional<std::uint32_t> NumberBetween(std::string_view text, std::string_view prefix,
                                           std::string_view suffix = "") {
  const std::optional<std::string_view> digits = Between(text, prefix, suffix);
  std::uint32_t number = 0;
  if (!digits || !IsNumber(*digits)) return std::nullopt;
  const auto [end, error] =
      std::from_chars(digits->data(), digits->data() + digits->size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// A pod's UID as the folder has it: 8-4-4-4-12 digits, or a static pod's 32. Inside of a kubepods
// folder it is whatever the manifest says.
bool IsPodUid(std::string_view uid, bool in_kubepods) {
  constexpr std::size_t kUidBytes = 36;
  constexpr std::size_t kHashBytes = 32;
  const auto is_dash = [&](std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; };
  if (uid.size() == kUidBytes) {
    bool as_uuid = true;
    for (std::size_t i = 0; i < uid.size(); ++i) {
      as_uuid = as_uuid && (is_dash(i) ? uid[i] == '-' : IsHexDigit(uid[i]));
    }
    if (as_uuid) return true;
  }
  if (uid.size() == kHashBytes && std::ranges::all_of(uid, IsHexDigit)) return true;
  return in_kubepods && uid.size() < kOwnerTextBytesMax && std::ranges::all_of(uid, [](char c) {
           return IsDigit(c) || IsLetter(c) || c == '-' || c == '.';
         });
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// systemd writes a dash inside of a machine's name as "\x2d", and other bytes alike.
std::string Unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    unsigned byte = 0;
    if (text.size() >= 4 && text.starts_with("\\x") && IsHexDigit(text[2]) && IsHexDigit(text[3])) {
      std::from_chars(text.data() + 2, text.data() + 4, byte, 16);
      out += static_cast<char>(byte);
      text.remove_prefix(4);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

// Takes the folders of a path one after the other, from the outermost to the innermost.
class PathReader {
 public:
  void Take(std::string_view folder, std::string_view next);
  CgroupOwner Finish();
  std::size_t containers() const { return containers_; }

 private:
  void TakeFolder(std::string_view folder, std::string_view next);
  bool TakePod(std::string_view folder);
  bool TakeContainer(std::string_view folder);
  bool TakeMachine(std::string_view folder);
  bool TakeJob(std::string_view folder, std::string_view next);
  void TakeUnit(std::string_view folder);
  void EnterPod(std::string uid, std::optional<PodQos> qos);
  void EnterContainer(std::string id, std::string_view runtime);

  CgroupOwner owner_;
  std::string_view parent_;  // the folder before
  bool in_kubepods_ = false;
  bool in_slurm_ = false;
  std::size_t containers_ = 0;
};

void PathReader::Take(std::string_view folder, std::string_view next) {
  if (folder == ".." || folder == "." || folder.empty() || folder.size() > kOwnerTextBytesMax) {
    return;
  }
  // "SLICE:PREFIX:NAME": a runtime with the systemd driver was given a path meant for it as it is.
  const std::size_t first = folder.find(':');
  const std::size_t second = folder.find(':', first == std::string_view::npos ? first : first + 1);
  if (second != std::string_view::npos && folder.substr(0, first).ends_with(".slice")) {
    TakeFolder(folder.substr(0, first), next);
    std::string scope(folder.substr(first + 1));
    scope[second - first - 1] = '-';
    TakeContainer(scope);
  } else {
    TakeFolder(folder, next);
  }
  parent_ = folder;
}

void PathReader::TakeFolder(std::string_view folder, std::string_view next) {
  in_kubepods_ = in_kubepods_ || folder == "kubepods" || folder.ends_with("kubepods.slice");
  if (TakePod(folder) || TakeContainer(folder) || TakeMachine(folder) || TakeJob(folder, next)) {
    return;
  }
  TakeUnit(folder);
}

void PathReader::EnterPod(std::string uid, std::optional<PodQos> qos) {
  owner_.pod_uid = std::move(uid);
  owner_.qos = qos;
  owner_.container.reset();  // the container around it is the node (kind), not the owner
}

void PathReader::EnterContainer(std::string id, std::string_view runtime) {
  owner_.container =
      ContainerIdentity{.id = std::move(id), .name = "", .runtime = std::string(runtime)};
  ++containers_;
}

bool PathReader::TakePod(std::string_view folder) {
  if (const auto uid = Between(folder, "pod"); uid && IsPodUid(*uid, in_kubepods_)) {
    std::optional<PodQos> qos;
    if (parent_ == "kubepods") qos = PodQos::kGuaranteed;
    if (parent_ == "burstable") qos = PodQos::kBurstable;
    if (parent_ == "besteffort") qos = PodQos::kBestEffort;
    EnterPod(LowerCase(*uid), qos);
    return true;
  }
  // "kubepods-burstable-podUID.slice", with the names of the slices around it before.
  for (const auto& [name, qos] : {std::pair{"kubepods-pod", PodQos::kGuaranteed},
                                  {"kubepods-burstable-pod", PodQos::kBurstable},
                                  {"kubepods-besteffort-pod", PodQos::kBestEffort}}) {
    const std::size_t at = folder.find(name);
    if (at == std::string_view::npos || (at > 0 && folder[at - 1] != '-')) continue;
    const auto uid_text = Between(folder.substr(at), name, ".slice");
    if (!uid_text) continue;
    std::string uid = LowerCase(*uid_text);
    std::ranges::replace(uid, '_', '-');  // in the name of a slice a dash means a slice inside
    if (!IsPodUid(uid, true)) continue;
    EnterPod(std::move(uid), qos);
    return true;
  }
  return false;
}

bool PathReader::TakeContainer(std::string_view folder) {
  std::string_view name = folder;
  if (name.ends_with(".scope")) name.remove_suffix(std::string_view(".scope").size());
  if (IsContainerId(name) && name == folder) {
    const auto known = std::ranges::find(kFolders, parent_, &Prefix::text);
    EnterContainer(LowerCase(name), known == kFolders.end() ? "" : known->runtime);
    return true;
  }
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || !IsContainerId(name.substr(dash + 1))) return false;
  const auto known = std::ranges::find(kPrefixes, name.substr(0, dash), &Prefix::text);
  if (known == kPrefixes.end()) return false;
  if (!known->runtime.empty()) {
    EnterContainer(LowerCase(name.substr(dash + 1)), known->runtime);
    return true;
  }
  owner_.container.reset();
  TakeUnit(folder);
  return true;
}

// LXC and systemd-nspawn: whole systems, called by name.
bool PathReader::TakeMachine(std::string_view folder) {
  if (const auto name = Between(folder, "lxc.payload.")) {
    EnterContainer(std::string(*name), "lxc");
    return true;
  }
  if (parent_ == "lxc" || parent_ == "lxc.payload") {
    EnterContainer(std::string(folder), "lxc");
    return true;
  }
  if (const auto name = Between(folder, "systemd-nspawn@", ".service")) {
    EnterContainer(Unescaped(*name), "nspawn");
    return true;
  }
  const auto machine = Between(folder, "machine-", ".scope");
  // libvirt registers its virtual machines and containers there too; they are none of nspawn.
  if (!machine || machine->starts_with("qemu\\x2d") || machine->starts_with("lxc\\x2d")) {
    return false;
  }
  EnterContainer(Unescaped(*machine), "nspawn");
  return true;
}

bool PathReader::TakeJob(std::string_view folder, std::string_view next) {
  if (folder == "slurm" || folder.starts_with("slurm_") || folder.ends_with("slurmstepd.scope")) {
    in_slurm_ = true;
    return !folder.ends_with(".scope");
  }
  if (const auto uid = NumberBetween(folder, "uid_"); uid && in_slurm_) {
    owner_.slurm_uid = uid;
    return true;
  }
  const auto job = NumberBetween(folder, "job_");
  if (job && (in_slurm_ || next.starts_with("step_"))) {
    in_slurm_ = true;
    owner_.slurm = JobIdentity{.kind = "slurm", .id = std::to_string(*job), .step = ""};
    return true;
  }
  const auto step = Between(folder, "step_");
  if (step && owner_.slurm && parent_.starts_with("job_")) {
    owner_.slurm->step = SlurmStepName(*step);
    return true;
  }
  if (parent_ == "jobid" && owner_.systemd_unit.starts_with("pbs_jobs")) {
    owner_.pbs = JobIdentity{.kind = "pbs", .id = Unescaped(folder), .step = ""};
    return true;
  }
  return false;
}

void PathReader::TakeUnit(std::string_view folder) {
  if (owner_.container) return;  // what runs inside of a container is its own affair
  if (const auto uid = NumberBetween(folder, "user-", ".slice")) owner_.login_uid = uid;
  if (Between(folder, "", ".service") || Between(folder, "", ".scope")) {
    owner_.systemd_unit = folder;
  }
}

CgroupOwner PathReader::Finish() {
  if (owner_.container || owner_.slurm || owner_.pbs) owner_.systemd_unit.clear();
  return std::move(owner_);
}

struct Read {
  CgroupOwner owner;
  std::size_t containers = 0;
};

Read ReadPath(std::string_view path) {
  if (path.size() > kPathBytesMax) return {};
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  PathReader reader;
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    reader.Take(folder, path.substr(0, path.find('/')));
  }
  Read read;
  read.containers = reader.containers();
  read.owner = reader.Finish();
  return read;
}

// A process is in one path per hierarchy, and not all of them name its container or its job: of
// each part the path that says most of it counts, the first of equal ones.
class Merge {
 public:
  void Add(std::string_view controllers, Read read) {
    CgroupOwner& from = read.owner;
    const auto says = std::tuple(read.containers, from.container.has_value(), !from.pod_uid.empty(),
                                 from.qos.has_value());
    if (says > container_says_) {
      container_says_ = says;
      owner_.container = std::move(from.container);
      owner_.pod_uid = std::move(from.pod_uid);
      owner_.qos = from.qos;
    }
    if (from.slurm && (!owner_.slurm || owner_.slurm->step.empty())) {
      owner_.slurm = std::move(from.slurm);
    }
    if (from.pbs && !owner_.pbs) owner_.pbs = std::move(from.pbs);
    if (!owner_.slurm_uid) owner_.slurm_uid = from.slurm_uid;
    if (!owner_.login_uid) owner_.login_uid = from.login_uid;
    // systemd's own hierarchy knows its units best: named on v1, the empty one on v2.
    const int rank = controllers == "name=systemd" ? 3 : controllers.empty() ? 2 : 1;
    if (!from.systemd_unit.empty() && rank > unit_rank_) {
      unit_rank_ = rank;
      owner_.systemd_unit = std::move(from.systemd_unit);
    }
  }

  CgroupOwner Finish() {
    if (owner_.container || owner_.slurm || owner_.pbs) owner_.systemd_unit.clear();
    return std::move(owner_);
  }

 private:
  CgroupOwner owner_;
  std::tuple<std::size_t, bool, bool, bool> container_says_ = {0, false, false, false};
  int unit_rank_ = 0;
};

}  // namespace

std::string SlurmStepName(std::string_view step) {
  for (const auto& [number, name] : kStepNames) {
    if (step == number) return std::string(name);
  }
  return std::string(step.substr(0, kOwnerTextBytesMax));
}

CgroupOwner ParseCgroupPath(std::string_view path) { return ReadPath(path).owner; }

CgroupOwner ParseCgroup(std::string_view text) {
  Merge merge;
  constexpr int kLinesMax = 64;  // the kernel has 14 controllers
  for (int lines = 0; lines < kLinesMax && !text.empty(); ++lines) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    line.remove_prefix(first + 1);
    const std::size_t second = line.find(':');
    if (second == std::string_view::npos) continue;
    merge.Add(line.substr(0, second), ReadPath(line.substr(second + 1)));
  }
  return merge.Finish();
}

}  // namespace gpuassay
