# libtenure. Third-party headers are private: public headers include only the standard library.

find_package(absl REQUIRED)
find_package(Threads REQUIRED)

# State machine of the lock service, compiled once for memory:// and for the server.
file(GLOB TENURE_CORE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/core/*.cpp)
add_library(tenure_core_objects OBJECT ${TENURE_CORE_SOURCES})
# Upgrade tests link a program of the previous version, with their own definition in its place.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/core/version_newest.cpp
                            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
set_target_properties(tenure_core_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(tenure_core_objects PUBLIC ${PROJECT_SOURCE_DIR}/src
                                                      ${PROJECT_SOURCE_DIR}/include)
target_compile_options(tenure_core_objects PRIVATE -fno-semantic-interposition)
target_link_libraries(tenure_core_objects PRIVATE tenure_warnings
                      PUBLIC absl::btree absl::inlined_vector)
add_library(tenure_core STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:tenure_core_objects>)
target_link_libraries(tenure_core PUBLIC absl::btree absl::inlined_vector)
target_include_directories(tenure_core PUBLIC ${PROJECT_SOURCE_DIR}/src
                                              ${PROJECT_SOURCE_DIR}/include)
if(TENURE_CHECK_INVARIANTS)
  target_compile_definitions(tenure_core_objects PUBLIC TENURE_CHECK_INVARIANTS)
  target_compile_definitions(tenure_core PUBLIC TENURE_CHECK_INVARIANTS)
endif()

# Threads, clocks, logging. A separate target, for programs that need nothing else, such as tests.
file(GLOB TENURE_SYS_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/sys/*.cpp)
add_library(tenure_sys STATIC EXCLUDE_FROM_ALL ${TENURE_SYS_SOURCES})
set_target_properties(tenure_sys PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_options(tenure_sys PRIVATE -fno-semantic-interposition)
target_include_directories(tenure_sys PUBLIC ${PROJECT_SOURCE_DIR}/src
                                             ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(tenure_sys PUBLIC Threads::Threads PRIVATE tenure_warnings)

file(GLOB TENURE_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/include/tenure/*.hpp
     ${PROJECT_SOURCE_DIR}/include/tenure/client/*.hpp
     ${PROJECT_SOURCE_DIR}/include/tenure/lock_manager/*.hpp
     ${PROJECT_SOURCE_DIR}/src/lock_manager/*.cpp
     ${PROJECT_SOURCE_DIR}/src/backends/*.cpp
     ${PROJECT_SOURCE_DIR}/src/backends/memory/*.cpp
     ${PROJECT_SOURCE_DIR}/src/client/*.cpp)
# Fence in memory. fences.cmake defines the libraries of the fences in databases.
list(APPEND TENURE_SOURCES ${PROJECT_SOURCE_DIR}/src/fence/fence.cpp
                           ${PROJECT_SOURCE_DIR}/src/fence/token_check.cpp)
# tenure://, redis://, etcd:// and zookeeper:// are separate libraries: cluster.cmake, redis.cmake,
# …
add_library(tenure ${TENURE_SOURCES} $<TARGET_OBJECTS:tenure_core_objects>
            $<TARGET_OBJECTS:tenure_sys>)
add_library(tenure::tenure ALIAS tenure)
set_target_properties(tenure PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON
                      VERSION ${PROJECT_VERSION} SOVERSION 0 DEFINE_SYMBOL "")
target_compile_features(tenure PUBLIC cxx_std_23)
# Position-independent, so that a shared library may contain libtenure.a. No semantic interposition:
# the library's functions are not replaced at load time, so the compiler may inline them.
target_compile_options(tenure PRIVATE -fno-semantic-interposition)
target_include_directories(tenure
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenure
  PUBLIC Threads::Threads
  PRIVATE absl::btree absl::flat_hash_map absl::flat_hash_set absl::inlined_vector
          $<BUILD_INTERFACE:tenure_warnings>)

# For the tests and benchmarks of this project: with the private headers and their dependencies.
add_library(tenure_private INTERFACE)
target_include_directories(tenure_private INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tenure_private INTERFACE
  tenure tenure_core tenure_warnings absl::flat_hash_map absl::flat_hash_set absl::inlined_vector)
