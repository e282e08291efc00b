#!/usr/bin/env bash
# Starts a lock server of one node in ./var, says what to try next, and stays until Ctrl-C.
#   tools/run_server.sh path/to/tenured [flags of tenured]
set -euo pipefail
tenured=$1
shift
bold="" plain=""
if [[ -t 1 ]]; then
  bold=$'\033[1m' plain=$'\033[0m'
fi

"$tenured" --data-dir ./var --log-level warning "$@" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server; exit $?' INT TERM

ready=no
for _ in $(seq 300); do
  if curl --silent --fail --output /dev/null http://127.0.0.1:7421/readyz; then
    ready=yes
    break
  fi
  kill -0 $server 2>/dev/null || break
  sleep 0.1
done
if [[ $ready == no ]]; then
  kill $server 2>/dev/null || true
  wait $server || exit $?
  exit 1
fi

cat <<EOF

${bold}tenured runs:${plain} gRPC on 127.0.0.1:7420, HTTP on 127.0.0.1:7421, all durable in ./var
Try in another terminal, from this folder:

  ${bold}# hold a lock for a minute; see it; watch what happens; wait for it${plain}
  /usr/bin/python3 examples/python/hold.py db/users --seconds 60
  curl -s http://127.0.0.1:7421/v1/locks
  curl -sN http://127.0.0.1:7421/v1/events
  /usr/bin/python3 examples/python/hold.py db/users --seconds 1

  ${bold}# how it is, and for Prometheus${plain}
  curl -s http://127.0.0.1:7421/v1/status
  curl -s http://127.0.0.1:7421/metrics

Ctrl-C stops it; the next start has every lock again. docs/wire.md has the calls, docs/operating.md
the settings.

EOF
wait $server
