# The library itself. Third parties stay behind it: public headers include only std.

find_package(absl REQUIRED)
find_package(Threads REQUIRED)

file(GLOB TENURE_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/include/tenure/*.hpp
     ${PROJECT_SOURCE_DIR}/src/sys/*.cpp
     ${PROJECT_SOURCE_DIR}/src/local/*.cpp)
# The fence in memory. The forms that need a database are libraries of their own: fences.cmake.
list(APPEND TENURE_SOURCES ${PROJECT_SOURCE_DIR}/src/fence/fence.cpp
                           ${PROJECT_SOURCE_DIR}/src/fence/question.cpp)

add_library(tenure ${TENURE_SOURCES})
add_library(tenure::tenure ALIAS tenure)
set_target_properties(tenure PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON
                      VERSION ${PROJECT_VERSION} SOVERSION 0 DEFINE_SYMBOL "")
target_compile_features(tenure PUBLIC cxx_std_23)
# Position-independent, so that a shared library may swallow libtenure.a; but nobody replaces our
# functions at load time, so the compiler may inline them.
target_compile_options(tenure PRIVATE -fno-semantic-interposition)
target_include_directories(tenure
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenure
  PUBLIC Threads::Threads
  PRIVATE absl::flat_hash_map absl::flat_hash_set absl::inlined_vector
          $<BUILD_INTERFACE:tenure_warnings>)

# The state machine of the lock service. Not part of the installed library until something there
# runs on it.
file(GLOB TENURE_CORE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/core/*.cpp)
add_library(tenure_core STATIC EXCLUDE_FROM_ALL ${TENURE_CORE_SOURCES})
target_include_directories(tenure_core PUBLIC ${PROJECT_SOURCE_DIR}/src
                                              ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(tenure_core PRIVATE tenure_warnings)
if(TENURE_CHECK_INVARIANTS)
  target_compile_definitions(tenure_core PUBLIC TENURE_CHECK_INVARIANTS)
endif()

# For our own tests and benchmarks: the library with its private headers and what they include.
add_library(tenure_private INTERFACE)
target_include_directories(tenure_private INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenure_private INTERFACE
  tenure tenure_core tenure_warnings absl::flat_hash_map absl::flat_hash_set absl::inlined_vector)
