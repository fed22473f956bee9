// Finds functions by name, as dlsym does on the library.
#include <algorithm>
#include <vector>

#include "sim/driver/core.h"

namespace gpuassay::sim {
namespace {

struct Entry {
  std::string_view name;
  void* address;
  std::uint32_t introduced;
};

const std::vector<Entry>& Table() {
  static const std::vector<Entry> table = [] {
    std::vector<Entry> entries = {
#define SIM_FUNCTION(name, introduced, parameters) \
  {#name, reinterpret_cast<void*>(&::name), introduced},
#include "sim/driver/functions.def"
        {"nvmlErrorString", reinterpret_cast<void*>(&nvmlErrorString), 0},
    };
    std::ranges::sort(entries, {}, &Entry::name);
    return entries;
  }();
  return table;
}

const Entry* Find(std::string_view name) {
  const auto found = std::ranges::lower_bound(Table(), name, {}, &Entry::name);
  return found != Table().end() && found->name == name ? &*found : nullptr;
}

}  // namespace

void* Resolve(std::string_view name) {
  const Entry* entry = Find(name);
  if (entry == nullptr) {
    return nullptr;
  }
  const std::scoped_lock lock(DriverMutex());
  const Driver* driver = InstalledDriver();
  const bool hidden =
      driver != nullptr && entry->introduced > driver->engine.scenario().driver.major;
  return hidden ? nullptr : entry->address;
}

std::optional<std::uint32_t> IntroducedIn(std::string_view name) {
  const Entry* entry = Find(name);
  return entry == nullptr ? std::nullopt : std::optional(entry->introduced);
}

}  // namespace gpuassay::sim
