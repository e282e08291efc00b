# tenure_asio: Boost.Asio as we use it, with no deprecated names and no implicit threads. For what talks
# over a network; not there where Boost is not.

find_package(Boost 1.81 QUIET)
if(NOT TARGET Boost::headers)
  return()
endif()

# Boost.JSON, compiled once: who reads JSON links it.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/boost_json.cpp CONTENT "#include <boost/json/src.hpp>\n")
add_library(tenure_json STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/boost_json.cpp)
set_target_properties(tenure_json PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tenure_json PUBLIC Boost::headers)

add_library(tenure_asio INTERFACE)
target_link_libraries(tenure_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(tenure_asio INTERFACE BOOST_ASIO_NO_DEPRECATED
                                                 BOOST_ASIO_NO_TS_EXECUTORS)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Asio's fences are beside mutexes that the thread sanitizer does understand.
  target_compile_options(tenure_asio INTERFACE -Wno-tsan)
endif()
