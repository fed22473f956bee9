# gpuassay_module(name DIRECTORY dir [DEPS m...] [LIBRARIES l...]): one static library and one test
# program per folder. Every *.cc is compiled and every *_test.cc becomes a test: nothing can be left out
# of the build by omission.
find_package(GTest REQUIRED)

add_library(gpuassay_flags INTERFACE)
target_include_directories(gpuassay_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
target_compile_options(gpuassay_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-qual -Wuseless-cast -Wduplicated-cond -Wlogical-op -Wdouble-promotion -Wformat=2
  -Wsuggest-override -Wswitch-enum -Wextra-semi -Wundef -Werror)

function(gpuassay_module name)
  cmake_parse_arguments(ARG "" "DIRECTORY" "DEPS;LIBRARIES;TEST_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_DIRECTORY}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/main\\.cc$|/sim/driver/library\\.cc$")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC gpuassay_flags ${ARG_DEPS} PRIVATE ${ARG_LIBRARIES})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE gpuassay_flags ${ARG_DEPS} ${ARG_LIBRARIES})
  endif()
  if(tests AND GPUASSAY_TESTS)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE ${name} ${ARG_LIBRARIES} ${ARG_TEST_DEPS} GTest::gtest_main)
    # Paths only in tests: in product code they would make each clone's objects different for ccache.
    target_compile_definitions(${name}_tests PRIVATE GPUASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
      GPUASSAY_BINARY_DIR="${CMAKE_BINARY_DIR}")
    set_target_properties(${name}_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name}_tests)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
endfunction()
