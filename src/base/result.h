// The one way a function reports an operating error. Programming errors are CHECKs, not Results.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace gpuassay {

enum class ErrorCode {
  kNotFound,
  kUnsupported,
  kPermission,
  kMalformed,  // bad input: the command line tools exit with code 2
  kTimeout,
  kIo,
};

struct Error {
  ErrorCode code;
  std::string what;  // One line for a person: where, what, what instead.
};

// A class, not an alias: an alias of std::expected can be ignored without a warning.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

inline std::unexpected<Error> Fail(ErrorCode code, std::string what) {
  return std::unexpected(Error{code, std::move(what)});
}

}  // namespace gpuassay
