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
