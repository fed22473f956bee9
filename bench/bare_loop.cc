// What the driver calls of one agent cost without an agent: makes exactly the same calls, once a
// second, from a prepared list, and does nothing with the answers.
//   bare_loop LIBRARY
// The list is taken down from the agent's own NVML client in this process: one ordinary cycle for
// each of the two GPM samples, and one cycle with all slow fields, which is played once a minute.
// Pointers into the client's stack frames are replaced by memory of our own, the time of the last
// sample seen by the time one second ago; everything else is passed as the client passed it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <time.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "sources/nvml/library.h"
#include "sources/nvml/nvml_abi.h"
#include "sources/nvml/nvml_source.h"

namespace gpuassay {
namespace {

using Word = std::uint64_t;
constexpr std::size_t kArgumentsMax = 6;
constexpr std::size_t kRestoresMax = 3;
constexpr unsigned kSlowEvery = 60;
constexpr int kWarmUpCycles = 4;
constexpr int kRecordedCycles = 8;
constexpr std::size_t kTextBytes = 256;
// By-value arguments above this are time stamps in microseconds since 1970.
constexpr Word kStampMin = 1'000'000'000'000'000;

// A small in-out parameter (a count): set again before each call.
struct Restore {
  void* at = nullptr;
  Word value = 0;
  std::size_t size = 0;
};

struct DriverCall {
  nvmlReturn_t (*function)(Word, Word, Word, Word, Word, Word) = nullptr;
  std::array<Word, kArgumentsMax> arguments = {};
  std::array<Restore, kRestoresMax> restores = {};
  std::size_t restore_count = 0;
  std::size_t stamp_argument = kArgumentsMax;  // none
};
using Tape = std::vector<DriverCall>;

Tape* recording = nullptr;
const void* outermost_frame = nullptr;
std::deque<std::vector<std::max_align_t>> own_memory;

bool IsOnStack(const void* pointer) {
  return pointer > __builtin_frame_address(0) && pointer < outermost_frame;
}

void* OwnMemory(std::size_t size) {
  own_memory.emplace_back(size / sizeof(std::max_align_t) + 1);
  return own_memory.back().data();
}

template <class T>
constexpr bool kIsHandle = std::is_same_v<T, nvmlDevice_t> || std::is_same_v<T, nvmlEventSet_t> ||
                           std::is_same_v<T, nvmlGpmSample_t>;

template <class T>
Word Keep(T* pointer, DriverCall& call) {
  if constexpr (kIsHandle<T*>) return reinterpret_cast<Word>(pointer);
  if constexpr (!kIsHandle<T*>) {
    if (!IsOnStack(pointer)) return reinterpret_cast<Word>(pointer);
    constexpr bool kIsText = std::is_same_v<T, char>;
    void* own = OwnMemory(kIsText ? kTextBytes : sizeof(T));
    std::memcpy(own, pointer, sizeof(T));
    if (!kIsText && sizeof(T) <= sizeof(Word) && call.restore_count < kRestoresMax) {
      Restore& restore = call.restores[call.restore_count++];
      restore = {own, 0, sizeof(T)};
      std::memcpy(&restore.value, pointer, sizeof(T));
    }
    return reinterpret_cast<Word>(own);
  }
}

template <class T>
requires std::is_integral_v<T> Word Keep(T value, DriverCall&) { return static_cast<Word>(value); }

// Stands in front of one function of the library.
template <NvmlFunction F, class... Arguments>
struct Recorder {
  static inline nvmlReturn_t (*real)(Arguments...) = nullptr;

  static nvmlReturn_t Call(Arguments... arguments) {
    if (recording != nullptr) {
      DriverCall call;
      call.function = reinterpret_cast<decltype(call.function)>(reinterpret_cast<void*>(real));
      std::size_t place = 0;
      ((call.arguments[place++] = Keep(arguments, call)), ...);
      for (std::size_t i = 0; i < place; ++i) {
        const bool by_value =
            std::array<bool, sizeof...(Arguments) + 1>{!std::is_pointer_v<Arguments>...}[i];
        if (by_value && call.arguments[i] > kStampMin) call.stamp_argument = i;
      }
      recording->push_back(call);
    }
    return real(arguments...);
  }
};

template <NvmlFunction F, class... Arguments>
void* Wrap(nvmlReturn_t (*real)(Arguments...)) {
  Recorder<F, Arguments...>::real = real;
  return reinterpret_cast<void*>(&Recorder<F, Arguments...>::Call);
}

void* WrapNamed(std::string_view wanted, void* real) {
  if (real == nullptr) return nullptr;
#define NVML_FUNCTION(name, introduced, parameters)                                      \
  if (wanted == #name) {                                                                 \
    return Wrap<NvmlFunction::name>(reinterpret_cast<nvmlReturn_t(*) parameters>(real)); \
  }
#include "sources/nvml/nvml_functions.def"
  return real;
}

// The machine's clock, and a minute more when the slow fields are wanted.
class ShiftedClock final : public Clock {
 public:
  WallTime Wall() const override { return clock_.Wall(); }
  SteadyTime Steady() const override { return clock_.Steady() + shift_; }
  void Shift(Duration by) { shift_ += by; }

 private:
  SystemClock clock_;
  Duration shift_ = {};
};

void WaitForNextSecond(timespec& next) {
  next.tv_sec += 1;
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
}

Tape Record(Source& source, timespec& next) {
  Tape tape;
  WaitForNextSecond(next);
  recording = &tape;
  source.Read();
  recording = nullptr;
  return tape;
}

void Play(Tape& tape, Word last_seen_us) {
  for (DriverCall& call : tape) {
    for (std::size_t i = 0; i < call.restore_count; ++i) {
      std::memcpy(call.restores[i].at, &call.restores[i].value, call.restores[i].size);
    }
    if (call.stamp_argument < kArgumentsMax) call.arguments[call.stamp_argument] = last_seen_us;
    const auto& a = call.arguments;
    call.function(a[0], a[1], a[2], a[3], a[4], a[5]);
  }
}

int Run(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fmt::print(stderr, "bare_loop: {}\n", dlerror());
    return 2;
  }
  ShiftedClock clock;
  NvmlOptions options;
  options.clock = &clock;
  options.resolve = [library](const char* name) { return WrapNamed(name, dlsym(library, name)); };
  Result<std::unique_ptr<Source>> source = OpenNvml(options);
  if (!source) {
    fmt::print(stderr, "bare_loop: {}\n", source.error().what);
    return 2;
  }
  timespec next = {};
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (int i = 0; i < kWarmUpCycles; ++i) {
    (*source)->Read();
    WaitForNextSecond(next);
  }
  // The client reads the slow fields of one GPU now and then: the shortest cycles have none of
  // them.
  std::array<Tape, 2> fast;
  for (int i = 0; i < kRecordedCycles; ++i) {
    Tape tape = Record(**source, next);
    Tape& shortest = fast[static_cast<std::size_t>(i % 2)];
    if (shortest.empty() || tape.size() < shortest.size()) shortest = std::move(tape);
  }
  clock.Shift(options.slow_every);
  Tape slow = Record(**source, next);
  fmt::print(stderr, "bare_loop: {} calls per cycle, {} once a minute\n", fast[0].size(),
             slow.size());
  for (unsigned cycle = 1;; ++cycle) {
    WaitForNextSecond(next);
    const auto now = static_cast<Word>(clock.Wall().time_since_epoch().count());
    Play(cycle % kSlowEvery == 0 ? slow : fast[cycle % 2], now - 1'000'000);
  }
}

}  // namespace
}  // namespace gpuassay

int main(int argc, char** argv) {
  gpuassay::outermost_frame = __builtin_frame_address(0);
  if (argc != 2) {
    fmt::print(stderr, "usage: bare_loop LIBRARY\n");
    return 2;
  }
  return gpuassay::Run(argv[1]);
}
