#!/usr/bin/env bash
# Runs as root in separate namespaces (tests/package/run.py). Mounts an overlay of the root
# directory without the sources of Tenure; changes are discarded at the end. Installs the packages
# there, uses them, and purges them.
#   in_root.sh work source-dir compiler
set -euo pipefail
work=$1 source=$2 compiler=$3
root=$work/root

mount --make-rprivate /
mount -t tmpfs tmpfs "$work/layers"
mkdir "$work/layers/upper" "$work/layers/work"
mount -t overlay overlay "$root" \
  -o "lowerdir=/,upperdir=$work/layers/upper,workdir=$work/layers/work"
# What is found is found in the packages.
mount -t tmpfs tmpfs "$root$source"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mkdir "$root/tmp/debs"
cp "$work"/debs/*.deb "$root/tmp/debs"
cp -r "$work/consumer" "$root/tmp/consumer"
ip link set lo up

# Becomes a program in there. In the background it is the one that $! names.
become() {
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/tmp \
    DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}
inside() { (become "$@"); }
inside_tmp() { inside sh -c 'cd /tmp/consumer && exec "$@"' sh "$@"; }
# expect output command...
expect() {
  local output wanted=$1
  shift
  output=$("$@") || { echo "$* failed: $output"; exit 1; }
  [[ $output == "$wanted" ]] || { echo "unexpected output of $*: $output"; exit 1; }
}
# quietly log command...: its output only if it fails
quietly() {
  local log=$work/$1
  shift
  "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
}
locked='held by ann, for others would_block, then free'
url=tenure://127.0.0.1:7420

echo "installed by dpkg"
quietly dpkg.log inside sh -c 'dpkg --install /tmp/debs/*.deb'
inside getent passwd tenure >/dev/null
[[ -L $root/etc/systemd/system/multi-user.target.wants/tenured.service ]]
inside dpkg --audit
expect "" inside dpkg --verify tenured

echo "unit verified"
inside systemd-analyze --man=no verify tenured.service
quietly security.log inside systemd-analyze --no-pager security --offline=yes --threshold=20 \
  tenured.service
tail -1 "$work/security.log"

# As the unit starts it: its user, its command, its system call filter.
start_server() {
  become setpriv --reuid=tenure --regid=tenure --clear-groups --no-new-privs \
    /usr/bin/python3 /tmp/unit_filter.py /lib/systemd/system/tenured.service \
    tenured --config /etc/tenure/tenure.toml >"$work/tenured.log" 2>&1 &
  server=$!
  until inside curl -sf http://127.0.0.1:7421/readyz >/dev/null; do
    kill -0 "$server" || { cat "$work/tenured.log"; exit 1; }
  done
}
stop_server() {
  kill "$server"
  wait "$server" || { echo "tenured ended with $?"; cat "$work/tenured.log"; exit 1; }
}

echo "tenured runs as its user, with the file that was installed, under the filter of its unit"
inside install -d -o tenure -g tenure -m 0700 /var/lib/tenure
cp "$work/unit_filter.py" "$root/tmp/unit_filter.py"
trap 'kill "$server" 2>/dev/null || true' EXIT
start_server
page=$(inside curl -sf -H 'Accept: text/html' http://127.0.0.1:7421/)
[[ $page == *'<!doctype html>'* ]] || { echo "no dashboard: $page"; exit 1; }
expect tenure inside stat -c %U /var/lib/tenure/identity

echo "tenure locks there"
expect "held with backup" inside tenure run backup -- sh -c 'echo "held with $TENURE_NAME"'
inside tenure doctor >/dev/null
inside bash -c '. /usr/share/bash-completion/completions/tenure'

echo "it takes a snapshot, stops with code 0, and starts again"
printf '\0\0\0\0\0' >"$root/tmp/empty_message"
inside curl -sf --max-time 30 --http2-prior-knowledge -H 'Content-Type: application/grpc' \
  -H 'TE: trailers' --data-binary @/tmp/empty_message -o /tmp/snapshot_reply \
  http://127.0.0.1:7420/tenure.v1.Admin/Snapshot
[[ -s $root/tmp/snapshot_reply && -s $root/var/lib/tenure/snapshot ]] ||
  { ls -l "$root/var/lib/tenure"; cat "$work/tenured.log"; exit 1; }
stop_server
start_server
expect "held with backup" inside tenure run backup -- sh -c 'echo "held with $TENURE_NAME"'

echo "a program is built with libtenure-dev alone"
quietly cmake.log inside_tmp cmake -S . -B build -G Ninja -DCMAKE_CXX_COMPILER="$compiler"
quietly cmake.log inside_tmp cmake --build build
expect "held: X" inside_tmp build/main
expect "$locked" inside_tmp build/cluster "$url"
inside_tmp sh -c "$compiler cluster.cpp \$(pkg-config --cflags --libs tenure_cluster) -o plain"
expect "$locked" inside_tmp ./plain "$url"

echo "stopped and purged, nothing is left"
stop_server
trap - EXIT
quietly purge.log inside dpkg --purge tenured tenure
for path in /var/lib/tenure /etc/tenure /lib/systemd/system/tenured.service /usr/bin/tenured \
  /etc/systemd/system/multi-user.target.wants/tenured.service; do
  [[ ! -e $root$path && ! -L $root$path ]] || { echo "$path is left behind"; exit 1; }
done
