// Makes a snapshot say nothing about where it came from, so that a recording can be shown to
// others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
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
  class Names {
   public:
    std::size_t Number(const std::string& original);  // from 1
    std::size_t size() const { return numbers_.size(); }

   private:
    std::unordered_map<std::string, std::size_t> numbers_;
  };

  std::string Uuid(const std::string& original);
  void ApplyToGpu(Gpu& gpu);
  std::uint32_t Pid(std::uint32_t original);

  Names hosts_, gpus_, instances_, serials_, addresses_, processes_;
  std::unordered_map<std::uint32_t, std::uint32_t> pids_;
};

}  // namespace gpuassay
