#!/usr/bin/env bash
# Runs a cron job once per interval, on any machine; runs never overlap.
#   never_overlap.sh LOCK COMMAND [ARGUMENTS]
#
# In the crontab of every machine that may run it:
#   TENURE_URL=tenure://db1:7420,db2:7420,db3:7420
#   AT_LEAST=4m
#   */5 * * * * never_overlap.sh cron/report /usr/local/bin/report --daily
#
# AT_LEAST keeps the lock for that time, also after a short job, so that a machine whose clock is
# late does not run it again: more than the clock difference, less than the interval. Default: none.
#
# One machine acquires the lock and runs the command; the others skip this run, which is not an
# error. If the lock is lost (network failure, forced release), the command is terminated before
# another machine can start it: SIGTERM first, then SIGKILL.
#
# Exit codes: 0 done or skipped; 79 the lock was lost and the command was terminated; 69 no lock
# server is reachable and the command did not run; otherwise that of the command.
set -uo pipefail
lock=${1:?never_overlap.sh LOCK COMMAND [ARGUMENTS]}
shift

log() { echo "$(date --utc +%FT%TZ) $lock: $*" >&2; }

# --ttl: how long a crashed machine blocks the others; within it two renewals may fail.
options=(--no-wait --ttl "${TTL:-30s}" --metadata "cron on $(hostname)")
[[ -z ${AT_LEAST:-} ]] || options+=(--at-least "$AT_LEAST")
tenure run "${options[@]}" "$lock" -- "$@"
code=$?
case $code in
  75)
    holder=$(tenure show "$lock" | head -1 | cut -f2)
    log "skipped: it runs, or has just run, on another machine ($holder)"
    exit 0
    ;;
  79) log "the lock was lost; the command was terminated" ;;
  69) log "no lock server at ${TENURE_URL:-tenure://127.0.0.1:7420}; the command did not run" ;;
esac
exit $code
