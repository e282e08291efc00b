# Fences that store their tokens in a database: one library per database, built if the client
# library of the database is found. libtenure does not need them.

find_package(PkgConfig QUIET)

# tenure_fence(name module sources...): the library tenure::name, on the pkg-config module `module`.
function(tenure_fence name module)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(tenure_${module} QUIET IMPORTED_TARGET GLOBAL ${module})
  endif()
  if(NOT TARGET PkgConfig::tenure_${module})
    message(STATUS "tenure::${name} is not built; missing: ${module}")
    return()
  endif()
  set(library tenure_${name})
  add_library(${library} ${ARGN})
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  # PUBLIC: a user of the fence also uses the database client.
  target_link_libraries(${library} PUBLIC tenure PkgConfig::tenure_${module}
                                   PRIVATE $<BUILD_INTERFACE:tenure_warnings>)
  tenure_component(${name} DESCRIPTION "Fencing tokens beside the data, on ${module}"
                   SEEN ${module})
endfunction()

foreach(script admit write)
  set(file ${PROJECT_SOURCE_DIR}/src/fence/${script}.lua)
  file(READ ${file} ${script}_script)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
configure_file(src/fence/scripts.cpp.in fence/scripts.cpp @ONLY)

tenure_fence(fence_sqlite sqlite3 src/fence/sqlite.cpp)
tenure_fence(fence_postgresql libpq src/fence/postgresql.cpp)
tenure_fence(fence_redis hiredis src/fence/redis.cpp ${PROJECT_BINARY_DIR}/fence/scripts.cpp)
