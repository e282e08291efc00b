#!/usr/bin/env bash
# Starts a single lock server in ./var, prints example commands, and runs until Ctrl-C.
#   tools/run_server.sh path/to/tenured [flags of tenured]
# BASE_PORT (7420): port of gRPC; HTTP uses the next one.
# FOLDER (./var): data directory of the server.
set -euo pipefail
tenured=$1
tenure=$(dirname "$tenured")/tenure
shift
base=${BASE_PORT:-7420}
folder=${FOLDER:-./var}
grpc=127.0.0.1:$base
http=127.0.0.1:$((base + 1))
# Address for the commands, if the port is not the default.
url="" address=""
if [[ $base != 7420 ]]; then
  url="TENURE_URL=tenure://$grpc " address=" --server $grpc"
fi
bold="" plain=""
if [[ -t 1 ]]; then
  bold=$'\033[1m' plain=$'\033[0m'
fi

"$tenured" --data-dir "$folder" --listen-grpc "$grpc" --listen-http "$http" \
  --log-level warning "$@" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server; exit $?' INT TERM

ready=no
for _ in $(seq 300); do
  if curl --silent --fail --output /dev/null http://$http/readyz; then
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

${bold}tenured runs:${plain} gRPC on $grpc, HTTP on $http, data in $folder
${bold}The dashboard:${plain} http://$http/
Force-release requires the secret in $folder/http_secret.

Try in another terminal, from this folder:

  ${bold}# run a command under a lock; list locks; try without waiting; check the server${plain}
  ${url}$tenure run backup -- sleep 60
  ${url}$tenure ls
  ${url}$tenure run --no-wait backup -- true || echo "exit code \$?"
  ${url}$tenure doctor

  ${bold}# in Python: hold a lock for a minute; list locks; watch events; wait for the lock${plain}
  /usr/bin/python3 examples/python/hold.py db/users --seconds 60$address
  curl -s http://$http/v1/locks
  curl -sN http://$http/v1/events
  /usr/bin/python3 examples/python/hold.py db/users --seconds 1$address

  ${bold}# status, and metrics for Prometheus${plain}
  curl -s http://$http/v1/status
  curl -s http://$http/metrics

Ctrl-C stops the server; the next start restores every lock.
Command: docs/reference/cli.md. Calls: docs/reference/grpc.md. Settings: docs/reference/settings.md.

EOF
wait $server
