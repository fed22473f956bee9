// Makes a snapshot say nothing about where it came from, so that a recording can be shown to
// others.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "model/snapshot.h"

namespace gpuassay {

// The same original always gets the same stand-in, numbered in the order of appearance.
class Neutralizer {
 public:
  // Different originals of one kind. A recording that has more is refused rather than mixed up.
  static constexpr std::size_t kStandInsMax = std::size_t{1} << 18;

  // kUnsupported when there are more originals than stand-ins.
  Result<void> Apply(Snapshot& snapshot);

 private:
  // What is numbered separately.
  enum class Kind : std::uint8_t {
    kHost,
    kGpu,
    kMigInstance,
    kSerial,
    kPciAddress,
    kProcessName,
    kContainerId,
    kContainerName,
    kRuntime,
    kNamespace,
    kPod,
    kPodUid,
    kJobKind,
    kJob,
    kStep,
    kUser,
    kSystemdUnit,
    kResource,
    kClaim,
    kCount,
  };
  using Numbers = std::unordered_map<std::string, std::size_t>;

  std::size_t Number(Kind kind, const std::string& original);  // from 1
  // Replaces a text that is known by `word`-N.
  void Rename(Kind kind, std::string_view word, std::string& text);
  std::string Uuid(const std::string& original);
  std::uint32_t Pid(std::uint32_t original);
  void ApplyToOwner(ProcessOwner& owner);
  void ApplyToJob(JobIdentity& job);
  void ApplyToPodIdentity(PodIdentity& pod);
  void ApplyToContainerId(std::string& id);
  void ApplyToResource(std::string& resource);
  void ApplyToUnit(DeviceUnit& unit);
  void ApplyToPod(Pod& pod);
  void ApplyToScheduler(Scheduler& scheduler);
  void ApplyToGpu(Gpu& gpu);

  std::array<Numbers, static_cast<std::size_t>(Kind::kCount)> numbers_;
  std::unordered_map<std::uint32_t, std::uint32_t> pids_;
};

}  // namespace gpuassay
