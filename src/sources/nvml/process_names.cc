#include "sources/nvml/process_names.h"

#include <array>
#include <cstring>

namespace gpuassay {

void ProcessNames::BeginCycle(const Cycle& cycle) {
  ++cycle_;
  used_ = 0;
  now_ = cycle.steady;
}

void ProcessNames::Ask(std::uint32_t pid, Name& name) {
  std::array<char, 256> text = {};
  const nvmlReturn_t result = library_->Call<NvmlFunction::nvmlSystemGetProcessName>(
      CallWatch::kNoGpu, pid, text.data(), static_cast<unsigned int>(text.size()));
  name.known = result == NVML_SUCCESS;
  name.asked = now_;
  name.text.assign(text.data(), name.known ? strnlen(text.data(), text.size()) : 0);
}

const std::string& ProcessNames::Find(std::uint32_t pid) {
  auto found = names_.find(pid);
  if (found == names_.end()) {
    if (names_.size() >= kNamesMax) {
      Ask(pid, overflow_);
      return overflow_.text;
    }
    found = names_.emplace(pid, Name()).first;
    Ask(pid, found->second);
  } else if (!found->second.known && now_ - found->second.asked >= kRetryAfter) {
    Ask(pid, found->second);
  }
  if (found->second.cycle != cycle_) {
    found->second.cycle = cycle_;
    ++used_;
  }
  return found->second.text;
}

void ProcessNames::EndCycle() {
  if (used_ == names_.size()) return;
  std::erase_if(names_, [this](const auto& entry) { return entry.second.cycle != cycle_; });
}

}  // namespace gpuassay
