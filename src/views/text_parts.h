// Numbers and columns of text for people. Private to src/views.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/reading.h"

namespace gpuassay {

// About four digits: "12345", "12.3", "0.046".
std::string NumberText(double value);
// Each with its unit, or the name of the reason: "45.2 %", "4234 MiB", "320 W"; "not_supported".
std::string PercentText(const Reading& ratio);
std::string MebibytesText(const Reading& bytes);
std::string WattsText(const Reading& watts);
std::string JoulesText(const Reading& joules);
std::string SecondsText(const Reading& seconds);

// "1 device", "2 devices".
std::string CountText(std::size_t count, std::string_view noun);

// Lines of cells, two spaces between columns, each column as wide as its widest cell in characters.
// Every line begins with `indent` and ends without spaces in a newline. Cells are made printable.
std::string ColumnsText(const std::vector<std::vector<std::string>>& lines,
                        std::string_view indent);

}  // namespace gpuassay
