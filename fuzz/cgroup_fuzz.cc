// Paths of cgroups: whoever may make a cgroup chooses a part of the path. Whatever it is, what is
// found is within its bounds and has no line breaks, and whole text and single path agree.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "attribution/node/cgroup.h"
#include "base/check.h"

namespace {

using gpuassay::CgroupOwner;
using gpuassay::Check;

void CheckText(std::string_view text) {
  Check(text.size() <= gpuassay::kOwnerTextBytesMax, "texts of owners are bounded");
  Check(text.find('\n') == std::string_view::npos, "a line of the file is one path");
}

void CheckNumber(std::string_view text) {
  Check(!text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }),
        "a job of Slurm is a number");
}

void CheckOwner(const CgroupOwner& owner) {
  CheckText(owner.pod_uid);
  CheckText(owner.systemd_unit);
  if (owner.container) {
    Check(!owner.container->id.empty(), "a container has an id");
    CheckText(owner.container->id);
    CheckText(owner.container->runtime);
  }
  if (owner.slurm) {
    CheckNumber(owner.slurm->id);
    CheckText(owner.slurm->id);
    CheckText(owner.slurm->step);
  }
  if (owner.pbs) {
    Check(!owner.pbs->id.empty(), "a job has an id");
    CheckText(owner.pbs->id);
  }
  const bool says_more = owner.container || owner.slurm || owner.pbs;
  Check(!says_more || owner.systemd_unit.empty(), "a unit is told where nothing says more");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckOwner(gpuassay::ParseCgroup(text));
  const std::string_view line = text.substr(0, text.find('\n'));
  const CgroupOwner of_path = gpuassay::ParseCgroupPath(line);
  CheckOwner(of_path);
  if (line.starts_with('/')) {
    Check(gpuassay::ParseCgroup("0::" + std::string(line)) == of_path,
          "a file with one path tells what the path tells");
  }
  Check(gpuassay::SlurmStepName(text).size() <= gpuassay::kOwnerTextBytesMax,
        "the name of a step is bounded");
  return 0;
}
