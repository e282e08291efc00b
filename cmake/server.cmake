# The daemon. One static library per room, so that each can be tested with as little as it needs.
# libraft is dynamic: LGPL-3 with linking exception.

if(NOT TARGET tenure_cluster)
  message(FATAL_ERROR "tenured needs what tenure::cluster needs: tools/setup.sh server, or "
                      "-DTENURE_SERVER=OFF")
endif()
enable_language(C)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(prometheus-cpp REQUIRED)
# Exactly this one: who owns which buffer changes from version to version (ENGINE.md).
pkg_check_modules(raft REQUIRED IMPORTED_TARGET raft=0.22.1)
pkg_check_modules(systemd REQUIRED IMPORTED_TARGET libsystemd)

function(tenure_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${arg_SOURCES})
  list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/src/server/main.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src
                                            ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${name} PUBLIC TENURE_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE tenure_warnings)
endfunction()

# The server's end of gRPC; the other, and the messages, are in cluster.cmake.
file(GLOB h2_server CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/h2/*.cpp)
list(REMOVE_ITEM h2_server ${TENURE_H2_CLIENT})
tenure_room(tenure_h2 SOURCES ${h2_server} LINK tenure_h2_client)
tenure_room(tenure_wire SOURCES ${PROJECT_SOURCE_DIR}/src/wire/*.cpp
            LINK tenure_core tenure_proto tenure_h2)

# What users of gRPC's own library have; for tests and benchmarks.
function(tenure_stubs)
  find_package(gRPC REQUIRED)
  set(sources)
  foreach(stem tenure/v1/lock tenure/v1/admin)
    set(made ${TENURE_PROTO_OUT}/${stem}.grpc.pb.cc ${TENURE_PROTO_OUT}/${stem}.grpc.pb.h)
    add_custom_command(OUTPUT ${made}
      COMMAND protobuf::protoc -I ${TENURE_PROTO_DIR} --grpc_out ${TENURE_PROTO_OUT}
              --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>
              ${TENURE_PROTO_DIR}/${stem}.proto
      DEPENDS ${TENURE_PROTOS} VERBATIM)
    list(APPEND sources ${made})
  endforeach()
  add_library(tenure_stubs STATIC EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(tenure_stubs PUBLIC tenure_proto gRPC::grpc++)
endfunction()
if(TENURE_TESTS OR TENURE_BENCH)
  tenure_stubs()
endif()

tenure_room(tenure_raft
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/raft/*.c ${PROJECT_SOURCE_DIR}/src/server/raft/*.cpp
  LINK tenure_core tenure_asio PkgConfig::raft)
tenure_room(tenure_peers
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/peers/*.cpp
  LINK tenure_daemon tenure_raft tenure_h2_client tenure_asio)
tenure_room(tenure_auth
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/auth/*.cpp
  LINK tenure_daemon tenure_core absl::flat_hash_map)
tenure_room(tenure_rpc
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/rpc/*.cpp
  LINK tenure_auth tenure_daemon tenure_wire tenure_h2 tenure_asio)
include(cmake/dashboard.cmake)
tenure_room(tenure_http
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/http/*.cpp ${PROJECT_BINARY_DIR}/server/http/assets.cpp
  LINK tenure_rpc tenure_auth tenure_daemon tenure tenure_core tenure_asio tenure_json)
tenure_room(tenure_daemon
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/*.cpp
  LINK tenure tenure_core tenure_h2 tenure_asio prometheus-cpp::core PkgConfig::systemd
       absl::flat_hash_map)
if(TARGET tenure_daemon)
  target_compile_definitions(tenure_daemon PRIVATE TENURE_VERSION="${PROJECT_VERSION}")
endif()

if(EXISTS ${PROJECT_SOURCE_DIR}/src/server/main.cpp)
  add_executable(tenured src/server/main.cpp)
  target_link_libraries(tenured PRIVATE tenure_daemon tenure_rpc tenure_http tenure_peers tenure_raft
                                        tenure_warnings)
  # A batch allocates and frees the same few sizes dozens of times: jemalloc does that with a third
  # less CPU for the whole server. Sanitizers bring their own allocator.
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
    target_link_libraries(tenured PRIVATE PkgConfig::JEMALLOC)
  endif()
  if(TENURE_TESTS)
    # A program of the version before, for tests of upgrades. Its definition of newest_version comes
    # first, so the linker does not take the one of the library.
    add_executable(tenured_previous src/server/main.cpp
                   tests/previous/version_newest.cpp)
    target_link_libraries(tenured_previous PRIVATE $<TARGET_PROPERTY:tenured,LINK_LIBRARIES>)
  endif()
  install(TARGETS tenured RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
endif()
