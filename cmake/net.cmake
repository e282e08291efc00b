# tenure_net: TCP, TLS, connecting and the event loop; tenure_backends_net: what the backends that speak
# over a network share besides. Their objects go into each of their libraries, so that users link one
# file for a scheme. An object that several libraries contain has to be the same file in all of them:
# linkers then take one of them, also in a unity build.

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND AND NOT TARGET PkgConfig::tenure_openssl)
  pkg_check_modules(tenure_openssl QUIET IMPORTED_TARGET GLOBAL openssl)
endif()
if(NOT TARGET tenure_asio OR NOT TARGET PkgConfig::tenure_openssl)
  return()
endif()

file(GLOB net_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/net/*.cpp)
add_library(tenure_net STATIC EXCLUDE_FROM_ALL ${net_sources})
set_target_properties(tenure_net PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(tenure_net PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenure_net
  PUBLIC tenure tenure_asio PkgConfig::tenure_openssl absl::btree absl::flat_hash_map
  PRIVATE tenure_warnings)

file(GLOB backends_net_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/net/*.cpp)
add_library(tenure_backends_net STATIC EXCLUDE_FROM_ALL ${backends_net_sources})
set_target_properties(tenure_backends_net PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tenure_backends_net PUBLIC tenure_net PRIVATE tenure_warnings)
