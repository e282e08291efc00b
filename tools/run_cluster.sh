#!/usr/bin/env bash
# Starts a cluster of three lock servers on this machine, each with its files in ./var/cluster/N,
# prints their addresses when a leader is elected, and runs until Ctrl-C. If a member does not
# start, exits with its exit code.
#   tools/run_cluster.sh path/to/tenured [flags of tenured]
# BASE_PORT (7420): member N has gRPC on BASE_PORT + 10 (N - 1), then HTTP and peers.
# FOLDER (./var/cluster): folder of all files of the cluster.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/listeners.sh"
tenured=$1
shift
base=${BASE_PORT:-7420}
folder=${FOLDER:-./var/cluster}
bold="" plain=""
if [[ -t 1 ]]; then
  bold=$'\033[1m' plain=$'\033[0m'
fi

grpc() { echo "127.0.0.1:$((base + 10 * ($1 - 1)))"; }
http() { echo "127.0.0.1:$((base + 10 * ($1 - 1) + 1))"; }
peers() { echo "127.0.0.1:$((base + 10 * ($1 - 1) + 2))"; }

members=""
for member in 1 2 3; do
  members+="${members:+,}$member=$(peers $member)/$(grpc $member)"
done
mkdir -p "$folder"
if [[ ! -e $folder/secret ]]; then
  (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$folder/secret")
fi

servers=()
stop() {
  trap - INT TERM
  # Signals all members before it waits for them, because each may take a moment for its snapshot.
  # Members that ended earlier do not affect the exit code.
  local code=0 alive=()
  for server in "${servers[@]}"; do
    kill -TERM "$server" 2>/dev/null && alive+=("$server")
  done
  for server in "${alive[@]}"; do
    wait "$server" || code=$?
  done
  exit "${1:-$code}"
}
trap 'stop' INT TERM

for member in 1 2 3; do
  "$tenured" --data-dir "$folder/$member" --member-id $member --name "member $member" \
    --members "$members" --cluster-secret-file "$folder/secret" \
    --listen-grpc "$(grpc $member)" --listen-http "$(http $member)" \
    --listen-peers "$(peers $member)" --log-level warning "$@" &
  servers+=($!)
done

# member_ended N: reports why member N has ended, and stops the others.
member_ended() {
  local code=0 kind
  wait "${servers[$(($1 - 1))]}" || code=$?
  for kind in grpc http peers; do
    name_listeners "$($kind "$1" | cut -d: -f2)" >&2
  done
  echo "member $1 ended with exit code $code" >&2
  stop $code
}

leader=""
for _ in $(seq 300); do
  for member in 1 2 3; do
    kill -0 "${servers[$((member - 1))]}" 2>/dev/null || member_ended $member
  done
  for member in 1 2 3; do
    # A reply is not enough: another server may own the port.
    if [[ $(listener_of "$(http $member | cut -d: -f2)") == "${servers[$((member - 1))]}" ]] &&
      curl --silent --max-time 2 "http://$(http $member)/v1/status" 2>/dev/null |
      grep --quiet '"role":"leader"'; then
      leader=$member
    fi
  done
  [[ -n $leader ]] && break
  sleep 0.1
done
if [[ -z $leader ]]; then
  echo "no member was elected leader within 30 s" >&2
  stop 1
fi

cat <<END

${bold}A cluster of three members runs; member $leader leads.${plain} Data: $folder/1 to 3.

  member   gRPC             HTTP
  1        $(grpc 1)   http://$(http 1)
  2        $(grpc 2)   http://$(http 2)
  3        $(grpc 3)   http://$(http 3)

${bold}Dashboard${plain} of the leader, which shows the most data: http://$(http $leader)/
Force-release requires the secret in $folder/N/http_secret of member N.

Try in another terminal, from this folder:

  ${bold}# leader and log positions${plain}
  curl -s http://$(http 1)/v1/status
  curl -s http://$(http $leader)/metrics | grep tenure_peer_connected

  ${bold}# kill the leader and repeat: another member leads, and no lock is lost${plain}
  kill -9 ${servers[$((leader - 1))]}

Ctrl-C stops all members; the next start restores every lock. Settings: docs/reference/settings.md.

END
# A member that is killed does not end the others.
while :; do
  alive=0
  for server in "${servers[@]}"; do
    kill -0 "$server" 2>/dev/null && alive=1
  done
  [[ $alive == 1 ]] || exit 1
  wait -n "${servers[@]}" 2>/dev/null || true
  sleep 0.2
done
