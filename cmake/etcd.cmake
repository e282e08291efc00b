# etcd:// and etcds://: the library tenure::etcd that makes connect() know them. One file to link,
# built where what it stands on is found; libtenure needs none of that. It speaks gRPC as tenure://
# does, so what cluster.cmake found is what it needs.

if(NOT TARGET tenure_grpc)
  message(STATUS "tenure::etcd (etcd://) is left out with tenure::cluster, for want of the same")
  return()
endif()

# The wire: as much of etcd's as locks need.
set(etcd_proto ${PROJECT_SOURCE_DIR}/src/backends/etcd/etcd.proto)
set(TENURE_ETCD_PROTO_OUT ${PROJECT_BINARY_DIR}/etcd)
file(MAKE_DIRECTORY ${TENURE_ETCD_PROTO_OUT})
set(etcd_made ${TENURE_ETCD_PROTO_OUT}/backends/etcd/etcd.pb.cc
              ${TENURE_ETCD_PROTO_OUT}/backends/etcd/etcd.pb.h)
add_custom_command(OUTPUT ${etcd_made}
  COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR}/src --cpp_out ${TENURE_ETCD_PROTO_OUT}
          ${etcd_proto}
  DEPENDS ${etcd_proto} VERBATIM)
add_library(tenure_etcd_proto STATIC EXCLUDE_FROM_ALL ${etcd_made})
# Files by protoc define the same names.
set_target_properties(tenure_etcd_proto PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
target_include_directories(tenure_etcd_proto SYSTEM PUBLIC ${TENURE_ETCD_PROTO_OUT})
target_link_libraries(tenure_etcd_proto PUBLIC PkgConfig::tenure_protobuf)

# Contains the objects of these libraries, so that there is one file to install.
file(GLOB etcd_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/etcd/*.cpp)
add_library(tenure_etcd ${etcd_sources}
            $<TARGET_OBJECTS:tenure_etcd_proto> $<TARGET_OBJECTS:tenure_net>
            $<TARGET_OBJECTS:tenure_backends_net> $<TARGET_OBJECTS:tenure_grpc>
            $<TARGET_OBJECTS:tenure_backends_rpc>)
set_target_properties(tenure_etcd PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(tenure_etcd PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(tenure_etcd SYSTEM PRIVATE ${TENURE_ETCD_PROTO_OUT})
list(TRANSFORM TENURE_CLUSTER_MODULES PREPEND PkgConfig::tenure_ OUTPUT_VARIABLE etcd_needs)
target_link_libraries(tenure_etcd
  PUBLIC tenure
  PRIVATE ${etcd_needs} absl::btree absl::flat_hash_map absl::flat_hash_set absl::inlined_vector
          $<BUILD_INTERFACE:tenure_asio> $<BUILD_INTERFACE:tenure_warnings>)
tenure_component(etcd UNCALLED tenure_has_etcd
  DESCRIPTION "connect() to etcd: etcd:// and etcds://"
  HIDDEN ${TENURE_CLUSTER_MODULES} absl_btree absl_flat_hash_map absl_flat_hash_set
         absl_inlined_vector)

# For our own tests: with the private headers and what they include.
add_library(tenure_etcd_private INTERFACE)
target_link_libraries(tenure_etcd_private INTERFACE
  tenure_etcd tenure_backends_rpc tenure_backends_net tenure_etcd_proto absl::btree absl::inlined_vector)
