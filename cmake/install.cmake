# `cmake --install`: headers, the library, find_package(tenure) and pkg-config.
#
# A static library (the default) makes its users link abseil too, so the package config looks for it
# and the .pc file requires it publicly: plain `pkg-config --libs tenure` is then enough. A shared
# library carries its needs itself.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenure)

install(TARGETS tenure EXPORT tenure-targets)
install(DIRECTORY include/tenure TYPE INCLUDE FILES_MATCHING PATTERN *.hpp)
install(EXPORT tenure-targets NAMESPACE tenure:: DESTINATION ${package_dir})

configure_package_config_file(cmake/tenure-config.cmake.in tenure-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tenure-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenure-config.cmake
              ${PROJECT_BINARY_DIR}/tenure-config-version.cmake
        DESTINATION ${package_dir})

set(pc_needs "absl_btree absl_flat_hash_map absl_flat_hash_set absl_inlined_vector")
if(BUILD_SHARED_LIBS)
  set(pc_requires "Requires.private: ${pc_needs}")
else()
  set(pc_requires "Requires: ${pc_needs}")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
           OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
           OUTPUT_VARIABLE pc_includedir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_prefix)
configure_file(cmake/tenure.pc.in tenure.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenure.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
