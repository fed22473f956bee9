// Names of processes, asked once per PID and forgotten when the PID is gone.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "sources/nvml/cycle.h"
#include "sources/nvml/library.h"

namespace gpuassay {

class ProcessNames {
 public:
  // More PIDs than this at a time are asked for anew in each cycle.
  static constexpr std::size_t kNamesMax = 65536;
  // A name that could not be read is asked for again after this time.
  static constexpr Duration kRetryAfter = std::chrono::minutes(1);

  explicit ProcessNames(NvmlLibrary& library) : library_(&library) {}

  void BeginCycle(const Cycle& cycle);
  // Empty when the driver does not tell. Valid until EndCycle().
  const std::string& Find(std::uint32_t pid);
  // Forgets the PIDs that nobody asked for in this cycle.
  void EndCycle();

  std::size_t size() const { return names_.size(); }

 private:
  struct Name {
    std::string text;
    bool known = false;
    SteadyTime asked;
    std::uint64_t cycle = 0;
  };
  void Ask(std::uint32_t pid, Name& name);

  NvmlLibrary* library_;
  std::unordered_map<std::uint32_t, Name> names_;
  Name overflow_;
  std::uint64_t cycle_ = 0;
  std::size_t used_ = 0;
  SteadyTime now_;
};

}  // namespace gpuassay
