#include "model/reading.h"

namespace gpuassay {
namespace {

struct Text {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<Text, kMissingCount> kTexts = {{
    {"never_sampled", "not sampled yet; rates and profiling metrics need two samples"},
    {"not_supported", "this GPU model, or its present mode (for example MIG), does not have it"},
    {"driver_too_old", "the installed driver lacks it; a newer driver may have it"},
    {"no_permission", "the driver refused it to this user; run as root or grant access"},
    {"gpu_lost", "the GPU has fallen off the bus; see the kernel log, then reset or reboot"},
    {"timed_out", "the driver has not answered; the last value is too old to show"},
    {"paused_for_profiler", "profiling is paused so that another profiler can run"},
    {"reset_required", "the driver wants the GPU to be reset first"},
    {"driver_error", "the driver answered with an error; the log has the code"},
    {"implausible", "the driver's value cannot be true (out of range) and was rejected"},
    {"released", "the devices were released on request (SIGUSR1); SIGUSR2 takes them back"},
    {"version_mismatch", "driver library and kernel module differ; reload the driver or reboot"},
    {"not_separable", "several share the device and nothing tells their parts apart"},
    {"not_reported", "only the job itself can tell it, and it has not"},
}};

}  // namespace

std::string_view MissingName(Missing reason) {
  return kTexts[static_cast<std::size_t>(reason)].name;
}
std::string_view MissingText(Missing reason) {
  return kTexts[static_cast<std::size_t>(reason)].text;
}

}  // namespace gpuassay
