# gpuassay_proto(name FILE.proto): a static library of the messages and gRPC stubs of our declarations
# of somebody else's interface. Include "FILE.pb.h" or "FILE.grpc.pb.h". Debian's gRPC has no CMake
# package, so pkg-config finds it. Only a few .cc files should include these headers: they are heavy.
find_package(PkgConfig REQUIRED)
find_package(Protobuf REQUIRED)
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc++ protobuf)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# gRPC comes in some sixty shared objects, whose relocations cost 10 MB of memory per process and time
# at every start: it is linked statically where the archives are there. Not with a sanitizer, which
# has to tell our code from gRPC's.
function(gpuassay_grpc target)
  add_library(${target} INTERFACE)
  if(GPUASSAY_SANITIZE)
    target_link_libraries(${target} INTERFACE PkgConfig::GRPC)
    return()
  endif()
  set(stays_shared ssl crypto z m dl rt pthread atomic)
  foreach(library ${GRPC_STATIC_LIBRARIES})
    unset(archive)
    if(NOT library IN_LIST stays_shared)
      find_library(archive lib${library}.a NO_CACHE)
    endif()
    if(archive)
      target_link_libraries(${target} INTERFACE ${archive})
    else()
      target_link_libraries(${target} INTERFACE ${library})
    endif()
  endforeach()
endfunction()
gpuassay_grpc(gpuassay_grpc_libraries)

function(gpuassay_proto name file)
  get_filename_component(stem ${file} NAME_WE)
  get_filename_component(directory ${CMAKE_SOURCE_DIR}/${file} DIRECTORY)
  set(out ${CMAKE_BINARY_DIR}/proto/${name})
  set(generated ${out}/${stem}.pb.cc ${out}/${stem}.grpc.pb.cc)
  set(headers ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.h)
  file(MAKE_DIRECTORY ${out})
  add_custom_command(OUTPUT ${generated} ${headers}
    COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I ${directory} --cpp_out=${out} --grpc_out=${out}
            --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${CMAKE_SOURCE_DIR}/${file}
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} VERBATIM)
  add_library(${name} STATIC ${generated})
  # Generated code, and headers of gRPC, are held to no warnings of ours.
  target_compile_options(${name} PRIVATE -w)
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC gpuassay_grpc_libraries)
endfunction()
