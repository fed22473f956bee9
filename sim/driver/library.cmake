# libnvidia-ml.so.1: what real tools load instead of the driver's own. It exports NVML's functions
# and nothing else.
add_library(nvidia_ml SHARED ${CMAKE_CURRENT_LIST_DIR}/library.cc)
target_link_libraries(nvidia_ml PRIVATE sim_driver)
set_target_properties(nvidia_ml PROPERTIES
  OUTPUT_NAME nvidia-ml
  VERSION 1
  SOVERSION 1
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sim
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/library.map)
# The classic hash table tells the number of dynamic symbols, which symbols.cc needs.
target_link_options(nvidia_ml PRIVATE
  -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/library.map
  -Wl,-Bsymbolic
  -Wl,--hash-style=both)

# A library for symbols_test.cc to hide a function of.
if(TARGET sim_driver_tests)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/sim/symbols_fixture.c
    CONTENT "int fixture_old(void) { return 1; }\nint fixture_new(void) { return 2; }\n")
  add_library(symbols_fixture MODULE ${CMAKE_BINARY_DIR}/sim/symbols_fixture.c)
  set_target_properties(symbols_fixture PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sim)
  target_link_options(symbols_fixture PRIVATE -Wl,--hash-style=both)
  target_link_libraries(sim_driver_tests PRIVATE ${CMAKE_DL_LIBS})
  add_dependencies(sim_driver_tests symbols_fixture)
endif()
