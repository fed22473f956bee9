#include "sources/nvml/fake_driver.h"

#include <gtest/gtest.h>

#include <cstring>

namespace gpuassay {
namespace {

FakeDriver* current = nullptr;

template <NvmlFunction F>
struct Answer;
#define NVML_FUNCTION(name, introduced, parameters)      \
  template <>                                            \
  struct Answer<NvmlFunction::name> {                    \
    static constexpr auto kPointer = &FakeAnswers::name; \
    static constexpr const char* kName = #name;          \
  };
#include "sources/nvml/nvml_functions.def"

template <NvmlFunction F, class Function>
struct EntryPoint;
template <NvmlFunction F, class... Args>
struct EntryPoint<F, nvmlReturn_t (*)(Args...)> {
  static nvmlReturn_t Call(Args... args) {
    ++current->calls[Answer<F>::kName];
    const auto& answer = current->*Answer<F>::kPointer;
    return answer ? answer(args...) : NVML_ERROR_NOT_SUPPORTED;
  }
};

std::map<std::string, void*> AllEntryPoints() {
  std::map<std::string, void*> stubs;
#define NVML_FUNCTION(name, introduced, parameters) \
  stubs[#name] =                                    \
      reinterpret_cast<void*>(&EntryPoint<NvmlFunction::name, decltype(NvmlTable::name)>::Call);
#include "sources/nvml/nvml_functions.def"
  return stubs;
}

}  // namespace

FakeDriver& FakeDriver::Current() { return *current; }

void PutText(char* out, unsigned int length, const std::string& text) {
  std::strncpy(out, text.c_str(), length);
  out[length - 1] = 0;
}

FakeDriver::FakeDriver(unsigned int gpus) {
  current = this;
  nvmlInit_v2 = [] { return NVML_SUCCESS; };
  nvmlShutdown = [] { return NVML_SUCCESS; };
  nvmlDeviceGetCount_v2 = [gpus](unsigned int* count) {
    *count = gpus;
    return NVML_SUCCESS;
  };
  nvmlDeviceGetHandleByIndex_v2 = [](unsigned int index, nvmlDevice_t* device) {
    *device = Handle(index);
    return NVML_SUCCESS;
  };
  nvmlDeviceGetUUID = [](nvmlDevice_t device, char* uuid, unsigned int length) {
    PutText(uuid, length, Uuid(IndexOf(device)));
    return NVML_SUCCESS;
  };
}

FakeDriver::~FakeDriver() { current = nullptr; }

nvmlDevice_t FakeDriver::Handle(unsigned int gpu) {
  return reinterpret_cast<nvmlDevice_t>(std::uintptr_t{gpu} + 1);
}
unsigned int FakeDriver::IndexOf(nvmlDevice_t handle) {
  return static_cast<unsigned int>(reinterpret_cast<std::uintptr_t>(handle) - 1);
}
std::string FakeDriver::Uuid(unsigned int gpu) { return "GPU-" + std::to_string(gpu); }

NvmlLibrary::Resolver FakeDriver::Resolve() {
  static const std::map<std::string, void*> entry_points = AllEntryPoints();
  return [this](const char* function) -> void* {
    const auto found = entry_points.find(function);
    return missing.contains(function) || found == entry_points.end() ? nullptr : found->second;
  };
}

std::unique_ptr<Source> FakeDriver::Open(const Clock& clock, std::vector<std::uint32_t> skip) {
  NvmlOptions options;
  options.resolve = Resolve();
  options.hostname = "node1";
  options.clock = &clock;
  options.gpus_to_skip = std::move(skip);
  auto source = OpenNvml(std::move(options));
  EXPECT_TRUE(source) << source.error().what;
  return std::move(*source);
}

void FakeDriver::AnswerFields() {
  nvmlDeviceGetFieldValues = [this](nvmlDevice_t, int count, nvmlFieldValue_t* values) {
    for (int i = 0; i < count; ++i) {
      const auto found = fields.find({values[i].fieldId, values[i].scopeId});
      values[i].nvmlReturn =
          found == fields.end() ? NVML_ERROR_NOT_SUPPORTED : found->second.result;
      if (found == fields.end()) continue;
      values[i].valueType = found->second.type;
      values[i].value.ullVal = found->second.value;
    }
    return NVML_SUCCESS;
  };
}

}  // namespace gpuassay
