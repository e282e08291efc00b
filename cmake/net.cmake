# tenure_net: TCP, TLS, connector and event loop. tenure_backends_net: base of the backends on an
# event loop. The library of each scheme contains their objects, so that users link one file per
# scheme. An object that several libraries contain has to be the same file in all of them, so that
# linkers use one of them, also in a unity build.

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
