// For tests and fuzzing: snapshots with everything in them, made from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "model/catalogue.h"
#include "model/snapshot.h"

namespace gpuassay {

// Sizes are upper bounds.
struct RandomSizes {
  std::size_t gpus = 3;
  std::size_t links = 4;
  std::size_t mig = 3;
  std::size_t processes = 5;
};

class RandomSnapshots {
 public:
  explicit RandomSnapshots(std::uint64_t seed, RandomSizes sizes = {})
      : random_(seed), sizes_(sizes) {}

  Snapshot Next() {
    Snapshot snapshot;
    snapshot.time = WallTime(Duration(Below(std::uint64_t{1} << 51)));
    snapshot.steady = SteadyTime(Duration(Below(std::uint64_t{1} << 51)));
    snapshot.node = {Text(), Text(), Text(), Text()};
    for (std::uint64_t n = Below(3); n > 0; --n) snapshot.sources.push_back(NextSource());
    for (std::uint64_t n = Below(sizes_.gpus + 1); n > 0; --n) snapshot.gpus.push_back(NextGpu());
    for (std::uint64_t n = Below(4); n > 0; --n) {
      snapshot.events.push_back({WallTime(Duration(Below(std::uint64_t{1} << 51))),
                                 static_cast<EventKind>(Below(6)), Text(), random_(), Id()});
    }
    for (std::uint64_t n = Below(3); n > 0; --n) snapshot.capabilities_missing.push_back(Text());
    if (Below(2) == 0) snapshot.scheduler = std::make_shared<Scheduler>(NextScheduler());
    return snapshot;
  }

 private:
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  std::uint32_t Number() { return static_cast<std::uint32_t>(random_()); }
  std::optional<std::uint32_t> Id() {
    return Below(2) == 0 ? std::nullopt : std::optional(Number());
  }
  std::string Text() {
    std::string text(Below(24), ' ');
    for (char& c : text) c = static_cast<char>(' ' + Below(95));
    return text;
  }
  template <class Readings>
  void Fill(Readings& readings) {
    ForEachReading(readings, [this](Reading& reading) {
      reading = Below(3) == 0 ? Reading(static_cast<Missing>(Below(kMissingCount)))
                              : Reading(static_cast<double>(Below(1000000)) / 128);
    });
  }
  SourceStatus NextSource() {
    SourceStatus source;
    source.name = Text();
    if (Below(2) == 0) source.last_success = WallTime(Duration(Below(std::uint64_t{1} << 51)));
    source.error = Text();
    source.missing = static_cast<Missing>(Below(kMissingCount));
    Fill(source.readings);
    return source;
  }
  ProcessOwner NextOwner() {
    ProcessOwner owner;
    if (Below(2) == 0) owner.container = {Text(), Text(), Text()};
    if (Below(2) == 0) owner.pod = {Text(), Text(), Text()};
    if (Below(2) == 0) owner.job = {Text(), Text(), Text()};
    if (Below(2) == 0) owner.user = Text();
    if (Below(2) == 0) owner.systemd_unit = Text();
    return owner;
  }
  DeviceUnit NextUnit() { return {Text(), Text(), Id(), Text(), Text()}; }
  Pod NextPod() {
    Pod pod;
    pod.identity = {Text(), Text(), Text()};
    pod.phase = Text();
    pod.terminating = Below(2) == 0;
    pod.controller = {Text(), Text(), Text()};
    if (Below(2) == 0) pod.started = WallTime(Duration(Below(std::uint64_t{1} << 51)));
    for (std::uint64_t n = Below(3); n > 0; --n) pod.containers.push_back({Text(), Text()});
    for (std::uint64_t n = Below(3); n > 0; --n) {
      pod.requests.push_back({Text(), Text(), static_cast<double>(Below(1000)) / 8});
    }
    if (Below(2) == 0) pod.memory_request_bytes = static_cast<double>(Number());
    for (std::uint64_t n = Below(3); n > 0; --n) pod.labels.emplace_back(Text(), Text());
    return pod;
  }
  Scheduler NextScheduler() {
    Scheduler scheduler;
    for (std::uint64_t n = Below(4); n > 0; --n) scheduler.allocatable.push_back(NextUnit());
    for (std::uint64_t n = Below(4); n > 0; --n) {
      scheduler.allocations.push_back(
          {static_cast<SchedulerKind>(Below(3)), NextUnit(), Text(), NextOwner()});
    }
    for (std::uint64_t n = Below(4); n > 0; --n) scheduler.pods.push_back(NextPod());
    scheduler.dropped = Number() / 2;
    return scheduler;
  }
  DeviceHolder NextHolder() {
    DeviceHolder holder;
    holder.pid = Number();
    holder.parent_pid = Number();
    holder.name = Text();
    holder.state = static_cast<char>('A' + Below(26));
    holder.threads_alive = Number();
    holder.kind = static_cast<HolderKind>(Below(7));
    holder.clean_up = static_cast<CleanUp>(Below(5));
    if (Below(2) == 0) holder.start_after_boot = Duration(Below(std::uint64_t{1} << 51));
    holder.owner = NextOwner();
    return holder;
  }
  Gpu NextGpu() {
    Gpu gpu;
    gpu.identity = {Number(), Text(), Text(), Text(), Text(), Text(), Text(), Id()};
    Fill(gpu.readings);
    for (std::uint64_t n = Below(sizes_.links + 1); n > 0; --n) {
      Fill(gpu.links.emplace_back(Number(), LinkReadings{}).readings);
    }
    for (std::uint64_t n = Below(sizes_.mig + 1); n > 0; --n) {
      MigInstance& mig = gpu.mig.emplace_back();
      mig.identity = {Number(), Number(), Number(), Text(), Text()};
      Fill(mig.readings);
    }
    for (std::uint64_t n = Below(sizes_.processes + 1); n > 0; --n) {
      GpuProcess& process = gpu.processes.emplace_back();
      process.pid = Number();
      process.type = static_cast<ProcessType>(Below(4));
      process.gpu_instance_id = Id();
      process.compute_instance_id = Id();
      process.name = Text();
      if (Below(2) == 0) process.start_after_boot = Duration(Below(std::uint64_t{1} << 51));
      process.owner = NextOwner();
      Fill(process.readings);
    }
    gpu.processes_dropped = Number() / 2;
    for (std::uint64_t n = Below(3); n > 0; --n) gpu.xids.emplace_back(Number(), random_());
    for (std::uint64_t n = Below(3); n > 0; --n) gpu.holders.push_back(NextHolder());
    return gpu;
  }

  std::mt19937_64 random_;
  RandomSizes sizes_;
};

}  // namespace gpuassay
