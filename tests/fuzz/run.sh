#!/usr/bin/env bash
# Fuzzes one target, starting with the committed seeds and the corpus of earlier runs. If the target
# fails, the script fails and writes the input to <build>/findings.
#   run.sh build/fuzz target seconds
set -euo pipefail
build=$1 target=$2 seconds=$3
seeds=$(dirname "$0")/corpus/$target

[[ -d $seeds ]] || { echo "no seeds for $target: tests/fuzz/seeds.py"; exit 1; }
mkdir -p "$build/corpus/$target" "$build/findings"
exec "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=4096 -timeout=25 \
  -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
  "$build/corpus/$target" "$seeds"
