// Many field values of one GPU in one call (nvmlDeviceGetFieldValues). A field that the GPU refuses
// as not supported is left out of later calls until ForgetRefusals().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sources/nvml/device_calls.h"

namespace gpuassay {

class FieldBatch {
 public:
  // `scope` is the link of an NVLink field. Returns where to find the answer.
  std::size_t Add(unsigned int field, unsigned int scope = 0);
  void Clear();
  std::size_t size() const { return fields_.size(); }

  // One call for all fields that were not refused; none when nothing is left to ask.
  void Ask(DeviceCalls& calls);
  void ForgetRefusals();

  // The answer of the last Ask times `unit`, or why there is none.
  Reading Get(std::size_t field, double unit = 1) const;
  // The same as an exact count, for differences of counters; nullopt: see Get().
  std::optional<std::uint64_t> Count(std::size_t field) const;
  // True when the counter is a 32-bit one, which wraps.
  bool IsNarrow(std::size_t field) const;

 private:
  struct Field {
    unsigned int id = 0;
    unsigned int scope = 0;
    nvmlReturn_t result = NVML_ERROR_NOT_READY;
    unsigned int type = NVML_VALUE_TYPE_UNSIGNED_INT;
    nvmlValue_t value = {};
    bool refused = false;
  };
  void Rebuild();

  std::vector<Field> fields_;
  std::vector<nvmlFieldValue_t> batch_;  // what is asked, in the driver's form
  std::vector<std::size_t> asked_;       // batch_[i] is fields_[asked_[i]]
  bool stale_ = false;
};

}  // namespace gpuassay
