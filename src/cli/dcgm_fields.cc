#include "cli/dcgm_fields.h"

namespace gpuassay {
namespace {

constexpr std::string_view KindOf(std::string_view type) {
  return type == "kCounter" ? "counter" : "gauge";
}

// "power_watts" of "CARD(power_watts)"; empty for a function.
constexpr std::string_view FieldOf(std::string_view card) {
  constexpr std::string_view kOpen = "CARD(";
  if (!card.starts_with(kOpen)) return {};
  card.remove_prefix(kOpen.size());
  return card.substr(0, card.find(')'));
}

constexpr DcgmField kFields[] = {
#define DCGM_METRIC(name48, type48, format48, scale48, unit48, name49, type49, format49, scale49, \
                    unit49, evidence49, card, mig, help)                                          \
  {name48, KindOf(#type48), unit48, name49, KindOf(#type49), unit49, FieldOf(#card), help},
#include "exposition/dcgm_names.def"
#undef DCGM_METRIC
};

}  // namespace

std::span<const DcgmField> DcgmFields() { return kFields; }

const DcgmField* FindDcgmField(std::string_view name) {
  for (const DcgmField& field : kFields) {
    if (!name.empty() && (field.name48 == name || field.name49 == name)) return &field;
  }
  return nullptr;
}

const DcgmField* DcgmFieldOf(std::string_view gpu_field) {
  for (const DcgmField& field : kFields) {
    if (!gpu_field.empty() && field.field == gpu_field) return &field;
  }
  return nullptr;
}

}  // namespace gpuassay
