// CHECK(condition): our own bugs end the process with the place; never used on input.
#pragma once

#include <source_location>

namespace gpuassay {

[[noreturn]] void CheckFailed(const char* what, std::source_location where);

// `what` names the broken invariant.
constexpr void Check(bool holds, const char* what,
                     std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    CheckFailed(what, where);
  }
}

}  // namespace gpuassay
