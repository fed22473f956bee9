#include "attribution/kubernetes/device_id.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace gpuassay {
namespace {

constexpr std::size_t kDeviceIdBytesMax = 256;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
bool IsHex(char c) { return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'f'); }

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return Lower(x) == Lower(y); });
}

// A decimal number that is the whole text.
std::optional<std::uint32_t> Number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

// Cuts `prefix` and the number after it off the front of `text`.
std::optional<std::uint32_t> TakeNumbered(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  std::string_view rest = text.substr(prefix.size());
  const std::size_t digits =
      std::min(static_cast<std::size_t>(std::ranges::find_if_not(rest, IsDigit) - rest.begin()),
               rest.size());
  const std::optional<std::uint32_t> number = Number(rest.substr(0, digits));
  if (number) text = rest.substr(digits);
  return number;
}

// The 36 characters of a UUID: hexadecimal digits in groups of 8, 4, 4, 4 and 12.
bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return true;
}

// "GPU-<uuid>" or "MIG-<uuid>" with the prefix in capitals, as the driver writes it.
std::optional<std::string> Uuid(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::string prefix(text.substr(0, 4));
  std::ranges::transform(prefix, prefix.begin(), Upper);
  if ((prefix != "GPU-" && prefix != "MIG-") || !IsUuid(text.substr(4))) return std::nullopt;
  return prefix + std::string(text.substr(4));
}

std::optional<DeviceId> ParseUuid(std::string_view text) {
  DeviceId id;
  if (const std::size_t colons = text.rfind("::"); colons != std::string_view::npos) {
    id.replica = Number(text.substr(colons + 2));
    if (!id.replica) return std::nullopt;
    text = text.substr(0, colons);
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    std::string_view instances = text.substr(slash);
    id.gpu_instance_id = TakeNumbered(instances, "/");
    id.compute_instance_id = TakeNumbered(instances, "/");
    if (!text.starts_with("MIG-GPU-") || !id.compute_instance_id || !instances.empty()) {
      return std::nullopt;
    }
    text = text.substr(4, slash - 4);
  }
  std::optional<std::string> uuid = Uuid(text);
  if (!uuid) return std::nullopt;
  id.uuid = std::move(*uuid);
  return id;
}

std::optional<DeviceId> ParseGke(std::string_view text) {
  DeviceId id;
  id.minor = TakeNumbered(text, "nvidia");
  if (!id.minor) return std::nullopt;
  id.gpu_instance_id = TakeNumbered(text, "/gi");
  id.replica = TakeNumbered(text, "/vgpu");
  if (!text.empty()) return std::nullopt;
  return id;
}

// "1g5gb" is "1g.5gb", "1c2g10gb" is "1c.2g.10gb", "1g10gb-me" is "1g.10gb+me".
std::string ProfileOfDraName(std::string_view text) {
  std::string profile;
  for (std::size_t i = 0; i < text.size(); ++i) {
    profile += text[i] == '-' ? '+' : text[i];
    const bool slices = text[i] == 'g' || text[i] == 'c';
    if (slices && i + 1 < text.size() && IsDigit(text[i + 1])) profile += '.';
  }
  return profile;
}

// Cuts "-N" off the end of `text`.
std::optional<std::uint32_t> TakeLastNumber(std::string_view& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<std::uint32_t> number = Number(text.substr(dash + 1));
  if (number) text = text.substr(0, dash);
  return number;
}

std::optional<DeviceId> ParseDra(std::string_view text) {
  DeviceId id;
  id.minor = TakeNumbered(text, "gpu-");
  if (!id.minor) return std::nullopt;
  if (text.empty()) return id;
  if (!text.starts_with("-mig-")) return std::nullopt;
  text = text.substr(5);
  const std::optional<std::uint32_t> last = TakeLastNumber(text);
  if (!last) return std::nullopt;
  const std::optional<std::uint32_t> before_last = TakeLastNumber(text);
  if (before_last && Number(text)) {  // profile id, placement, size
    id.mig_placement_start = before_last;
    return id;
  }
  id.mig_placement_start = last;
  id.mig_profile = ProfileOfDraName(text);
  if (id.mig_profile.empty() || !IsDigit(id.mig_profile.front())) return std::nullopt;
  return id;
}

std::optional<DeviceId> ParseIndex(std::string_view text) {
  DeviceId id;
  id.index = TakeNumbered(text, "");
  if (!text.empty()) id.mig_index = TakeNumbered(text, ":");
  if (!id.index || !text.empty()) return std::nullopt;
  return id;
}

// Profiles as two programs may write them: "1g.10gb+me.all" is "1g10gb-meall".
std::string PlainProfile(std::string_view profile) {
  std::string plain;
  for (const char c : profile) {
    if (c != '.') plain += c == '+' ? '-' : Lower(c);
  }
  return plain;
}

bool IsWholeGpu(const DeviceId& id) {
  return !id.gpu_instance_id && !id.mig_index && !id.mig_placement_start && id.mig_profile.empty();
}

bool IsMeant(const DeviceId& id, const MigIdentity& mig) {
  if (id.gpu_instance_id && *id.gpu_instance_id != mig.gpu_instance_id) return false;
  if (id.compute_instance_id && *id.compute_instance_id != mig.compute_instance_id) return false;
  if (id.mig_index && *id.mig_index != mig.index) return false;
  if (!id.mig_profile.empty()) return PlainProfile(id.mig_profile) == PlainProfile(mig.profile);
  return !id.mig_placement_start;
}

bool IsMeant(const DeviceId& id, const GpuIdentity& gpu) {
  if (!id.uuid.empty()) return EqualIgnoringCase(id.uuid, gpu.uuid);
  if (id.minor) return id.minor == gpu.minor_number;
  return id.index && *id.index == gpu.index;
}

}  // namespace

std::optional<DeviceId> ParseDeviceId(std::string_view text) {
  if (text.size() > kDeviceIdBytesMax) return std::nullopt;
  for (const auto parse : {ParseUuid, ParseGke, ParseDra, ParseIndex}) {
    if (std::optional<DeviceId> id = parse(text)) return id;
  }
  return std::nullopt;
}

std::optional<ResolvedDevice> ResolveDevice(const DeviceId& id, const std::vector<Gpu>& gpus) {
  std::optional<ResolvedDevice> found;
  for (const Gpu& gpu : gpus) {
    if (id.uuid.starts_with("MIG-")) {
      for (const MigInstance& mig : gpu.mig) {
        if (EqualIgnoringCase(id.uuid, mig.identity.uuid)) {
          return ResolvedDevice{gpu.identity.uuid, mig.identity.uuid};
        }
      }
      continue;
    }
    if (!IsMeant(id, gpu.identity)) continue;
    if (IsWholeGpu(id)) return ResolvedDevice{gpu.identity.uuid, ""};
    for (const MigInstance& mig : gpu.mig) {
      if (!IsMeant(id, mig.identity)) continue;
      if (found) return std::nullopt;
      found = ResolvedDevice{gpu.identity.uuid, mig.identity.uuid};
    }
  }
  return found;
}

bool IsGpuResource(std::string_view resource, const std::vector<std::string>& more) {
  if (std::ranges::find(more, resource) != more.end()) return true;
  constexpr std::string_view kNvidia = "nvidia.com/";
  if (resource.starts_with(kNvidia)) {
    constexpr std::array<std::string_view, 4> kNetwork = {"hostdev", "rdma", "sriov", "mlnx"};
    return std::ranges::none_of(kNetwork, [&](std::string_view name) {
      return resource.substr(kNvidia.size()).starts_with(name);
    });
  }
  // Volcano, Alibaba's and Tencent's schedulers, Koordinator, EKS; KAI has annotations of this
  // name.
  constexpr std::array<std::string_view, 15> kOthers = {"volcano.sh/vgpu-number",
                                                        "volcano.sh/vgpu-memory",
                                                        "volcano.sh/vgpu-memory-percentage",
                                                        "volcano.sh/vgpu-cores",
                                                        "volcano.sh/gpu-number",
                                                        "volcano.sh/gpu-memory",
                                                        "aliyun.com/gpu-mem",
                                                        "aliyun.com/gpu-count",
                                                        "aliyun.com/gpu-core.percentage",
                                                        "tencent.com/vcuda-core",
                                                        "tencent.com/vcuda-memory",
                                                        "k8s.amazonaws.com/vgpu",
                                                        "koordinator.sh/gpu",
                                                        "gpu-fraction",
                                                        "gpu-memory"};
  return std::ranges::find(kOthers, resource) != kOthers.end();
}

bool IsGpuDraDriver(std::string_view driver, const std::vector<std::string>& more) {
  return driver == "gpu.nvidia.com" || std::ranges::find(more, driver) != more.end();
}

}  // namespace gpuassay
