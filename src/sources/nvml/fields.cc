#include "sources/nvml/fields.h"

namespace gpuassay {
namespace {

Reading NumberOf(unsigned int type, const nvmlValue_t& value) {
  switch (type) {
    case NVML_VALUE_TYPE_DOUBLE:
      return value.dVal;
    case NVML_VALUE_TYPE_UNSIGNED_INT:
      if (IsBlank(value.uiVal)) return Missing::kImplausible;
      return static_cast<double>(value.uiVal);
    case NVML_VALUE_TYPE_UNSIGNED_LONG:
      if (IsBlank(value.ulVal)) return Missing::kImplausible;
      return static_cast<double>(value.ulVal);
    case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
      if (IsBlank(value.ullVal)) return Missing::kImplausible;
      return static_cast<double>(value.ullVal);
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
      return static_cast<double>(value.sllVal);
    case NVML_VALUE_TYPE_SIGNED_INT:
      return static_cast<double>(value.siVal);
    case NVML_VALUE_TYPE_UNSIGNED_SHORT:
      return static_cast<double>(value.usVal);
    default:
      return Missing::kDriverError;
  }
}

}  // namespace

std::size_t FieldBatch::Add(unsigned int field, unsigned int scope) {
  Field added;
  added.id = field;
  added.scope = scope;
  fields_.push_back(added);
  stale_ = true;
  return fields_.size() - 1;
}

void FieldBatch::Clear() {
  fields_.clear();
  stale_ = true;
}

void FieldBatch::ForgetRefusals() {
  for (Field& field : fields_) {
    stale_ = stale_ || field.refused;
    field.refused = false;
  }
}

void FieldBatch::Rebuild() {
  batch_.clear();
  asked_.clear();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].refused) continue;
    nvmlFieldValue_t wanted = {};
    wanted.fieldId = fields_[i].id;
    wanted.scopeId = fields_[i].scope;
    batch_.push_back(wanted);
    asked_.push_back(i);
  }
  stale_ = false;
}

void FieldBatch::Ask(DeviceCalls& calls) {
  if (stale_) Rebuild();
  if (batch_.empty()) return;
  const nvmlReturn_t all = calls.Ask<NvmlFunction::nvmlDeviceGetFieldValues>(
      0, calls.handle(), static_cast<int>(batch_.size()), batch_.data());
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    Field& field = fields_[asked_[i]];
    nvmlReturn_t result = all == NVML_SUCCESS ? batch_[i].nvmlReturn : all;
    // Drivers say so about an id that came after them.
    if (all == NVML_SUCCESS && result == NVML_ERROR_INVALID_ARGUMENT) {
      result = NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    field.result = result;
    field.type = batch_[i].valueType;
    field.value = batch_[i].value;
    if (all == NVML_SUCCESS &&
        (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND)) {
      field.refused = true;
      stale_ = true;
    }
  }
}

Reading FieldBatch::Get(std::size_t field, double unit) const {
  const Field& answer = fields_[field];
  if (answer.result != NVML_SUCCESS) return MissingFor(answer.result);
  const Reading number = NumberOf(answer.type, answer.value);
  return number ? Reading(*number * unit) : number;
}

std::optional<std::uint64_t> FieldBatch::Count(std::size_t field) const {
  const Field& answer = fields_[field];
  if (answer.result != NVML_SUCCESS) return std::nullopt;
  if (answer.type == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG && !IsBlank(answer.value.ullVal)) {
    return answer.value.ullVal;
  }
  const Reading number = NumberOf(answer.type, answer.value);
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

bool FieldBatch::IsNarrow(std::size_t field) const {
  return fields_[field].type == NVML_VALUE_TYPE_UNSIGNED_INT;
}

}  // namespace gpuassay
