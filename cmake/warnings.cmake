# tenure_warnings: compiler flags of all targets of this project. Third-party headers are system
# headers and not affected.

add_library(tenure_warnings INTERFACE)
target_compile_options(tenure_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion)
if(TENURE_UNITY)
  # Names of one file shadow those of another in the batch.
  target_compile_options(tenure_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
else()
  target_compile_options(tenure_warnings INTERFACE -Wshadow)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # C sources use another compiler.
  target_compile_options(tenure_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
  # std::stable_sort of libstdc++ 12 uses a deprecated function, and clang reports it at the caller.

  target_compile_options(tenure_warnings INTERFACE
                         $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
else()
  # g++ 12 sees uninitialised members in every inlined std::optional and std::variant.
  target_compile_options(tenure_warnings INTERFACE -Wno-maybe-uninitialized)
  # And with -O2 an overlap in every "text" + std::string (GCC bug 105651).
  target_compile_options(tenure_warnings INTERFACE $<$<CONFIG:Release>:-Wno-restrict>)
endif()
if(TENURE_WERROR)
  target_compile_options(tenure_warnings INTERFACE -Werror)
endif()
