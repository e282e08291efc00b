#!/usr/bin/env bash
# Installs the Debian packages of the groups named, or of all groups. Silent when all are there;
# asks the network only when one is missing. As root or through sudo.
#   tools/setup.sh [build] [test] [check] [bench]
set -euo pipefail

declare -A groups=(
  [build]="g++ cmake ninja-build ccache pkg-config libabsl-dev"
  [test]="python3 libgtest-dev librapidcheck-dev"
  [check]="git clang-19 clang-format-19 clang-tidy-19"
  [bench]="libbenchmark-dev libdb-dev librocksdb-dev"  # the last two are the peers we compare with
)

packages=()
for group in "${@:-build test check bench}"; do
  for name in $group; do
    read -ra names <<<"${groups[$name]}"
    packages+=("${names[@]}")
  done
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: not a Debian system; please provide: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
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

# Quiet unless it fails: then the whole log is what one needs.
quietly() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "setup: failed: $*" >&2
    exit 1
  }
}

echo "setup: installing ${missing[*]}"
quietly apt-get update
quietly apt-get install --yes --no-install-recommends "${missing[@]}"
