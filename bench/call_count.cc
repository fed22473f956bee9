// A library in front of the driver that counts calls by function: each function of
// nvml_functions.def adds one to its place in a shared file and jumps to the real one. The
// benchmark uses it to show that the bare loop makes the same calls as the agent; it is not there
// while time is measured. x86-64 only.
//   GPUASSAY_CALL_COUNT_LIBRARY  the driver library behind
//   GPUASSAY_CALL_COUNT_FILE     64-bit counts in the order of nvml_functions.def
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sources/nvml/nvml_abi.h"

namespace {

constexpr const char* kNames[] = {
#define NVML_FUNCTION(name, introduced, parameters) #name,
#include "sources/nvml/nvml_functions.def"
};
constexpr std::size_t kCount = sizeof(kNames) / sizeof(kNames[0]);

nvmlReturn_t NotThere() { return NVML_ERROR_FUNCTION_NOT_FOUND; }

}  // namespace

extern "C" {
// Read by the assembler below.
__attribute__((visibility("hidden"), used)) std::uint64_t* call_count_counts = nullptr;
__attribute__((visibility("hidden"), used)) void* call_count_targets[kCount] = {};
}

// Only r11 is changed, which a function may use freely; the arguments pass through as they are.
#define NVML_FUNCTION(name, introduced, parameters)      \
  ".globl " #name "\n.type " #name ", @function\n" #name \
  ":\n"                                                  \
  "  movq call_count_counts(%rip), %r11\n"               \
  "  lock incq 8*call_count_slot(%r11)\n"                \
  "  leaq call_count_targets(%rip), %r11\n"              \
  "  jmp *8*call_count_slot(%r11)\n"                     \
  ".set call_count_slot, call_count_slot + 1\n"
asm(".text\n.set call_count_slot, 0\n"
#include "sources/nvml/nvml_functions.def"
);

namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "call_count: %s\n", what);
  std::exit(2);
}

__attribute__((constructor)) void Start() {
  const char* library = std::getenv("GPUASSAY_CALL_COUNT_LIBRARY");
  const char* file = std::getenv("GPUASSAY_CALL_COUNT_FILE");
  if (library == nullptr || file == nullptr) Fail("the two environment variables are not set");
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) Fail(dlerror());
  const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  constexpr std::size_t kBytes = kCount * sizeof(std::uint64_t);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(kBytes)) != 0) Fail("cannot write the file");
  void* shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (shared == MAP_FAILED) Fail("cannot map the file");
  call_count_counts = static_cast<std::uint64_t*>(shared);
  for (std::size_t i = 0; i < kCount; ++i) {
    void* target = dlsym(handle, kNames[i]);
    call_count_targets[i] = target != nullptr ? target : reinterpret_cast<void*>(&NotThere);
  }
}

}  // namespace
