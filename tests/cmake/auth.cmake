# Users, permissions and TLS: tests of the real daemon with the command and a browser. The C++
# tests are registered with their suites.

if(TARGET tenured AND NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  tenure_daemon_tests(auth)
  tenure_daemon_tests(https)
  tenure_daemon_tests(certificates)
  if(TARGET tenure_cli)
    tenure_cli_tests(auth)
    add_test(NAME "docs: the guide on security works as written"
      COMMAND /usr/bin/python3 tests/docs/run_page.py docs/how_to/secure.md
              --tenured $<TARGET_FILE:tenured>
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties("docs: the guide on security works as written" PROPERTIES
      LABELS script TIMEOUT 300)
  endif()
  foreach(subject login https)
    tenure_browser_test(${subject} ${TENURE_NODE} tests/browser/${subject}_test.mjs)
    set_tests_properties("browser: ${subject}" PROPERTIES FIXTURES_REQUIRED web_packages)
  endforeach()
endif()
