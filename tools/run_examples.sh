#!/usr/bin/env bash
# Runs the examples one after another. Prints the comment at the top of each source above the output
# of the example.
#   tools/run_examples.sh build/dev/examples
set -euo pipefail
programs=$1
bold="" plain=""
if [[ -t 1 ]]; then
  bold=$'\033[1m' plain=$'\033[0m'
fi

# In reading order for a new user.
names=(quick_start two_phase_locking shared_upgrade hierarchy range_locks deadlock concurrent
       bank_transfer remote_mutex lost_lease late_writer coroutines election scoped_locks fencing
       elected_writer)
for name in "${names[@]}"; do
  source=examples/$name.cpp
  printf '\n%s%s%s  (%s)\n' "$bold" "$name" "$plain" "$source"
  sed -n '/^\/\/ /!q; s/^\/\/ /  /p' "$source"
  echo
  "$programs/example_$name" | sed 's/^/    /'
done
