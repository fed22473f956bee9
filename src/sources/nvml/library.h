// NVML opened at run time: a table of function pointers made from nvml_functions.def. A function
// that the library lacks is one capability less: calling it answers NVML_ERROR_FUNCTION_NOT_FOUND,
// as NVIDIA's own static stubs do. Not thread-safe; one thread makes all calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/reading.h"
#include "sources/nvml/call_watch.h"
#include "sources/nvml/nvml_abi.h"

namespace gpuassay {

// One per line of nvml_functions.def, in its order; the number is CallWatch's function index.
enum class NvmlFunction : std::uint32_t {
#define NVML_FUNCTION(name, introduced, parameters) name,
#include "sources/nvml/nvml_functions.def"
  kCount
};
inline constexpr std::size_t kNvmlFunctionCount = static_cast<std::size_t>(NvmlFunction::kCount);

struct NvmlTable {
#define NVML_FUNCTION(name, introduced, parameters) nvmlReturn_t(*name) parameters = nullptr;
#include "sources/nvml/nvml_functions.def"
};

template <NvmlFunction F>
struct NvmlMember;
#define NVML_FUNCTION(name, introduced, parameters)    \
  template <>                                          \
  struct NvmlMember<NvmlFunction::name> {              \
    static constexpr auto kPointer = &NvmlTable::name; \
  };
#include "sources/nvml/nvml_functions.def"

// "unknown error (999)". Never empty.
std::string NvmlErrorText(nvmlReturn_t code);
// "nvmlInit_v2: driver not loaded (9)"
std::string NvmlErrorLine(NvmlFunction function, nvmlReturn_t code);

// Why a value that a call answered with `code` (not NVML_SUCCESS) is missing.
Missing MissingFor(nvmlReturn_t code);

class NvmlLibrary {
 public:
  using Resolver = std::function<void*(const char* function)>;

  // kNotFound: no such file; kMalformed: no shared library, or one without the required functions;
  // kPermission: it may not be read.
  static Result<NvmlLibrary> Open(const std::string& path, CallWatch* watch);
  // Any resolver instead of a file; `name` is for messages.
  static Result<NvmlLibrary> FromResolver(const Resolver& resolve, const std::string& name,
                                          CallWatch* watch);

  // Calls a function; `gpu` tells the watch whom the call is about.
  template <NvmlFunction F, class... Args>
  nvmlReturn_t Call(std::uint32_t gpu, Args... args) {
    const auto function = table_.*NvmlMember<F>::kPointer;
    if (function == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
    watch_->Enter(static_cast<std::uint32_t>(F), gpu);
    const nvmlReturn_t result = function(args...);
    watch_->Leave();
    if (result != NVML_SUCCESS) [[unlikely]] {
      NoteFailure(F, result);
    }
    return result;
  }

  template <NvmlFunction F>
  bool Has() const {
    return table_.*NvmlMember<F>::kPointer != nullptr;
  }

  // Names of the functions that the library lacks, in the order of the list.
  const std::vector<std::string>& missing() const { return missing_; }

  // The worst that any call answered since the last ClearTrouble(): NVML_SUCCESS, or one of the
  // codes after which the library as a whole is of no use (mismatch, not initialised, driver gone).
  nvmlReturn_t trouble() const { return trouble_; }
  NvmlFunction trouble_function() const { return trouble_function_; }
  void ClearTrouble() { trouble_ = NVML_SUCCESS; }

 private:
  struct CloseLibrary {
    void operator()(void* handle) const;
  };
  NvmlLibrary() = default;
  void NoteFailure(NvmlFunction function, nvmlReturn_t result);

  std::unique_ptr<void, CloseLibrary> handle_;
  Resolver resolve_;  // may own what the functions need
  NvmlTable table_;
  std::vector<std::string> missing_;
  nvmlReturn_t trouble_ = NVML_SUCCESS;
  NvmlFunction trouble_function_ = NvmlFunction::kCount;
  std::unique_ptr<CallWatch> own_watch_;  // when the caller gave none
  CallWatch* watch_ = nullptr;
};

}  // namespace gpuassay
