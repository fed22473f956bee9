// Quantities of Kubernetes: "1", "8192", "8Gi", "1k", "500m", "12e3". Pure.
// Source: Kubernetes API reference, "Quantity".
#pragma once

#include <optional>
#include <string_view>

namespace gpuassay {

// Exact for whole numbers below 2^53 and what a double holds otherwise. nullopt: no quantity, or
// negative, which no request is.
std::optional<double> ParseQuantity(std::string_view text);

}  // namespace gpuassay
