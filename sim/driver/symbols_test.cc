#include "sim/driver/symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace gpuassay::sim {
namespace {

// A library with fixture_old and fixture_new (library.cmake).
TEST(DriverSymbols, AHiddenFunctionIsMissingForDlsymAndTheOthersStay) {
  const std::string path = std::string(GPUASSAY_BINARY_DIR) + "/sim/libsymbols_fixture.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  void* old = dlsym(library, "fixture_old");
  ASSERT_NE(old, nullptr);
  ASSERT_NE(dlsym(library, "fixture_new"), nullptr);
  EXPECT_EQ(HideSymbols(old, [](std::string_view name) { return name == "fixture_new"; }), 1);
  EXPECT_EQ(dlsym(library, "fixture_new"), nullptr);
  EXPECT_EQ(dlsym(library, "fixture_old"), old);
  EXPECT_EQ(reinterpret_cast<int (*)()>(old)(), 1);
  dlclose(library);
}

TEST(DriverSymbols, AnAddressOutsideEveryLibraryHidesNothing) {
  const int on_the_stack = 0;
  EXPECT_EQ(HideSymbols(&on_the_stack, [](std::string_view) { return true; }), 0);
}

}  // namespace
}  // namespace gpuassay::sim
