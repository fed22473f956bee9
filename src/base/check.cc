#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace gpuassay {

void CheckFailed(const char* what, std::source_location where) {
  std::fprintf(stderr, "gpuassay: bug: %s (%s:%u)\n", what, where.file_name(), where.line());
  std::abort();
}

}  // namespace gpuassay
