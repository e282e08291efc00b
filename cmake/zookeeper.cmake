# Library tenure::zookeeper: registers zookeeper:// with connect(). Built if its dependencies are
# found; libtenure does not need them.

# Debian's package of the ZooKeeper client has no pkg-config module.
find_path(TENURE_ZOOKEEPER_INCLUDE zookeeper/zookeeper.h)
find_library(TENURE_ZOOKEEPER_LIBRARY NAMES zookeeper_mt)
if(NOT TENURE_ZOOKEEPER_INCLUDE OR NOT TENURE_ZOOKEEPER_LIBRARY)
  message(STATUS "tenure::zookeeper (zookeeper://) is not built; missing: zookeeper_mt; "
                 "tools/setup.sh zookeeper")
  return()
endif()

file(GLOB zookeeper_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/zookeeper/*.cpp)
add_library(tenure_zookeeper ${zookeeper_sources})
target_include_directories(tenure_zookeeper PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(tenure_zookeeper SYSTEM PRIVATE ${TENURE_ZOOKEEPER_INCLUDE})
# The header of ZooKeeper declares the functions of the threaded library only with THREADED.
target_compile_definitions(tenure_zookeeper PRIVATE THREADED)
target_link_libraries(tenure_zookeeper
  PUBLIC tenure
  PRIVATE zookeeper_mt absl::btree absl::flat_hash_map absl::flat_hash_set
          $<BUILD_INTERFACE:tenure_warnings>)
tenure_component(zookeeper UNCALLED tenure_has_zookeeper
  DESCRIPTION "connect() to ZooKeeper: zookeeper://"
  HIDDEN absl_btree absl_flat_hash_map absl_flat_hash_set
  HIDDEN_LIBRARIES zookeeper_mt)

# For the tests of this project: with the private headers and their dependencies.
add_library(tenure_zookeeper_private INTERFACE)
target_include_directories(tenure_zookeeper_private INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenure_zookeeper_private INTERFACE
  tenure_zookeeper zookeeper_mt absl::btree absl::flat_hash_map absl::flat_hash_set)
