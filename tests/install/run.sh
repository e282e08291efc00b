#!/usr/bin/env bash
# Installs the library to a temporary prefix, moves it (packages get moved), and builds and runs the
# consumer against it by find_package and by pkg-config; for the static and for the shared library.
# A second consumer uses the fences, which are components of the package.
#   run.sh source-dir build-dir compiler
set -euo pipefail
source=$1 build=$2 compiler=$3
consumer=$source/tests/install/consumer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CMAKE_PREFIX_PATH LD_LIBRARY_PATH

late='lease_lost: token 99 is stale: 100 has been at "accounts/42"'

# expect output program
expect() {
  local output
  output=$("$2")
  [[ $output == "$1" ]] || { echo "unexpected output of $2: $output"; exit 1; }
}

# use_package kind build-dir
use_package() {
  local kind=$1 tree=$2
  cmake --install "$tree" --prefix "$work/$kind.first" >/dev/null
  mv "$work/$kind.first" "$work/$kind"
  local prefix=$work/$kind lib
  lib=$(dirname "$(find "$prefix" -name 'libtenure.*' | head -1)")

  echo "$kind: find_package"
  cmake -S "$consumer" -B "$work/$kind.cmake" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$work/$kind.cmake" >/dev/null
  expect "held: X" "$work/$kind.cmake/consumer"
  expect "$late" "$work/$kind.cmake/fences"

  echo "$kind: pkg-config"
  local flags
  read -ra flags <<<"$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs tenure)"
  "$compiler" "$consumer/main.cpp" "${flags[@]}" -o "$work/$kind.consumer"
  LD_LIBRARY_PATH=$lib expect "held: X" "$work/$kind.consumer"
  read -ra flags <<<"$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs \
    tenure_fence_sqlite tenure_fence_postgresql tenure_fence_redis)"
  "$compiler" "$consumer/fences.cpp" "${flags[@]}" -o "$work/$kind.fences"
  LD_LIBRARY_PATH=$lib expect "$late" "$work/$kind.fences"
}

use_package static "$build"

# Without debug information, which would name the temporary directory: so ccache knows it next time.
cmake -S "$source" -B "$work/shared.build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CXX_FLAGS=-O0 -DBUILD_SHARED_LIBS=ON -DTENURE_SERVER=OFF -DTENURE_TESTS=OFF \
  -DTENURE_EXAMPLES=OFF >/dev/null
cmake --build "$work/shared.build" >/dev/null
use_package shared "$work/shared.build"
