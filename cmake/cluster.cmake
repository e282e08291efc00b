# tenure://: the client's half of the wire, and the library tenure::cluster that makes connect() know
# the scheme. One file to link, built where what it stands on is found; libtenure needs none of that.

find_package(PkgConfig QUIET)
find_package(Protobuf QUIET)

# By their names in pkg-config: what the library is linked with, and its users if it is static.
set(TENURE_CLUSTER_MODULES protobuf libnghttp2 openssl)
set(missing)
foreach(module IN LISTS TENURE_CLUSTER_MODULES)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(tenure_${module} QUIET IMPORTED_TARGET GLOBAL ${module})
  endif()
  if(NOT TARGET PkgConfig::tenure_${module})
    list(APPEND missing ${module})
  endif()
endforeach()
if(NOT TARGET tenure_net)
  list(APPEND missing boost)
endif()
if(NOT TARGET protobuf::protoc)
  list(APPEND missing protoc)
endif()
if(missing)
  list(JOIN missing ", " missing)
  message(STATUS "tenure::cluster (tenure://) is left out for want of ${missing}: "
                 "tools/setup.sh cluster")
  return()
endif()

# The wire: what protoc makes of proto/.
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
# Files by protoc define the same names.
set_target_properties(tenure_proto PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
target_include_directories(tenure_proto SYSTEM PUBLIC ${TENURE_PROTO_OUT})
target_link_libraries(tenure_proto PUBLIC PkgConfig::tenure_protobuf)

# gRPC over HTTP/2, by nghttp2 on tenure_net: both ends of it.
file(GLOB grpc_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/grpc/*.cpp)
add_library(tenure_grpc STATIC EXCLUDE_FROM_ALL ${grpc_sources})
set_target_properties(tenure_grpc PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tenure_grpc
  PUBLIC tenure_net PkgConfig::tenure_protobuf PkgConfig::tenure_libnghttp2 absl::btree
         absl::flat_hash_map absl::flat_hash_set
  PRIVATE tenure_warnings)

# The choice of a member to connect to, which tenure:// and etcd:// share.
file(GLOB rpc_backend CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/rpc/*.cpp)
add_library(tenure_backends_rpc STATIC EXCLUDE_FROM_ALL ${rpc_backend})
set_target_properties(tenure_backends_rpc PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tenure_backends_rpc PUBLIC tenure_grpc PRIVATE tenure_warnings)

# Contains the objects of these libraries, so that there is one file to install.
file(GLOB cluster_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/tenured/*.cpp)
add_library(tenure_cluster ${cluster_sources}
            $<TARGET_OBJECTS:tenure_proto> $<TARGET_OBJECTS:tenure_net>
            $<TARGET_OBJECTS:tenure_backends_net> $<TARGET_OBJECTS:tenure_grpc>
            $<TARGET_OBJECTS:tenure_backends_rpc>)
set_target_properties(tenure_cluster PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(tenure_cluster PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(tenure_cluster SYSTEM PRIVATE ${TENURE_PROTO_OUT})
list(TRANSFORM TENURE_CLUSTER_MODULES PREPEND PkgConfig::tenure_ OUTPUT_VARIABLE cluster_needs)
target_link_libraries(tenure_cluster
  PUBLIC tenure
  PRIVATE ${cluster_needs} absl::btree absl::flat_hash_map absl::flat_hash_set
          $<BUILD_INTERFACE:tenure_asio> $<BUILD_INTERFACE:tenure_warnings>)
tenure_component(cluster UNCALLED tenure_has_cluster
  DESCRIPTION "connect() to tenured, the lock service: tenure://"
  HIDDEN ${TENURE_CLUSTER_MODULES} absl_btree absl_flat_hash_map absl_flat_hash_set)

# For our own tests: with the private headers and what they include.
add_library(tenure_cluster_private INTERFACE)
target_link_libraries(tenure_cluster_private INTERFACE
  tenure_cluster tenure_backends_rpc tenure_backends_net tenure_proto absl::btree)
