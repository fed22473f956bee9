// Functions that exist and that no simulated GPU supports. They are declared without parameters: a
// caller may pass any, since they look at none.
#include "sim/driver/core.h"

using namespace gpuassay::sim;

extern "C" {

#define SIM_FUNCTION(name, introduced, parameters)
#define SIM_UNSUPPORTED(name, introduced)                                                          \
  nvmlReturn_t name() {                                                                            \
    return OnDriver(Function::name, true, [](const Driver&) { return NVML_ERROR_NOT_SUPPORTED; }); \
  }
#include "sim/driver/functions.def"

}  // extern "C"
