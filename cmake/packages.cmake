# `make package`: .debs by CPack from two build trees (tools/package.sh): tenured and tenure from a
# static build, so that they need no library of this project, and the libraries from a shared build.
# One package per shared library: a program that locks on Redis needs neither ZooKeeper nor
# protobuf.

find_program(TENURE_GZIP gzip)
find_program(TENURE_DPKG dpkg)
if(NOT TENURE_DPKG OR NOT TENURE_GZIP)
  return()
endif()

set(packaging ${PROJECT_SOURCE_DIR}/packaging)
set(debian ${packaging}/debian)
set(made ${PROJECT_BINARY_DIR}/packaging)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tenure)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Tenure maintainers <maintainers@tenure.example>")
set(CPACK_PACKAGE_VENDOR Tenure)
# Each package has its own description; CPack would prepend this one to all of them.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_finish.cmake)

# Debian policy: the first file in all packages, the second compressed.
file(MAKE_DIRECTORY ${made})
configure_file(${debian}/changelog ${made}/changelog @ONLY)
execute_process(COMMAND ${TENURE_GZIP} -9nkf ${made}/changelog COMMAND_ERROR_IS_FATAL ANY)

# tenure_package(component NAME package SECTION section SUMMARY line TEXT lines...
#                [DEPENDS text] [RECOMMENDS text] [SUGGESTS text] [NEEDS components...])
function(tenure_package component)
  cmake_parse_arguments(arg "" "NAME;SECTION;SUMMARY;DEPENDS;RECOMMENDS;SUGGESTS" "TEXT;NEEDS"
                        ${ARGN})
  string(TOUPPER ${component} upper)
  list(JOIN arg_TEXT "\n" text)
  install(FILES ${debian}/copyright ${made}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${arg_NAME}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DEPENDS ${arg_NEEDS} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${arg_NAME} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${arg_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS ${arg_DEPENDS} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS ${arg_RECOMMENDS} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS ${arg_SUGGESTS} PARENT_SCOPE)
  # The first line is the summary.
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${arg_SUMMARY}\n${text}" PARENT_SCOPE)
endfunction()

set(what_it_is "Tenure is a lock service and library: fair, fenced locks across threads,"
               "processes and machines. It notifies a program in time when a lock is"
               "lost.")

# Libraries at run time ----------------------------------------------------------------------------

tenure_package(lib_core NAME libtenure0 SECTION libs
  SUMMARY "fair, fenced locks - library"
  TEXT ${what_it_is} "This package contains the library with locks inside one process.")
set(libraries lib_core)

set(cluster_text "Locks of tenured, the lock service: tenure:// URLs.")
set(redis_text "Locks on Redis servers: redis:// and redlock:// URLs.")
set(etcd_text "Locks in an etcd cluster: etcd:// URLs.")
set(zookeeper_text "Locks on a ZooKeeper ensemble: zookeeper:// URLs.")
set(fence_sqlite_text "Fencing tokens beside the data of SQLite.")
set(fence_postgresql_text "Fencing tokens beside the data of PostgreSQL.")
set(fence_redis_text "Fencing tokens beside the data of Redis.")
get_property(components GLOBAL PROPERTY TENURE_COMPONENTS)
foreach(name IN LISTS components)
  string(REPLACE _ - dashed ${name})
  tenure_package(lib_${name} NAME libtenure-${dashed}0 SECTION libs
    SUMMARY "fair, fenced locks - library for ${dashed}"
    TEXT ${what_it_is} ${${name}_text} NEEDS lib_core)
  list(APPEND libraries lib_${name})
endforeach()
foreach(library IN LISTS libraries)
  string(TOUPPER ${library} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${debian}/library/triggers)
endforeach()

# Headers and libraries at compile time ------------------------------------------------------------

# Third-party types in the public headers of the fences.
tenure_package(dev NAME libtenure-dev SECTION libdevel
  SUMMARY "fair, fenced locks - development files"
  DEPENDS "libsqlite3-dev, libpq-dev, libhiredis-dev"
  TEXT ${what_it_is} "This package contains headers, find_package(tenure) and pkg-config modules."
  NEEDS ${libraries})
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
if(EXISTS ${packaging}/man/libtenure.3)
  set(VERSION ${PROJECT_VERSION})
  configure_file(${packaging}/man/libtenure.3 ${made}/libtenure.3 @ONLY)
  install(FILES ${made}/libtenure.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
          COMPONENT dev EXCLUDE_FROM_ALL)
endif()

# The service --------------------------------------------------------------------------------------

if(TARGET tenured)
  # Exactly this version of libraft: the ownership of buffers differs between versions.
  tenure_package(server NAME tenured SECTION net
    SUMMARY "lock service with leases, fencing tokens and a dashboard"
    DEPENDS "adduser, libraft0 (>= 0.22.1~), libraft0 (<< 0.22.2~)"
    RECOMMENDS "tenure (= ${PROJECT_VERSION})" SUGGESTS "prometheus"
    TEXT ${what_it_is} "This package contains the server tenured: one node, or a cluster of three"
         "or five that tolerates failures (Raft).")
  set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
      ${debian}/tenured/postinst ${debian}/tenured/prerm ${debian}/tenured/postrm
      ${debian}/tenured/conffiles)
  # Pages that tenured prints itself.
  install(CODE "
    set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
    foreach(page tenured.8 tenure.toml.5)
      cmake_path(GET page EXTENSION LAST_ONLY section)
      cmake_path(GET page STEM LAST_ONLY name)
      string(REPLACE . /man section \${section})
      execute_process(COMMAND $<TARGET_FILE:tenured> --print-man \${name} RESULT_VARIABLE failed
                      OUTPUT_VARIABLE text ERROR_QUIET)
      if(NOT failed)
        file(WRITE \${share}/man\${section}/\${page} \"\${text}\")
      endif()
    endforeach()
  " COMPONENT server EXCLUDE_FROM_ALL)
  install(FILES ${packaging}/tenured.service DESTINATION /lib/systemd/system
          COMPONENT server EXCLUDE_FROM_ALL)
  install(FILES ${packaging}/tenure.toml DESTINATION /etc/tenure
          COMPONENT server EXCLUDE_FROM_ALL)
  set(docs ${PROJECT_SOURCE_DIR}/docs)
  install(FILES ${docs}/troubleshooting.md
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tenured COMPONENT server EXCLUDE_FROM_ALL)
  install(FILES ${docs}/how_to/install.md ${docs}/how_to/run_a_cluster.md ${docs}/how_to/upgrade.md
                ${docs}/how_to/back_up_and_restore.md ${docs}/how_to/monitor.md
                ${docs}/how_to/secure.md
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tenured/how_to
          COMPONENT server EXCLUDE_FROM_ALL)
  install(FILES ${docs}/reference/settings.md ${docs}/reference/limits.md
                ${docs}/reference/metrics.md ${docs}/reference/log_events.md
                ${docs}/reference/http.md ${docs}/reference/openapi.json
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tenured/reference
          COMPONENT server EXCLUDE_FROM_ALL)
  install(FILES ${packaging}/grafana/tenure.json ${packaging}/prometheus/tenure.rules.yml
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tenured/monitoring
          COMPONENT server EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/tenure
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tenured/proto
          COMPONENT server EXCLUDE_FROM_ALL)
endif()

if(TARGET tenure_cli)
  tenure_package(cli NAME tenure SECTION admin
    SUMMARY "hold locks from scripts and inspect them"
    SUGGESTS "tenured"
    TEXT ${what_it_is} "This package contains the command tenure: it runs a command while it holds"
         "a lock, also instead of flock(1), and shows holders, waiters and the"
         "wait-for graph.")
endif()

# Components of each build tree; see tools/package.sh.
set(CPACK_COMPONENTS_PROGRAMS)
foreach(component server cli)
  if(component IN_LIST CPACK_COMPONENTS_ALL)
    list(APPEND CPACK_COMPONENTS_PROGRAMS ${component})
  endif()
endforeach()
set(CPACK_COMPONENTS_LIBRARIES ${libraries} dev)
include(CPack)
