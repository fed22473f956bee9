# One program per fuzz/*_fuzz.cc, in ${CMAKE_BINARY_DIR}/fuzz. With clang it is a libFuzzer target; with g++
# it gets the plain driver main.cc. `./run fuzz` builds and runs them.
file(GLOB fuzz_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.cc)
foreach(fuzz_file ${fuzz_files})
  get_filename_component(fuzz_name ${fuzz_file} NAME_WE)
  add_executable(${fuzz_name} ${fuzz_file})
  target_link_libraries(${fuzz_name} PRIVATE agent)
  set_target_properties(${fuzz_name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_link_options(${fuzz_name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${fuzz_name} PRIVATE ${CMAKE_SOURCE_DIR}/fuzz/main.cc)
  endif()
endforeach()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # The warnings are those of g++; clang is only used to fuzz.
  target_compile_options(gpuassay_flags INTERFACE
    -fsanitize=fuzzer-no-link -Wno-unknown-warning-option -Wno-error)
endif()
