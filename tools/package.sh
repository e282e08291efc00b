#!/usr/bin/env bash
# Makes .debs from two build trees, one with the static programs and one with the shared libraries,
# and lists them.
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

# CPack adds scripts that call ldconfig for each library. Debian policy requires a trigger instead,
# which calls it once for all libraries.
for deb in "$folder"/libtenure*.deb; do
  if dpkg-deb --info "$deb" postinst >"$log" 2>&1; then
    dpkg-deb --raw-extract "$deb" "$folder/unpacked"
    rm "$folder/unpacked/DEBIAN/postinst" "$folder/unpacked/DEBIAN/postrm"
    dpkg-deb --root-owner-group --build "$folder/unpacked" "$deb" >"$log"
    rm -r "$folder/unpacked"
  fi
done
ls "$folder"/*.deb
