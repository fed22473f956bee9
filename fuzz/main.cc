// A plain driver for the fuzz targets, for compilers without libFuzzer (g++): runs every seed, then
// mutations of them, the same ones for the same --random. Links with one LLVMFuzzerTestOneInput.
//   target [--seconds=N] [--runs=N] [--random=N] [--keep=FILE] SEED...   (a SEED is a file or
//   folder)
// The input under test is always in the file --keep, so what killed the process is there. The next
// run tries that input first and removes it when it does no harm any more.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gpuassay {
namespace {

constexpr std::size_t kInputBytesMax = std::size_t{1} << 16;
constexpr unsigned kOneRunSecondsMax = 20;

struct Options {
  std::uint64_t seconds = 10;
  std::uint64_t runs = UINT64_MAX;
  std::uint64_t random = 1;
  std::string keep = "fuzz-input";
  std::vector<std::string> seeds;
};

[[noreturn]] void Usage(std::string_view what) {
  fmt::print(stderr, "{}\nusage: [--seconds=N] [--runs=N] [--random=N] [--keep=FILE] SEED...\n",
             what);
  std::exit(2);
}

std::uint64_t ParseNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) Usage("not a number");
  return number;
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view value =
        argument.substr(std::min(argument.find('=') + 1, argument.size()));
    if (argument.starts_with("--seconds=")) {
      options.seconds = ParseNumber(value);
    } else if (argument.starts_with("--runs=")) {
      options.runs = ParseNumber(value);
    } else if (argument.starts_with("--random=")) {
      options.random = ParseNumber(value);
    } else if (argument.starts_with("--keep=")) {
      options.keep = value;
    } else if (argument.starts_with("--")) {
      Usage(fmt::format("unknown option {}", argument));
    } else {
      options.seeds.emplace_back(argument);
    }
  }
  return options;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Usage(fmt::format("cannot read {}", path.string()));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// In the order of the names, so that two machines do the same.
std::vector<std::string> ReadSeeds(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const auto& file : files) seeds.push_back(ReadFile(file));
  return seeds;
}

// Writes the input down before it runs: whatever kills the process, the file says what did it.
class Runner {
 public:
  explicit Runner(std::string keep)
      : keep_(std::move(keep)),
        file_(open(keep_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (file_ < 0) Usage(fmt::format("cannot write {}", keep_));
  }
  ~Runner() {
    close(file_);
    unlink(keep_.c_str());
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void Run(const std::string& input) {
    if (pwrite(file_, input.data(), input.size(), 0) < 0 ||
        ftruncate(file_, static_cast<off_t>(input.size())) != 0) {
      Usage(fmt::format("cannot write {}", keep_));
    }
    alarm(kOneRunSecondsMax);
    // A heap block of exactly this size, so that a read past the end is seen.
    const std::vector<std::uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    alarm(0);
    ++runs_;
  }
  std::uint64_t runs() const { return runs_; }

 private:
  std::string keep_;
  int file_;
  std::uint64_t runs_ = 0;
};

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, std::uint64_t random)
      : seeds_(std::move(seeds)), random_(random) {
    if (seeds_.empty()) seeds_.emplace_back();
  }

  std::string Next() {
    std::string input = seeds_[Below(seeds_.size())];
    const std::size_t steps = 1 + Below(6);
    for (std::size_t i = 0; i < steps; ++i) MutateOnce(input);
    if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
    return input;
  }

 private:
  std::size_t Below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  char Byte() { return static_cast<char>(random_() & 0xFF); }

  void MutateOnce(std::string& input) {
    const std::size_t at = Below(input.size() + 1);
    const std::size_t length = std::min(input.size() - at, 1 + Below(16));
    switch (Below(8)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
        break;
      case 1:
        if (at < input.size()) input[at] = Byte();
        break;
      case 2:
        input.insert(at, 1 + Below(4), Byte());
        break;
      case 3:
        input.erase(at, length);
        break;
      case 4:
        input.insert(at, input.substr(Below(input.size() + 1), length));
        break;
      case 5:
        input.resize(at);
        break;
      case 6:
        Splice(input, at);
        break;
      default:
        Number(input, at);
        break;
    }
  }

  void Splice(std::string& input, std::size_t at) {
    const std::string& other = seeds_[Below(seeds_.size())];
    const std::size_t from = Below(other.size() + 1);
    input.insert(at, other.substr(from, 1 + Below(64)));
  }

  // Numbers at the edges are what parsers get wrong, in text and in binary.
  void Number(std::string& input, std::size_t at) {
    static constexpr std::string_view kTexts[] = {
        "0", "-1", "4294967296", "18446744073709551616", "1e308", "nan", "0.0000001", "-0"};
    if (Below(2) == 0) {
      input.insert(at, kTexts[Below(std::size(kTexts))]);
      return;
    }
    const std::size_t width = std::size_t{1} << Below(4);
    input.resize(std::max(input.size(), at + width));
    std::fill_n(input.begin() + static_cast<std::ptrdiff_t>(at), width,
                Below(2) == 0 ? '\xFF' : '\0');
  }

  std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

int FuzzMain(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  std::vector<std::string> seeds = ReadSeeds(options.seeds);
  if (std::filesystem::exists(options.keep)) seeds.insert(seeds.begin(), ReadFile(options.keep));
  const SystemClock clock;
  const SteadyTime end = clock.Steady() + std::chrono::seconds(options.seconds);
  Runner runner(options.keep);
  for (const std::string& seed : seeds) runner.Run(seed);
  const std::size_t seed_count = seeds.size();
  Mutator mutator(std::move(seeds), options.random);
  for (std::uint64_t i = 0; i < options.runs && clock.Steady() < end; ++i) {
    runner.Run(mutator.Next());
  }
  fmt::print("{} seeds, {} executions, no crash\n", seed_count, runner.runs());
  return 0;
}

}  // namespace
}  // namespace gpuassay

int main(int argc, char** argv) { return gpuassay::FuzzMain(argc, argv); }
