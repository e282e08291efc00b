# Embeds the files of web/dist in tenured, so that the dashboard needs no files at run time. `make
# web` builds them, and they are committed: building tenured needs neither npm nor a network
# (docs/decisions/0022).

set(dist ${PROJECT_SOURCE_DIR}/web/dist)
file(GLOB_RECURSE dashboard_files CONFIGURE_DEPENDS RELATIVE ${dist} ${dist}/*)
list(SORT dashboard_files)
if(NOT "index.html" IN_LIST dashboard_files)
  message(FATAL_ERROR "web/dist/index.html is missing: run `make web`")
endif()

set(dashboard_content_types .html=text/html .js=text/javascript .css=text/css .txt=text/plain
                            .svg=image/svg+xml)

set(TENURE_ASSET_BYTES)
set(TENURE_ASSET_ROWS)
set(number 0)
foreach(file IN LISTS dashboard_files)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  set(type)
  foreach(pair IN LISTS dashboard_content_types)
    if(pair MATCHES "^([^=]+)=(.*)$" AND CMAKE_MATCH_1 STREQUAL extension)
      set(type ${CMAKE_MATCH_2})
    endif()
  endforeach()
  if(NOT type)
    message(FATAL_ERROR "web/dist/${file}: no content type is known for ${extension}")
  endif()
  if(type MATCHES "^text/")
    string(APPEND type "; charset=utf-8")
  endif()
  string(APPEND TENURE_ASSET_BYTES "TENURE_ASSET(${number}, \"${dist}/${file}\")\n")
  string(APPEND TENURE_ASSET_ROWS
    "      {\"/${file}\", \"${type}\", bytes(tenure_asset_${number}, tenure_asset_${number}_end)},\n")
  math(EXPR number "${number} + 1")
endforeach()
# Embeds the OpenAPI document of the HTTP API.
set(openapi ${PROJECT_SOURCE_DIR}/docs/reference/openapi.json)
string(APPEND TENURE_ASSET_BYTES "TENURE_ASSET(openapi, \"${openapi}\")\n")
configure_file(${PROJECT_SOURCE_DIR}/src/server/http/assets.cpp.in
               ${PROJECT_BINARY_DIR}/server/http/assets.cpp @ONLY)
list(TRANSFORM dashboard_files PREPEND ${dist}/)
# .incbin dependencies are not in the compiler's dependency files.
set_source_files_properties(${PROJECT_BINARY_DIR}/server/http/assets.cpp PROPERTIES
  OBJECT_DEPENDS "${dashboard_files};${openapi}")
