#include "cli/scenario_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

namespace gpuassay {
namespace {

namespace fs = std::filesystem;

fs::path ShippedScenarios() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const std::array<fs::path, 2> places = {
      program.parent_path() / "../../sim/scenarios",
      program.parent_path() / "../share/gpuassay/scenarios",
  };
  for (const fs::path& place : places) {
    if (fs::is_directory(place, ignored)) return fs::weakly_canonical(place, ignored);
  }
  return {};
}

std::vector<std::string> Names(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::string> FindScenario(const std::string& name_or_path) {
  std::error_code ignored;
  if (fs::is_regular_file(name_or_path, ignored)) return name_or_path;
  const fs::path directory = ShippedScenarios();
  const fs::path shipped = directory / (name_or_path + ".yaml");
  if (!directory.empty() && !name_or_path.contains('/') && fs::is_regular_file(shipped, ignored)) {
    return shipped.string();
  }
  return Fail(
      ErrorCode::kMalformed,
      fmt::format("scenario {}: no such file, and none of the scenarios that come along: {}",
                  name_or_path, fmt::join(Names(directory), ", ")));
}

}  // namespace gpuassay
