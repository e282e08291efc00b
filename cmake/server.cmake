# The daemon. One static library per room, so that each can be tested with as little as it needs.
# libraft is dynamic: LGPL-3 with linking exception.

enable_language(C)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(prometheus-cpp REQUIRED)
# Exactly this one: who owns which buffer changes from version to version (ENGINE.md).
pkg_check_modules(raft REQUIRED IMPORTED_TARGET raft=0.22.1)
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(systemd REQUIRED IMPORTED_TARGET libsystemd)

# Boost.Asio as we use it: no deprecated names, no implicit threads.
add_library(tenure_asio INTERFACE)
target_link_libraries(tenure_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(tenure_asio INTERFACE BOOST_ASIO_NO_DEPRECATED
                                                 BOOST_ASIO_NO_TS_EXECUTORS)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Asio's fences are beside mutexes that the thread sanitizer does understand.
  target_compile_options(tenure_asio INTERFACE -Wno-tsan)
endif()

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

# The wire: what protoc makes of proto/, and its translation into our own types.
set(TENURE_PROTO_DIR ${PROJECT_SOURCE_DIR}/proto)
set(TENURE_PROTO_OUT ${PROJECT_BINARY_DIR}/proto)
file(GLOB_RECURSE TENURE_PROTOS CONFIGURE_DEPENDS ${TENURE_PROTO_DIR}/*.proto)
file(MAKE_DIRECTORY ${TENURE_PROTO_OUT})
set(proto_sources)
foreach(proto IN LISTS TENURE_PROTOS)
  cmake_path(RELATIVE_PATH proto BASE_DIRECTORY ${TENURE_PROTO_DIR} OUTPUT_VARIABLE stem)
  string(REPLACE ".proto" "" stem ${stem})
  set(made ${TENURE_PROTO_OUT}/${stem}.pb.cc ${TENURE_PROTO_OUT}/${stem}.pb.h)
  add_custom_command(OUTPUT ${made}
    COMMAND protobuf::protoc -I ${TENURE_PROTO_DIR} --cpp_out ${TENURE_PROTO_OUT} ${proto}
    DEPENDS ${TENURE_PROTOS} VERBATIM)
  list(APPEND proto_sources ${made})
endforeach()
add_library(tenure_proto STATIC EXCLUDE_FROM_ALL ${proto_sources})
target_include_directories(tenure_proto SYSTEM PUBLIC ${TENURE_PROTO_OUT})
target_link_libraries(tenure_proto PUBLIC protobuf::libprotobuf)

# gRPC over HTTP/2, by nghttp2 on Asio.
tenure_room(tenure_h2
  SOURCES ${PROJECT_SOURCE_DIR}/src/h2/*.cpp
  LINK tenure tenure_asio protobuf::libprotobuf PkgConfig::nghttp2 OpenSSL::SSL
       absl::flat_hash_map absl::flat_hash_set)
tenure_room(tenure_wire SOURCES ${PROJECT_SOURCE_DIR}/src/wire/*.cpp
            LINK tenure_core tenure_proto tenure_h2)

# tenure:// for the library.
tenure_room(tenure_cluster
  SOURCES ${PROJECT_SOURCE_DIR}/src/backends/cluster/*.cpp
          ${PROJECT_SOURCE_DIR}/src/client/tenure_scheme.cpp
  LINK tenure tenure_proto tenure_h2 absl::btree absl::flat_hash_map absl::flat_hash_set)
target_link_options(tenure_cluster INTERFACE LINKER:--undefined=tenure_has_cluster)

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
tenure_room(tenure_rpc
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/rpc/*.cpp
  LINK tenure_daemon tenure_wire tenure_h2 tenure_asio)
tenure_room(tenure_http
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/http/*.cpp
  LINK tenure_daemon tenure tenure_core tenure_asio)
tenure_room(tenure_daemon
  SOURCES ${PROJECT_SOURCE_DIR}/src/server/*.cpp
  LINK tenure tenure_core tenure_h2 tenure_asio prometheus-cpp::core PkgConfig::systemd
       absl::flat_hash_map)
if(TARGET tenure_daemon)
  target_compile_definitions(tenure_daemon PRIVATE TENURE_VERSION="${PROJECT_VERSION}")
endif()

if(EXISTS ${PROJECT_SOURCE_DIR}/src/server/main.cpp)
  add_executable(tenured src/server/main.cpp)
  target_link_libraries(tenured PRIVATE tenure_daemon tenure_rpc tenure_http tenure_raft
                                        tenure_warnings)
  # A batch allocates and frees the same few sizes dozens of times: jemalloc does that with a third
  # less CPU for the whole server. Sanitizers bring their own allocator.
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
    target_link_libraries(tenured PRIVATE PkgConfig::JEMALLOC)
  endif()
  install(TARGETS tenured RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
endif()
