# Examples of more than one program, the demo and the documents. Included by tests/.

# 004.084
tenure_example(bank_transfer "the deadlock victim.*2000 transfers.*the total is unchanged: 6000")
# 002.054, 002.056
tenure_example(elected_writer "two leads.*rejected, its token is stale.*no job was done by both")

tenure_example(migrating "redsync: one report.*Redisson.*etcd.*Curator.*same number.*locks both")

# tenure_real_example(name script arguments...): a script in tests/examples that needs real
# servers.
function(tenure_real_example name script)
  add_test(NAME "example: ${name}" COMMAND /usr/bin/python3
           ${CMAKE_CURRENT_SOURCE_DIR}/examples/${script} ${ARGN})
  set_tests_properties("example: ${name}" PROPERTIES LABELS example TIMEOUT 600 ENVIRONMENT
    "TENURED=$<TARGET_FILE:tenured>;TENURE=$<TARGET_FILE:tenure_cli>;PYTHONDONTWRITEBYTECODE=1")
endfunction()

if(TARGET tenured AND TARGET tenure_cli AND NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  tenure_real_example("a cron job never overlaps" cron_test.py)
  if(TARGET demo_worker)
    # 002.054, 002.056, 002.057
    tenure_real_example("make demo shows a lost lock and a rejected write" demo_test.py ${PROJECT_BINARY_DIR})
    # Starts nine processes twice, and uses short leases.
    set_tests_properties("example: make demo shows a lost lock and a rejected write" PROPERTIES PROCESSORS 2)
  endif()
endif()

# Checks of the documents without a build ----------------------------------------------------------------

tenure_script("docs: the page on guarantees names tests that exist" tests/docs/guarantees.py)
tenure_script("docs: every block of code is executed or explained" tests/docs/blocks.py)
tenure_script("docs: every link has a target" tests/docs/links.py)
tenure_script("docs: every cited path exists" tests/docs/cited_paths.py)
tenure_script("docs: every log event is documented" tests/docs/log_events.py)
tenure_script("docs: the checks of documents find planted errors"
              tests/docs/documents_selftest.py)
if(TARGET tenure_cli AND TARGET tenure_redis AND TARGET tenure_fault_preload)
  add_test(NAME "redis_locks: what it does not promise" COMMAND /usr/bin/python3
           ${CMAKE_CURRENT_SOURCE_DIR}/redis_locks/redis_limits_test.py)
  set_tests_properties("redis_locks: what it does not promise" PROPERTIES
    LABELS redis_locks TIMEOUT 300 ENVIRONMENT
    "TENURE=$<TARGET_FILE:tenure_cli>;TENURE_PRELOAD=$<TARGET_FILE:tenure_fault_preload>;PYTHONDONTWRITEBYTECODE=1")
endif()

# Pages whose commands are executed, from top to bottom --------------------------------------------------

function(tenure_page name)
  add_test(NAME "docs: ${name}" COMMAND /usr/bin/python3 ${ARGN}
           --tenured $<TARGET_FILE:tenured> --build ${PROJECT_BINARY_DIR}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties("docs: ${name}" PROPERTIES LABELS script TIMEOUT 600
    ENVIRONMENT "SECONDS_MAX=500;PYTHONDONTWRITEBYTECODE=1")
endfunction()

if(TARGET tenured AND TARGET tenure_cli AND TARGET demo_worker
   AND NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  tenure_page("the README works as written" tests/docs/run_page.py README.md)
  tenure_page("the tour leads from a clone to a cluster"
              tests/docs/run_page.py docs/tutorial/tour.md)
  if(TARGET tenure_redis AND TARGET tenure_etcd)
    tenure_page("the guide on migration works as written"
                tests/docs/run_page.py docs/how_to/migrate.md)
  endif()
endif()

# Pages that need the programs only, not an installed library.
function(tenure_shell_page name)
  add_test(NAME "docs: ${name}" COMMAND /usr/bin/python3 ${ARGN} --tenured $<TARGET_FILE:tenured>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties("docs: ${name}" PROPERTIES LABELS script TIMEOUT 300
    ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endfunction()

if(TARGET tenured)
  tenure_shell_page("the example of the settings starts a server"
                    tests/docs/run_page.py docs/reference/settings.md)
endif()
if(TARGET tenured AND TARGET tenure_cli)
  tenure_shell_page("the guide on clusters works as written"
                    tests/docs/run_page.py docs/how_to/run_a_cluster.md)
  tenure_shell_page("the guide on backups works as written"
                    tests/docs/run_page.py docs/how_to/back_up_and_restore.md)
  tenure_shell_page("the guide on cron jobs works as written"
                    tests/docs/run_page.py docs/how_to/cron_job.md)
  tenure_shell_page("the guide on leader election works as written"
                    tests/docs/run_page.py docs/how_to/leader_election.md)
  tenure_shell_page("the guide on migration locks works as written"
                    tests/docs/run_page.py docs/how_to/migration_lock.md)
  tenure_shell_page("the guide on fenced writes works as written"
                    tests/docs/run_page.py docs/how_to/fenced_writes.md)
  tenure_shell_page("the guide on CI jobs works as written"
                    tests/docs/run_page.py docs/how_to/ci_mutex.md)
endif()

# The API reference --------------------------------------------------------------------------------

find_program(TENURE_DOXYGEN doxygen)
if(TENURE_DOXYGEN)
  add_test(NAME "docs: every public name is documented"
    COMMAND bash tools/api_docs.sh ${PROJECT_BINARY_DIR}/api_docs
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties("docs: every public name is documented" PROPERTIES LABELS script TIMEOUT 300)
endif()
