#!/usr/bin/env bash
# Checks the models in docs/models with spin: correct models hold, models of known defects fail.
#   tools/check_models.sh
set -euo pipefail
models=$(cd "$(dirname "$0")/../docs/models" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run model definitions...: prints the number of errors that spin found
run() {
  local model=$1
  shift
  spin "$@" -a "$models/$model.pml" >spin.log || { cat spin.log; exit 1; }
  cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c 2>cc.log || { cat cc.log; exit 1; }
  ./pan -m100000 -w24 >pan.log
  if grep -q 'max search depth too small\|out of memory' pan.log; then
    cat pan.log
    exit 1
  fi
  sed -n 's/.*errors: \([0-9]*\)$/\1/p' pan.log
}

holds() {
  local errors
  errors=$(run "$@")
  if [[ $errors != 0 ]]; then
    cat pan.log
    echo "the model $* does not hold"
    exit 1
  fi
  echo "holds: $* ($(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log) states)"
}

fails() {
  local errors
  errors=$(run "$@")
  if [[ $errors == 0 ]]; then
    echo "the model $* holds, although it models a known defect"
    exit 1
  fi
  echo "fails, as expected: $* ($(grep -m1 'pan:1' pan.log))"
}

holds redis_queue -DCLIENTS=3 -DCRASHES=2 -DDROPS=1
holds redis_queue -DCLIENTS=3 -DCRASHES=1 -DDROPS=1 -DROUNDS=2
holds redis_queue -DCLIENTS=4 -DCRASHES=1 -DDROPS=1
fails redis_queue -DCLIENTS=3 -DCRASHES=0 -DDROPS=0 -DPUBLISHED_PROTOCOL
