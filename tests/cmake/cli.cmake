# Further tests of the command: bench, views, snapshots; other backends; manual pages. Uses functions
# of ../CMakeLists.txt.

if(TARGET tenured AND TARGET tenure_cli AND NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  tenure_cli_tests(tools)
  tenure_cli_tests(top)
  tenure_cli_tests(backends)
  tenure_cli_tests(translation)
  tenure_cli_tests(manual)
  tenure_cli_tests(retry)
  tenure_cli_tests(jobs)
  tenure_cli_tests(modes)
  tenure_cli_tests(contexts)
endif()
