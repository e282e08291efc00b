#!/usr/bin/env bash
# Installs the library to a temporary prefix, moves it (packages get moved), and builds and runs the
# consumers against it by find_package and by pkg-config; for the static and for the shared library.
# The second consumer locks over tenure:// at the tenured that was installed, the third uses the
# fences; both are components of the package.
#   run.sh source-dir build-dir compiler
set -euo pipefail
source=$1 build=$2 compiler=$3
consumer=$source/tests/install/consumer
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$work"' EXIT
unset CMAKE_PREFIX_PATH LD_LIBRARY_PATH

locked='held by ann, for others would_block, then free'
late='lease_lost: token 99 is stale: 100 has been at "accounts/42"'

# expect output program [arguments]
expect() {
  local output wanted=$1
  shift
  output=$("$@") || { echo "$* failed: $output"; exit 1; }
  [[ $output == "$wanted" ]] || { echo "unexpected output of $*: $output"; exit 1; }
}

# start_server tenured: sets url
start_server() {
  local line
  mkfifo "$work/log"
  "$1" --data-dir "$work/store" --listen-grpc 127.0.0.1:0 --listen-http off --log-format json \
    2>"$work/log" &
  server=$!
  exec {log}<"$work/log"
  while read -r -u "$log" line; do
    if [[ $line == *'"event":"ready"'* && $line =~ \"grpc_port\":([0-9]+) ]]; then
      url=tenure://127.0.0.1:${BASH_REMATCH[1]}
      return
    fi
    echo "$line"
  done
  echo "tenured does not become ready" && exit 1
}

# compile pkg-config-path program modules...: the consumer of that name, as a distribution would,
# which leaves out libraries that nobody seems to need
compile() {
  local path=$1 program=$2 flags
  shift 2
  read -ra flags <<<"$(PKG_CONFIG_PATH=$path pkg-config --cflags --libs "$@")"
  "$compiler" "$consumer/$(basename "$program").cpp" -Wl,--as-needed "${flags[@]}" -o "$program"
}

# use_package kind build-dir
use_package() {
  local kind=$1 tree=$2
  cmake --install "$tree" --prefix "$work/$kind.first" >/dev/null
  mv "$work/$kind.first" "$work/$kind"
  local prefix=$work/$kind lib
  lib=$(dirname "$(find "$prefix" -name 'libtenure.*' | head -1)")
  [[ -n $server ]] || start_server "$prefix/bin/tenured"

  echo "$kind: find_package"
  cmake -S "$consumer" -B "$work/$kind.cmake" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$work/$kind.cmake" >/dev/null
  expect "held: X" "$work/$kind.cmake/main"
  expect "$locked" "$work/$kind.cmake/cluster" "$url"
  expect "$late" "$work/$kind.cmake/fences"

  echo "$kind: pkg-config"
  mkdir "$work/$kind.pc"
  compile "$lib/pkgconfig" "$work/$kind.pc/main" tenure
  compile "$lib/pkgconfig" "$work/$kind.pc/cluster" tenure_cluster
  compile "$lib/pkgconfig" "$work/$kind.pc/fences" \
    tenure_fence_sqlite tenure_fence_postgresql tenure_fence_redis
  export LD_LIBRARY_PATH=$lib
  expect "held: X" "$work/$kind.pc/main"
  expect "$locked" "$work/$kind.pc/cluster" "$url"
  expect "$late" "$work/$kind.pc/fences"
  unset LD_LIBRARY_PATH
}

use_package static "$build"

# Stays, so that the next run builds only what changed.
cmake -S "$source" -B "$build/shared" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CXX_FLAGS=-O0 -DBUILD_SHARED_LIBS=ON -DTENURE_SERVER=OFF -DTENURE_TESTS=OFF \
  -DTENURE_EXAMPLES=OFF >/dev/null
cmake --build "$build/shared" >/dev/null
use_package shared "$build/shared"
