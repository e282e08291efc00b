#!/usr/bin/env bash
# Makes .debs out of a tree with the programs (static) and one with the shared libraries, both
# built, and lists them.
#   package.sh programs-tree libraries-tree folder
set -euo pipefail
programs=$(realpath "$1") libraries=$(realpath "$2")
mkdir -p "$3"
folder=$(realpath "$3")
rm -f "$folder"/*.deb
umask 022

log=$(mktemp)
trap 'rm -f "$log"' EXIT
projects="$programs;tenure;PROGRAMS;/;$libraries;tenure;LIBRARIES;/"
if ! cpack --config "$programs/CPackConfig.cmake" -G DEB -B "$folder" \
  -D CPACK_INSTALL_CMAKE_PROJECTS="$projects" \
  -D CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS="$libraries" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
rm -rf "$folder/_CPack_Packages"
ls "$folder"/*.deb
