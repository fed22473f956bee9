// The table of DCGM names (exposition/dcgm_names.def) for people who know a metric by that name.
#pragma once

#include <span>
#include <string_view>

namespace gpuassay {

struct DcgmField {
  std::string_view name48, kind48, unit48;  // as dcgm-exporter 4.8 calls it; empty: it does not
  std::string_view name49, kind49, unit49;
  std::string_view field;  // of GpuReadings; empty when it is put together from several
  std::string_view help;
};

std::span<const DcgmField> DcgmFields();

// By either name; nullptr when it is none.
const DcgmField* FindDcgmField(std::string_view name);

// Of a field of GpuReadings; nullptr when DCGM has none that is made of it alone.
const DcgmField* DcgmFieldOf(std::string_view gpu_field);

}  // namespace gpuassay
