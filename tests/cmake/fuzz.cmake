# Fuzzing, 20 s per target. clang builds the targets in build/fuzz. `make test` builds them before it
# runs tests, so that the build does not count towards the timeout of a test.

if(CMAKE_CXX_FLAGS MATCHES "sanitize" OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
include(${CMAKE_CURRENT_SOURCE_DIR}/fuzz/targets.cmake)

add_test(NAME "fuzz: the targets are built"
  COMMAND bash -c "cmake --preset fuzz && cmake --build --preset fuzz"
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties("fuzz: the targets are built" PROPERTIES
  LABELS fuzz TIMEOUT 1200 FIXTURES_SETUP fuzz_targets)
foreach(target IN LISTS TENURE_FUZZ_TARGETS)
  add_test(NAME "fuzz: ${target}"
    COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/run.sh ${PROJECT_SOURCE_DIR}/build/fuzz
            ${target} 20)
  set_tests_properties("fuzz: ${target}" PROPERTIES
    LABELS fuzz TIMEOUT 180 FIXTURES_REQUIRED fuzz_targets)
endforeach()
