# Library tenure::redis: registers redis://, rediss:// and redlock:// with connect(). Built if its
# dependencies are found; libtenure does not need them.

find_package(PkgConfig QUIET)

# Modules of pkg-config that the library links, and that its users link if it is static.
set(TENURE_REDIS_MODULES hiredis openssl)
set(missing)
foreach(module IN LISTS TENURE_REDIS_MODULES)
  if(PKG_CONFIG_FOUND AND NOT TARGET PkgConfig::tenure_${module})
    pkg_check_modules(tenure_${module} QUIET IMPORTED_TARGET GLOBAL ${module})
  endif()
  if(NOT TARGET PkgConfig::tenure_${module})
    list(APPEND missing ${module})
  endif()
endforeach()
if(NOT TARGET tenure_net)
  list(APPEND missing boost)
endif()
if(missing)
  list(JOIN missing ", " missing)
  message(STATUS "tenure::redis (redis://) is not built; missing: ${missing}; "
                 "run tools/setup.sh redis")
  return()
endif()

# Lua scripts of redis://, embedded as texts; lock.lua replaces its include line.
set(scripts_dir ${PROJECT_SOURCE_DIR}/src/backends/redis/scripts)
file(GLOB scripts CONFIGURE_DEPENDS ${scripts_dir}/*.lua)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${scripts})
file(READ ${scripts_dir}/lock.lua lock_script)
foreach(script IN LISTS scripts)
  cmake_path(GET script STEM name)
  if(NOT name STREQUAL lock)
    file(READ ${script} text)
    string(REPLACE "--@include lock.lua\n" "${lock_script}" ${name}_script "${text}")
  endif()
endforeach()
configure_file(src/backends/redis/scripts.cpp.in redis/scripts.cpp @ONLY)

# Lua scripts of redlock://.
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/redlock/scripts/*.lua)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${scripts})
foreach(script IN LISTS scripts)
  cmake_path(GET script STEM name)
  file(READ ${script} ${name}_script)
endforeach()
configure_file(src/backends/redlock/scripts.cpp.in redlock/scripts.cpp @ONLY)

file(GLOB redis_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/redis/*.cpp
     ${PROJECT_SOURCE_DIR}/src/backends/redlock/*.cpp)
add_library(tenure_redis ${redis_sources}
            ${PROJECT_BINARY_DIR}/redis/scripts.cpp ${PROJECT_BINARY_DIR}/redlock/scripts.cpp
            $<TARGET_OBJECTS:tenure_net> $<TARGET_OBJECTS:tenure_backends_net>)
target_include_directories(tenure_redis PRIVATE ${PROJECT_SOURCE_DIR}/src)
list(TRANSFORM TENURE_REDIS_MODULES PREPEND PkgConfig::tenure_ OUTPUT_VARIABLE redis_needs)
target_link_libraries(tenure_redis
  PUBLIC tenure
  PRIVATE ${redis_needs} absl::btree absl::flat_hash_map absl::inlined_vector
          $<BUILD_INTERFACE:tenure_asio> $<BUILD_INTERFACE:tenure_warnings>)
tenure_component(redis UNCALLED tenure_has_redis tenure_has_redlock
  DESCRIPTION "connect() to Redis: redis://, rediss:// and redlock://"
  HIDDEN ${TENURE_REDIS_MODULES} absl_btree absl_flat_hash_map absl_inlined_vector)

# For the tests of this project: with the private headers and their dependencies.
add_library(tenure_redis_private INTERFACE)
target_include_directories(tenure_redis_private INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenure_redis_private INTERFACE
  tenure_redis tenure_backends_net tenure_asio ${redis_needs} absl::btree absl::flat_hash_map absl::inlined_vector)
