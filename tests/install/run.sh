#!/usr/bin/env bash
# Installs the library to a temporary prefix, moves the prefix (packages are relocatable), and
# builds and runs consumers with find_package and with pkg-config, for the static and the shared
# library. The second consumer locks over tenure:// at the installed tenured, the third on a
# redis-server, and the fourth uses the fences; each uses a component of the package.
#   run.sh source-dir build-dir compiler
set -euo pipefail
source=$1 build=$2 compiler=$3
consumer=$source/tests/install/consumer
work=$(mktemp -d)
server=
redis=
trap '[[ -z $server ]] || kill "$server"; [[ -z $redis ]] || kill "$redis"; rm -rf "$work"' EXIT
unset CMAKE_PREFIX_PATH LD_LIBRARY_PATH

locked='held by ann, for others would_block, then free'
late='lease_lost: token 99 is stale: 100 was admitted for "accounts/42"'

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

# start_redis: sets redis_url. Another process may take the free port first, so it retries.
start_redis() {
  local port attempt
  for attempt in 1 2 3 4 5; do
    port=$(python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$work" >"$work/redis.log" &
    redis=$!
    while kill -0 "$redis" 2>/dev/null; do
      if [[ $(redis-cli -p "$port" ping 2>/dev/null) == PONG ]]; then
        redis_url=redis://127.0.0.1:$port
        return
      fi
    done
  done
  echo "redis-server does not start: $(cat "$work/redis.log")" && exit 1
}

# compile pkg-config-path program modules...: the consumer of that name, as a distribution would,
# which drops libraries without a direct reference
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
  [[ -n $redis ]] || start_redis

  echo "$kind: find_package"
  cmake -S "$consumer" -B "$work/$kind.cmake" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$work/$kind.cmake" >/dev/null
  expect "held: X" "$work/$kind.cmake/main"
  expect "$locked" "$work/$kind.cmake/cluster" "$url"
  expect "$locked" "$work/$kind.cmake/redis" "$redis_url"
  expect "$late" "$work/$kind.cmake/fences"

  echo "$kind: pkg-config"
  mkdir "$work/$kind.pc"
  compile "$lib/pkgconfig" "$work/$kind.pc/main" tenure
  compile "$lib/pkgconfig" "$work/$kind.pc/cluster" tenure_cluster
  compile "$lib/pkgconfig" "$work/$kind.pc/redis" tenure_redis
  compile "$lib/pkgconfig" "$work/$kind.pc/fences" \
    tenure_fence_sqlite tenure_fence_postgresql tenure_fence_redis
  export LD_LIBRARY_PATH=$lib
  expect "held: X" "$work/$kind.pc/main"
  expect "$locked" "$work/$kind.pc/cluster" "$url"
  expect "$locked" "$work/$kind.pc/redis" "$redis_url"
  expect "$late" "$work/$kind.pc/fences"
  unset LD_LIBRARY_PATH
}

use_package static "$build"

# Stays, so that the next run builds only what changed; as deep in the tree and with the same
# options as the other one, so that ccache has most of it already. Below /usr, as it is packaged:
# the test `package` takes it from there.
cd "$source"
cmake --preset dev -B "$build-shared" -DCMAKE_CXX_COMPILER="$compiler" -DBUILD_SHARED_LIBS=ON \
  -DCMAKE_INSTALL_PREFIX=/usr -DTENURE_SERVER=OFF -DTENURE_TESTS=OFF \
  -DTENURE_EXAMPLES=OFF >/dev/null
cmake --build "$build-shared" >/dev/null
use_package shared "$build-shared"
