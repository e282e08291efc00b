# Tests of the packages and of interfaces for operators and other languages: the OpenAPI document,
# Grafana dashboard and alerts, clients in Python and Node.

if(NOT TARGET tenured OR CMAKE_CXX_FLAGS MATCHES "sanitize")
  return()
endif()

tenure_daemon_tests(http_api)
tenure_daemon_tests(monitoring)
tenure_daemon_tests(sandbox)

# Installs the packages of examples/node/package-lock.json, unless they are up to date.
add_test(NAME "daemon: packages of Node are there" COMMAND bash tools/node_modules.sh examples/node
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties("daemon: packages of Node are there" PROPERTIES
  LABELS daemon TIMEOUT 300 FIXTURES_SETUP node_packages)
tenure_daemon_test("daemon: Languages" ${CMAKE_CURRENT_SOURCE_DIR}/daemon/languages_test.py)
set_tests_properties("daemon: Languages" PROPERTIES FIXTURES_REQUIRED node_packages)

# The shared libraries are those of the test `install`, which builds them.
if(TARGET tenure_cli)
  add_test(NAME "package: debs are made, sound, installed and used"
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/package/run.py
            ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties("package: debs are made, sound, installed and used" PROPERTIES
    LABELS package TIMEOUT 900 RESOURCE_LOCK build_tree FIXTURES_REQUIRED shared_tree
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
  set_tests_properties("install: a consumer builds by CMake and by pkg-config" PROPERTIES
    FIXTURES_SETUP shared_tree)
endif()
