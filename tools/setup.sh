#!/usr/bin/env bash
# Installs the Debian packages of the named groups, by default of all groups. Without output and
# without network access if all are installed. Needs root or sudo.
#   tools/setup.sh [build] [cluster] [redis] [etcd] [zookeeper] [cli] [server] [run] [demo] [docs]
#                  [test] [web] [package] [check] [bench]
set -euo pipefail

# For tenure://; the server needs the same packages.
cluster="libnghttp2-dev libprotobuf-dev protobuf-compiler libboost1.81-dev libssl-dev"
declare -A groups=(
  [build]="g++ cmake ninja-build ccache pkg-config libabsl-dev"
  [cluster]="$cluster"
  [redis]="libhiredis-dev libboost1.81-dev libssl-dev"
  [etcd]="$cluster"
  [zookeeper]="libzookeeper-mt-dev"
  [cli]="libcli11-dev libncurses-dev"
  [server]="$cluster
            libraft-dev libtomlplusplus-dev libcli11-dev prometheus-cpp-dev libsystemd-dev
            libjemalloc-dev"
  # For the scripts that start servers, and for examples/python.
  [run]="libncurses-dev curl iproute2
         python3 protobuf-compiler-grpc python3-grpcio python3-protobuf"
  # For `make demo`: its workers write to a SQLite database.
  [demo]="libsqlite3-dev"
  # For the API reference.
  [docs]="doxygen"
  # The lines from libsqlite3-dev on: client libraries and servers of the fences, Redis, etcd and
  # ZooKeeper; network partitions; the dashboard in a browser; manual pages and shell completion;
  # the API reference; checks of packages and JSON; the system call filter; fuzzing.
  [test]="python3 libgtest-dev librapidcheck-dev libgrpc++-dev protobuf-compiler-grpc python3-grpcio
          python3-protobuf prometheus curl openssl
          libsqlite3-dev libpq-dev libhiredis-dev
          postgresql redis-server redis-tools etcd-server etcd-client
          libzookeeper-mt-dev zookeeper libcurator-recipes-java default-jdk-headless
          iproute2 nftables
          nodejs npm chromium
          groff-base zsh fish libncurses-dev tmux
          doxygen
          dpkg-dev lintian python3-jsonschema
          systemd python3-seccomp strace
          clang-19 libclang-rt-19-dev"
  # Builds .debs.
  [package]="dpkg-dev gzip"
  # Rebuilds the dashboard; make run needs only the committed build.
  [web]="nodejs npm"
  # Fixed fonts make screenshots reproducible.
  [screenshots]="nodejs npm chromium fonts-inter fonts-jetbrains-mono pngquant"
  [check]="git clang-19 clang-format-19 clang-tidy-19 spin"
  # The second and third line: the systems that the benchmarks compare with.
  [bench]="libgrpc++-dev protobuf-compiler-grpc libbenchmark-dev python3
           libdb-dev librocksdb-dev etcd-server
           zookeeper libzookeeper-mt-dev redis-server"
)

# Required version of libraft (src/server/raft/shim.c); in Debian 12 from backports.
raft_version=0.22.1

packages=()
for group in "${@:-build cluster redis etcd zookeeper cli server run test check bench}"; do
  for name in $group; do
    read -rd '' -a names <<<"${groups[$name]}" || true
    packages+=("${names[@]}")
  done
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: not a Debian system; please provide: ${packages[*]}" >&2
  exit 0
fi

missing=()
# Node.js may be installed without a Debian package, and contains npm then.
is_command() {
  case $1 in
    nodejs) command -v node >/dev/null ;;
    npm) command -v npm >/dev/null ;;
    *) return 1 ;;
  esac
}

for package in "${packages[@]}"; do
  is_command "$package" && continue
  state=$(dpkg-query --show --showformat='${db:Status-Status} ${Version}' "$package" \
    2>/dev/null || true)
  case $package:$state in
    libraft-dev:"installed $raft_version"*) ;;
    libraft-dev:*) missing+=("$package") ;;
    *:installed*) ;;
    *) missing+=("$package") ;;
  esac
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: neither root nor sudo; please run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs a command as root without output; prints the whole log if it fails.
quietly() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "setup: failed: $*" >&2
    exit 1
  }
}

# Adds Debian's backports, from the mirror that this machine already uses. Only for Debian 12, whose
# libraft is too old.
add_backports() {
  local release mirror
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [[ $release == bookworm ]] || return 0
  mirror=$(apt-get indextargets --format '$(SITE) $(SUITE) $(CODENAME)' 'Created-By: Packages' |
    awk '$3 == "bookworm" { print $1; exit }')
  if [[ -z $mirror ]]; then
    echo "setup: no Debian mirror is configured; libraft $raft_version is in bookworm-backports" >&2
    exit 1
  fi
  printf '%s\n' "deb $mirror bookworm-backports main" |
    "${as_root[@]}" tee /etc/apt/sources.list.d/tenure-backports.list >/dev/null
  quietly apt-get update
}

echo "setup: installing ${missing[*]}"
quietly apt-get update
if [[ " ${missing[*]} " == *" libraft-dev "* ]]; then
  if ! apt-cache madison libraft-dev | grep -q " $raft_version"; then
    add_backports
  fi
  raft=$(apt-cache madison libraft-dev |
    awk -v want="$raft_version" '$3 ~ "^" want { print $3; exit }')
  if [[ -z $raft ]]; then
    echo "setup: no source of packages has libraft-dev $raft_version" >&2
    exit 1
  fi
  # Header and library of the same version.
  missing=("${missing[@]/#libraft-dev/libraft-dev=$raft}" "libraft0=$raft")
fi
quietly apt-get install --yes --no-install-recommends "${missing[@]}"
