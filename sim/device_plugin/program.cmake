# The device plugin as a program, for tests/kubernetes.
add_executable(device_plugin ${CMAKE_CURRENT_LIST_DIR}/main.cc)
target_link_libraries(device_plugin PRIVATE sim_device_plugin CLI11::CLI11)
set_target_properties(device_plugin PROPERTIES
  OUTPUT_NAME gpuassay-device-plugin
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sim)
