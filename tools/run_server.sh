#!/usr/bin/env bash
# Starts a single lock server in ./var, prints three commands to try, and runs until Ctrl-C. Exits
# with the exit code of the server.
#   tools/run_server.sh path/to/tenured [flags of tenured]
# BASE_PORT (7420): port of gRPC; HTTP uses the next one.
# FOLDER (./var): data directory of the server.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/listeners.sh"
tenured=$1
tenure=$(dirname "$tenured")/tenure
shift
grpc_port=${BASE_PORT:-7420}
http_port=$((grpc_port + 1))
folder=${FOLDER:-./var}
grpc=127.0.0.1:$grpc_port
http=127.0.0.1:$http_port
# Address for the commands, if the port is not the default.
url=""
if [[ $grpc_port != 7420 ]]; then
  url="TENURE_URL=tenure://$grpc "
fi
bold="" plain=""
if [[ -t 1 ]]; then
  bold=$'\033[1m' plain=$'\033[0m'
fi

"$tenured" --data-dir "$folder" --listen-grpc "$grpc" --listen-http "$http" \
  --log-level warning "$@" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server; exit $?' INT TERM

# end: waits for the server and exits with its exit code.
end() {
  local code=0
  wait $server || code=$?
  if [[ $code != 0 ]]; then
    name_listeners "$grpc_port" "$http_port" >&2
    echo "tenured ended with exit code $code" >&2
  fi
  exit $code
}

# A reply is not enough: another server may own the port.
is_ready() {
  [[ $(listener_of "$http_port") == "$server" ]] &&
    curl --silent --fail --output /dev/null "http://$http/readyz"
}
until is_ready; do
  kill -0 $server 2>/dev/null || end
  sleep 0.1
done

cat <<END

${bold}tenured runs:${plain} gRPC on $grpc, HTTP on $http, data in $folder
${bold}The dashboard:${plain} http://$http/
Force-release requires the secret in $folder/http_secret.

Ctrl-C stops the server; the next start restores every lock. docs/tutorial/tour.md continues.

${bold}Try in another terminal, from this folder:${plain}

  ${url}$tenure run backup -- sleep 60
  ${url}$tenure ls
  ${url}$tenure run --no-wait backup -- true || echo "exit code \$?"

END
end
