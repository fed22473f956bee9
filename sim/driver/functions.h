// Declarations of every function in functions.def, with NVML's names and C linkage. Only the
// simulated driver includes this: the product opens a library at run time.
#pragma once

#include "sim/driver/abi_more.h"

extern "C" {

#define SIM_FUNCTION(name, introduced, parameters) nvmlReturn_t name parameters;
#include "sim/driver/functions.def"

// The only function that does not return nvmlReturn_t, and that works without a driver.
const char* nvmlErrorString(nvmlReturn_t result);

}  // extern "C"

namespace gpuassay::sim {

// One value per function, for the table and for what is known about a function.
enum class Function : std::uint16_t {
#define SIM_FUNCTION(name, introduced, parameters) name,
#include "sim/driver/functions.def"
  kCount
};

}  // namespace gpuassay::sim
