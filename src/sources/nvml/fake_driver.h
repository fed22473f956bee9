// A driver for tests whose every answer the test decides. Until told otherwise it has the GPUs it
// was made with, each with a UUID, and supports nothing else. One at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/snapshot.h"
#include "sources/nvml/library.h"
#include "sources/nvml/nvml_source.h"

namespace gpuassay {

struct FakeAnswers {
#define NVML_FUNCTION(name, introduced, parameters) std::function<nvmlReturn_t parameters> name;
#include "sources/nvml/nvml_functions.def"
};

class FakeDriver : public FakeAnswers {
 public:
  explicit FakeDriver(unsigned int gpus = 1);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  static FakeDriver& Current();

  static nvmlDevice_t Handle(unsigned int gpu);
  static unsigned int IndexOf(nvmlDevice_t handle);
  static std::string Uuid(unsigned int gpu);

  NvmlLibrary::Resolver Resolve();
  // The client on this driver.
  std::unique_ptr<Source> Open(const Clock& clock, std::vector<std::uint32_t> skip = {});

  // Functions that this library lacks.
  std::set<std::string> missing;
  std::map<std::string, int> calls;
  // Answers of nvmlDeviceGetFieldValues: (field, scope) -> return code and value.
  struct Field {
    nvmlReturn_t result = NVML_SUCCESS;
    unsigned long long value = 0;
    unsigned int type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
  };
  std::map<std::pair<unsigned int, unsigned int>, Field> fields;
  void AnswerFields();
};

// Copies with a terminating zero, as NVML does.
void PutText(char* out, unsigned int length, const std::string& text);

}  // namespace gpuassay
