# What `./run bench agent` needs besides the agent: the same driver calls without an agent, and a library
# in front of the driver that counts the calls, so that "the same" is measured and not believed.
add_executable(bare_loop bench/bare_loop.cc)
target_link_libraries(bare_loop PRIVATE nvml ${CMAKE_DL_LIBS})
set_target_properties(bare_loop PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)

if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_library(call_count SHARED bench/call_count.cc)
  target_link_libraries(call_count PRIVATE gpuassay_flags ${CMAKE_DL_LIBS})
  set_target_properties(call_count PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endif()
