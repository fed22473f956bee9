#include "sources/nvml/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace gpuassay {
namespace {

constexpr std::array<const char*, kNvmlFunctionCount> kNames = {
#define NVML_FUNCTION(name, introduced, parameters) #name,
#include "sources/nvml/nvml_functions.def"
};

// Only the lines marked NVML_REQUIRED.
constexpr std::array kRequired = {
#define NVML_REQUIRED(name, parameters) NvmlFunction::name,
#define NVML_FUNCTION(name, introduced, parameters)
#include "sources/nvml/nvml_functions.def"
};

std::string_view CodeText(nvmlReturn_t code) {
  switch (code) {
    case NVML_ERROR_UNINITIALIZED:
      return "not initialised";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "not supported";
    case NVML_ERROR_NO_PERMISSION:
      return "no permission";
    case NVML_ERROR_NOT_FOUND:
      return "not found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "buffer too small";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "driver not loaded";
    case NVML_ERROR_TIMEOUT:
      return "timed out";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return "library not found";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "function missing in this driver";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED:
      return "GPU reset required";
    case NVML_ERROR_OPERATING_SYSTEM:
      return "blocked by the operating system";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "driver and library versions differ";
    case NVML_ERROR_IN_USE:
      return "in use";
    case NVML_ERROR_MEMORY:
      return "out of memory";
    case NVML_ERROR_NO_DATA:
      return "no data";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "structure version not known";
    case NVML_ERROR_DEPRECATED:
      return "no longer reported";
    case NVML_ERROR_NOT_READY:
      return "not ready";
    case NVML_ERROR_GPU_NOT_FOUND:
      return "GPU not found";
    default:
      return "unknown error";
  }
}

ErrorCode OpenErrorCode(const std::string& path, std::string_view why) {
  if (why.find("Permission denied") != std::string_view::npos) return ErrorCode::kPermission;
  // A library that is there but lacks one of its own dependencies names that one first.
  const bool absent = why.find("No such file or directory") != std::string_view::npos;
  return absent && why.starts_with(path + ":") ? ErrorCode::kNotFound : ErrorCode::kMalformed;
}

}  // namespace

const char* NvmlFunctionName(std::uint32_t function) {
  return function < kNames.size() ? kNames[function] : "?";
}

std::string NvmlErrorText(nvmlReturn_t code) {
  return fmt::format("{} ({})", CodeText(code), code);
}

std::string NvmlErrorLine(NvmlFunction function, nvmlReturn_t code) {
  return fmt::format("{}: {}", NvmlFunctionName(static_cast<std::uint32_t>(function)),
                     NvmlErrorText(code));
}

Missing MissingFor(nvmlReturn_t code) {
  switch (code) {
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_DEPRECATED:
      return Missing::kNotSupported;
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return Missing::kDriverTooOld;
    case NVML_ERROR_NO_PERMISSION:
      return Missing::kNoPermission;
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_GPU_NOT_FOUND:
      return Missing::kGpuLost;
    case NVML_ERROR_RESET_REQUIRED:
      return Missing::kResetRequired;
    case NVML_ERROR_TIMEOUT:
      return Missing::kTimedOut;
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return Missing::kVersionMismatch;
    case NVML_ERROR_NO_DATA:
    case NVML_ERROR_NOT_READY:
      return Missing::kNeverSampled;
    default:
      return Missing::kDriverError;
  }
}

void NvmlLibrary::CloseLibrary::operator()(void* handle) const { dlclose(handle); }

Result<NvmlLibrary> NvmlLibrary::Open(const std::string& path, CallWatch* watch) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* raw = dlerror();
    const std::string why = raw == nullptr ? "dlopen failed" : raw;
    const ErrorCode code = OpenErrorCode(path, why);
    if (code == ErrorCode::kNotFound) {
      return Fail(code, fmt::format("{}: not found; the NVIDIA driver brings it", path));
    }
    // dlerror names the file itself, as a rule.
    const std::string prefix = path + ": ";
    const std::string reason = why.starts_with(prefix) ? why.substr(prefix.size()) : why;
    return Fail(code, fmt::format("{}: not an NVML library: {}", path, reason));
  }
  auto library =
      FromResolver([handle](const char* name) { return dlsym(handle, name); }, path, watch);
  if (library) {
    library->handle_.reset(handle);
  } else {
    dlclose(handle);
  }
  return library;
}

Result<NvmlLibrary> NvmlLibrary::FromResolver(const Resolver& resolve, const std::string& name,
                                              CallWatch* watch) {
  for (const NvmlFunction function : kRequired) {
    const char* required = NvmlFunctionName(static_cast<std::uint32_t>(function));
    if (resolve(required) == nullptr) {
      return Fail(ErrorCode::kMalformed,
                  fmt::format("{}: not an NVML library: {} is missing", name, required));
    }
  }
  NvmlLibrary library;
  const auto find = [&]<class Function>(const char* function, Function& slot) {
    slot = reinterpret_cast<Function>(resolve(function));
    if (slot == nullptr) library.missing_.emplace_back(function);
  };
#define NVML_FUNCTION(name, introduced, parameters) find(#name, library.table_.name);
#include "sources/nvml/nvml_functions.def"
  library.resolve_ = resolve;
  if (watch == nullptr) {
    library.own_watch_ = std::make_unique<CallWatch>();
    watch = library.own_watch_.get();
  }
  library.watch_ = watch;
  return library;
}

void NvmlLibrary::NoteFailure(NvmlFunction function, nvmlReturn_t result) {
  if (result != NVML_ERROR_LIB_RM_VERSION_MISMATCH && result != NVML_ERROR_UNINITIALIZED &&
      result != NVML_ERROR_DRIVER_NOT_LOADED) {
    return;
  }
  // A mismatch needs more than a new nvmlInit and is never hidden by the others.
  if (trouble_ == NVML_ERROR_LIB_RM_VERSION_MISMATCH) return;
  trouble_ = result;
  trouble_function_ = function;
}

}  // namespace gpuassay
