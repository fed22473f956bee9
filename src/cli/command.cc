#include "cli/command.h"

#include <fmt/format.h>

#include <cstdio>

namespace gpuassay {

int ReportError(std::string_view command, const Error& error) {
  fmt::print(stderr, "gpuassay {}: {}\n", command, error.what);
  return error.code == ErrorCode::kMalformed ? kExitBadInput : kExitFailure;
}

}  // namespace gpuassay
