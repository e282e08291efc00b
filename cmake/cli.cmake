# The command `tenure`, on every backend that is built. Requires the backend tenure://.

find_package(CLI11 QUIET)
set(CURSES_NEED_WIDE TRUE)
find_package(Curses QUIET)
if(NOT TARGET tenure_cluster OR NOT CLI11_FOUND OR NOT CURSES_FOUND)
  message(STATUS "the command tenure is not built; it requires tenure::cluster, CLI11 and ncurses: "
                 "tools/setup.sh cluster cli")
  return()
endif()

file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cpp)
add_executable(tenure_cli ${cli_sources})
set_target_properties(tenure_cli PROPERTIES OUTPUT_NAME tenure)
target_include_directories(tenure_cli PRIVATE ${PROJECT_SOURCE_DIR}/src)
# The library contains the protobuf messages and the gRPC client, so the command does not link them.
target_include_directories(tenure_cli SYSTEM PRIVATE ${TENURE_PROTO_OUT})
target_compile_definitions(tenure_cli PRIVATE TENURE_VERSION="${PROJECT_VERSION}")
target_link_libraries(tenure_cli PRIVATE tenure_cluster ${cluster_needs} tenure_asio
                                         absl::flat_hash_map absl::btree absl::inlined_vector
                                         ${CURSES_LIBRARIES} tenure_warnings)
target_include_directories(tenure_cli SYSTEM PRIVATE ${CURSES_INCLUDE_DIRS})
foreach(scheme redis redlock etcd zookeeper)
  if(TARGET tenure_${scheme})
    target_link_libraries(tenure_cli PRIVATE tenure_${scheme})
  endif()
endforeach()
if(BUILD_SHARED_LIBS)
  set_target_properties(tenure_cli PROPERTIES INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
install(TARGETS tenure_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)

# Manual pages and shell completion. The command prints them, so a cross build has none.
if(NOT CMAKE_CROSSCOMPILING)
  install(CODE "
    set(command \"$<TARGET_FILE:tenure_cli>\")
    set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
    function(write_page folder file)
      file(MAKE_DIRECTORY \${share}/\${folder})
      execute_process(COMMAND \${command} \${ARGN} OUTPUT_FILE \${share}/\${folder}/\${file}
                      COMMAND_ERROR_IS_FATAL ANY)
    endfunction()
    write_page(bash-completion/completions tenure completion bash)
    write_page(zsh/site-functions _tenure completion zsh)
    write_page(fish/vendor_completions.d tenure.fish completion fish)
    execute_process(COMMAND \${command} man --list OUTPUT_VARIABLE pages COMMAND_ERROR_IS_FATAL ANY)
    string(STRIP \"\${pages}\" pages)
    string(REPLACE \"\\n\" \";\" pages \"\${pages}\")
    foreach(page IN LISTS pages)
      separate_arguments(words UNIX_COMMAND \"\${page}\")
      list(POP_FRONT words name)
      write_page(man/man1 \${name}.1 man \${words})
    endforeach()
    message(STATUS \"Installing: \${share}/man/man1/tenure*.1 and completion\")
  " COMPONENT cli)
endif()
