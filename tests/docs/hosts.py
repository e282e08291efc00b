"""Hosts of a page for run_page.py: network namespaces with names, an /etc/tenure of their own and
an empty /var/lib. So a page can start its sample configurations as printed, with their host names,
default ports and absolute paths. Requires root; see `unavailable_reason()`.

In the shell of the page:

  on HOST COMMAND...         runs a command on a host, in the folder of the page
  start_on FILE HOST...      starts tenured on each host. The files of the page's folder are in
                             /etc/tenure, and FILE is tenure.toml. Member N gets the configuration
                             of member 1 with its own number.
"""

import pathlib
import re
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fault"))
import netns  # noqa: E402

ON = """#!/bin/bash
set -euo pipefail
host=$1
shift
case $host in
{cases}
  *) echo "no host $host" >&2; exit 1 ;;
esac
root={folder}/hosts/$host
exec "${{prefix[@]}}" unshare --mount bash -c '
  mount -t overlay overlay -o "lowerdir=$0/etc:/etc" /etc
  mount --bind "$0/lib" /var/lib
  exec "$@"' "$root" "$@"
"""
START_ON = r"""
# Certificates and keys that the configuration $2 names and the page has not made.
make_missing_files() {
  local name
  for name in $(sed -n 's|.*"/etc/tenure/\(.*\)\.pem".*|\1|p' "$2"); do
    if [[ ! -e $1/$name.pem ]]; then
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj "/CN=$name" -keyout "$1/$name.key" -out "$1/$name.pem" 2>/dev/null
    fi
  done
}
start_on() {
  local file=$1 number=0 host files
  shift
  for host in "$@"; do
    number=$((number + 1))
    files=hosts/$host/etc/tenure
    find . -maxdepth 1 -type f -exec cp {} "$files" \;
    sed -E "s/^(member_id = )1$/\1$number/; s/(member)1\./\1$number./" "$file" >"$files/tenure.toml"
    make_missing_files "$files" "$file"
    on "$host" tenured --config /etc/tenure/tenure.toml 2>"hosts/$host/log" &
    echo $! >"hosts/$host/pid"
  done
  for host in "$@"; do
    until grep --quiet '"event":"ready"' "hosts/$host/log"; do
      kill -0 "$(cat "hosts/$host/pid")" || { cat "hosts/$host/log"; exit 1; }
      sleep 0.1
    done
  done
}
"""


def is_start(block):
    return block.note.startswith("start on: ")


def is_run(block):
    return block.note.startswith("run on: ")


def names_of(block):
    return re.split(r",\s*", block.note.partition(": ")[2])


def script_of(block):
    """Shell commands of a block with the mark `start on` or `run on`."""
    if is_start(block):
        return f"cat >sample.toml <<'END OF FILE'\n{block.text}END OF FILE\n" + \
            f"start_on sample.toml {' '.join(names_of(block))}"
    return f"on {names_of(block)[0]} bash -euo pipefail -c {shlex.quote(block.text)}"


class Hosts:
    """The hosts of a page, whose folder is `folder`. close() removes them."""

    def __init__(self, folder, names):
        self.network = netns.Network()
        cases, lines = [], ["127.0.0.1 localhost"]
        for number, name in enumerate(names, 1):
            prefix = self.network.host(number)
            cases.append(f"  {name}) prefix=({' '.join(prefix)}) ;;")
            lines.append(f"{self.network.address(number)} {name}")
        for name in names:
            root = pathlib.Path(folder) / "hosts" / name
            (root / "etc/tenure").mkdir(parents=True)
            (root / "lib").mkdir()
            (root / "etc/hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
        script = pathlib.Path(folder) / "tools/on"
        script.write_text(ON.format(cases="\n".join(cases), folder=folder), encoding="utf-8")
        script.chmod(0o755)

    def close(self):
        self.network.close()


def unavailable_reason():
    """None if a page can have hosts here, else the reason."""
    return netns.unavailable_reason()
