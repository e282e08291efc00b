# `cmake --install`: headers, the library, find_package(tenure) and pkg-config.
#
# Programs that link the static library (the default) also link Abseil, so the package config finds
# it and the .pc file requires it publicly: `pkg-config --libs tenure` is enough. A shared library
# links its dependencies itself.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenure)

# Install components, which cmake/packages.cmake makes packages of: lib_core and lib_<component> at
# run time, dev at compile time. Without --component everything is installed.
install(TARGETS tenure EXPORT tenure-targets
        LIBRARY COMPONENT lib_core NAMELINK_COMPONENT dev ARCHIVE COMPONENT dev)
install(DIRECTORY include/tenure TYPE INCLUDE COMPONENT dev FILES_MATCHING PATTERN *.hpp)
install(EXPORT tenure-targets NAMESPACE tenure:: DESTINATION ${package_dir} COMPONENT dev)

configure_package_config_file(cmake/tenure-config.cmake.in tenure-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tenure-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenure-config.cmake
              ${PROJECT_BINARY_DIR}/tenure-config-version.cmake
        DESTINATION ${package_dir} COMPONENT dev)

set(pc_needs "absl_btree absl_flat_hash_map absl_flat_hash_set absl_inlined_vector")
# A shared library links Abseil itself, so its users do not.
set(pc_requires)
if(NOT BUILD_SHARED_LIBS)
  set(pc_requires "Requires: ${pc_needs}")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
           OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
           OUTPUT_VARIABLE pc_includedir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_prefix)
configure_file(cmake/tenure.pc.in tenure.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenure.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT dev)

# tenure_component(name DESCRIPTION text [UNCALLED symbols...] [SEEN modules...] [HIDDEN modules...]
#                  [HIDDEN_LIBRARIES names...]):
# installs the library tenure_<name> as the component tenure::<name> of the package and as the module
# tenure_<name> of pkg-config. Users link the SEEN modules of pkg-config always. If the library is
# static, they also link the HIDDEN modules and the HIDDEN_LIBRARIES, which have no pkg-config module.
# UNCALLED: no program calls the library; its static initializers register it. The linker keeps an
# object file of a static library only if one of its symbols is needed; these symbols make it keep the
# files that register something.
function(tenure_component name)
  cmake_parse_arguments(arg "" "DESCRIPTION" "UNCALLED;SEEN;HIDDEN;HIDDEN_LIBRARIES" ${ARGN})
  set(library tenure_${name})
  add_library(tenure::${name} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
                        VERSION ${PROJECT_VERSION} SOVERSION 0 DEFINE_SYMBOL "")
  if(BUILD_SHARED_LIBS)
    # Finds libtenure in the same folder, which need not be in the search path of the loader.
    set_target_properties(${library} PROPERTIES INSTALL_RPATH "\$ORIGIN")
  endif()
  install(TARGETS ${library} EXPORT ${library}-targets
          LIBRARY COMPONENT lib_${name} NAMELINK_COMPONENT dev ARCHIVE COMPONENT dev)
  install(EXPORT ${library}-targets FILE tenure-${name}-targets.cmake NAMESPACE tenure::
          DESTINATION ${package_dir} COMPONENT dev)
  set_property(GLOBAL APPEND PROPERTY TENURE_COMPONENTS ${name})

  set(pc_name ${library})
  set(pc_description ${arg_DESCRIPTION})
  set(requires tenure ${arg_SEEN})
  if(NOT BUILD_SHARED_LIBS)
    list(APPEND requires ${arg_HIDDEN})
  endif()
  list(JOIN requires " " requires)
  set(pc_requires "Requires: ${requires}")
  set(pc_libs -l${library})
  if(arg_UNCALLED AND BUILD_SHARED_LIBS)
    target_link_options(${library} INTERFACE
      LINKER:--push-state,--no-as-needed,$<TARGET_FILE:tenure::${name}>,--pop-state)
    set(pc_libs "-Wl,--push-state,--no-as-needed -l${library} -Wl,--pop-state")
  elseif(arg_UNCALLED)
    foreach(symbol IN LISTS arg_UNCALLED)
      target_link_options(${library} INTERFACE LINKER:--undefined=${symbol})
      string(PREPEND pc_libs "-Wl,--undefined=${symbol} ")
    endforeach()
  endif()
  if(NOT BUILD_SHARED_LIBS)
    foreach(hidden IN LISTS arg_HIDDEN_LIBRARIES)
      string(APPEND pc_libs " -l${hidden}")
    endforeach()
  endif()
  configure_file(cmake/tenure_component.pc.in ${pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT dev)
endfunction()
