#!/usr/bin/env bash
# A job of cron that never overlaps itself, whichever machine it runs on and however long it takes.
#   never_overlap.sh LOCK COMMAND [ARGUMENTS]
#
# In the crontab of every machine that may run it:
#   TENURE_URL=tenure://db1:7420,db2:7420,db3:7420
#   */5 * * * * never_overlap.sh cron/report /usr/local/bin/report --daily
#
# One of the machines gets the lock and runs the command; the others skip this turn, which is no
# error. If the lock cannot be kept (the network is cut, an operator takes it away), the command is
# ended before another machine can start it: SIGTERM while there is time, then SIGKILL.
#
# Exit codes: 0 done, or skipped; 79 the lock was lost and the work was cut short; 69 no lock server
# can be reached, and nothing ran; else that of the command.
set -uo pipefail
lock=${1:?never_overlap.sh LOCK COMMAND [ARGUMENTS]}
shift

say() { echo "$(date --utc +%FT%TZ) $lock: $*" >&2; }

# --ttl: for so long a machine that dies keeps the others waiting; two renewals may fail meanwhile.
tenure run --no-wait --ttl "${TTL:-30s}" --note "cron on $(hostname)" "$lock" -- "$@"
code=$?
case $code in
  75)
    say "skipped: it still runs elsewhere ($(tenure show "$lock" | head -1 | cut -f2))"
    exit 0
    ;;
  79) say "the lock was lost; the command was ended in the middle of its work" ;;
  69) say "no lock server at ${TENURE_URL:-tenure://127.0.0.1:7420}; nothing ran" ;;
esac
exit $code
