# tenure_asio: Boost.Asio without deprecated names and implicit threads, for all targets that use
# the network. Undefined if Boost is not found.

find_package(Boost 1.81 QUIET)
if(NOT TARGET Boost::headers)
  return()
endif()

# Boost.JSON, compiled once, for all targets that read JSON.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/boost_json.cpp CONTENT "#include <boost/json/src.hpp>\n")
add_library(tenure_json STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/boost_json.cpp)
set_target_properties(tenure_json PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tenure_json PUBLIC Boost::headers)

add_library(tenure_asio INTERFACE)
target_link_libraries(tenure_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(tenure_asio INTERFACE BOOST_ASIO_NO_DEPRECATED
                                                 BOOST_ASIO_NO_TS_EXECUTORS)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # ThreadSanitizer does not support fences. Asio uses them only beside mutexes, which it supports.
  target_compile_options(tenure_asio INTERFACE -Wno-tsan)
endif()
