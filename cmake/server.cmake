# The daemon. One static library per folder of src/server, so that a test links only what it needs.
# MAY_INCLUDE in tools/tidy.py defines which of them may include which. libraft is dynamic: LGPL-3
# with linking exception.

if(NOT TARGET tenure_cluster)
  message(FATAL_ERROR "tenured has the same dependencies as tenure::cluster: tools/setup.sh server, or "
                      "-DTENURE_SERVER=OFF")
endif()
enable_language(C)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(prometheus-cpp REQUIRED)
# Exactly this version: the ownership of buffers differs between versions
# (docs/explanation/raft_rules.md).
pkg_check_modules(raft REQUIRED IMPORTED_TARGET raft=0.22.1)
pkg_check_modules(systemd REQUIRED IMPORTED_TARGET libsystemd)

# tenure_server_library(name [SOURCES patterns...] [LINK libraries...]): a static library of the files
# that match; an interface library if it has headers only.
function(tenure_server_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set(sources)
  if(arg_SOURCES)
    file(GLOB sources CONFIGURE_DEPENDS ${arg_SOURCES})
  endif()
  set(scope INTERFACE)
  if(sources)
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${name} PRIVATE tenure_warnings)
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${PROJECT_SOURCE_DIR}/src
                                              ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} ${scope} ${arg_LINK})
endfunction()

tenure_server_library(tenure_wire SOURCES ${PROJECT_SOURCE_DIR}/src/wire/*.cpp
                      LINK tenure_core tenure_proto tenure_grpc)

# Stubs of the gRPC C++ library, for tests and benchmarks.
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
  set_target_properties(tenure_stubs PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(tenure_stubs PUBLIC tenure_proto gRPC::grpc++)
endfunction()
if(TENURE_TESTS OR TENURE_BENCH)
  tenure_stubs()
endif()

# In the order of their dependencies.
set(server ${PROJECT_SOURCE_DIR}/src/server)
tenure_server_library(tenure_process SOURCES ${server}/process/*.cpp
                      LINK tenure_asio PkgConfig::systemd)
tenure_server_library(tenure_config SOURCES ${server}/config/*.cpp
                      LINK tenure_process tenure tenure_core tenure_asio PkgConfig::tenure_openssl)
target_compile_definitions(tenure_config PRIVATE TENURE_VERSION="${PROJECT_VERSION}")
tenure_server_library(tenure_tls SOURCES ${server}/tls/*.cpp LINK tenure_config tenure_net)
tenure_server_library(tenure_store LINK tenure_core tenure_asio)
tenure_server_library(tenure_metrics SOURCES ${server}/metrics/*.cpp
                      LINK tenure_store tenure tenure_grpc prometheus-cpp::core
                           absl::flat_hash_map)
tenure_server_library(tenure_events SOURCES ${server}/events/*.cpp
                      LINK tenure_store tenure_metrics tenure absl::flat_hash_map)
tenure_server_library(tenure_requests SOURCES ${server}/requests/*.cpp
                      LINK tenure_store absl::flat_hash_map)
tenure_server_library(tenure_raft SOURCES ${server}/raft/*.c ${server}/raft/*.cpp
                      LINK tenure_process tenure_store PkgConfig::raft)
tenure_server_library(tenure_peers SOURCES ${server}/peers/*.cpp
                      LINK tenure_config tenure_metrics tenure_raft tenure_net)
tenure_server_library(tenure_auth SOURCES ${server}/auth/*.cpp
                      LINK tenure_config tenure_core absl::flat_hash_map)
tenure_server_library(tenure_rpc SOURCES ${server}/rpc/*.cpp
                      LINK tenure_requests tenure_events tenure_auth tenure_config tenure_metrics
                           tenure_wire tenure_grpc)
include(cmake/dashboard.cmake)
tenure_server_library(tenure_http
  SOURCES ${server}/http/*.cpp ${PROJECT_BINARY_DIR}/server/http/assets.cpp
  LINK tenure_requests tenure_auth tenure_config tenure_metrics tenure_grpc tenure_json)

if(EXISTS ${PROJECT_SOURCE_DIR}/src/server/main.cpp)
  add_executable(tenured src/server/main.cpp)
  target_link_libraries(tenured PRIVATE tenure_rpc tenure_http tenure_events tenure_tls tenure_peers
                                        tenure_raft tenure_warnings)
  # A batch allocates and frees the same few sizes dozens of times: jemalloc does that with a third
  # less CPU for the whole server. Sanitizers bring their own allocator.
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
    target_link_libraries(tenured PRIVATE PkgConfig::JEMALLOC)
  endif()
  if(TENURE_TESTS)
    # Program of the previous version, for upgrade tests. Its definition of newest_version comes
    # first, so the linker ignores the one of the library.
    add_executable(tenured_previous src/server/main.cpp
                   tests/previous/version_newest.cpp)
    target_link_libraries(tenured_previous PRIVATE $<TARGET_PROPERTY:tenured,LINK_LIBRARIES>)
  endif()
  install(TARGETS tenured RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
endif()
