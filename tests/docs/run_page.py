#!/usr/bin/env python3
"""Runs the commands of a page and compares their output with the page.

    run_page.py docs/how_to/secure.md --tenured build/dev/tenured [--build build/dev]

All blocks run from top to bottom in one shell, with the programs of the build in PATH.

  <!-- run -->          above a ```sh block: run it. A ```text block right after it is the expected
                        output; `...` matches any text.
  <!-- run in a terminal -->
                        above a ```sh block with one long-running command, such as `make run`: start
                        it, wait until `tenure doctor` succeeds, and stop it at the next such block.
                        `make` is a stub that skips the build and starts the same programs on other
                        ports.
  <!-- file: NAME -->   above any block: write it to the file NAME.
  <!-- from: FILE -->   above any block: its lines must occur in FILE, relative to the page.
  <!-- start on: HOST, HOST -->
                        above a ```toml block, a configuration file of tenured: start tenured with
                        it on these hosts (hosts.py) and wait until it is ready.
  <!-- run on: HOST --> above a ```sh block: run it on that host.

With --build the library is installed first, so that blocks can compile against it.
"""
import argparse
import fcntl
import os
import pathlib
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

import hosts
from compile_page import blocks_of, install, occurs_in

MARK = "=== end of block"
STAYS = "run in a terminal"
PRELUDE = """set -euo pipefail
stays=
in_a_terminal() {
  if [[ -n $stays ]]; then
    kill $stays
    wait $stays || true
  fi
  terminal >terminal.log 2>&1 &
  stays=$!
  export TENURE_URL=tenure://127.0.0.1:7420
  for _ in {1..300}; do
    tenure doctor --timeout 1s >/dev/null 2>&1 && break
    kill -0 $stays || { cat terminal.log; exit 1; }
    sleep 0.2
  done
}
"""
# Does what the Makefile does after the build.
MAKE = """#!/bin/bash
set -euo pipefail
cd {home}
grep --quiet "^$1:.*##" Makefile
case $1 in
  run) exec env BASE_PORT={port} FOLDER={folder}/var tools/run_server.sh {tenured} ;;
  cluster) exec env BASE_PORT={port} FOLDER={folder}/var/cluster tools/run_cluster.sh {tenured} ;;
  demo) exec env BASE_PORT=0 tools/demo.py {build} --think-ms 5 --ttl-ms 1000 --rounds 1 ;;
  docs) exec tools/api_docs.sh {folder}/docs ;;
  *) exit 0 ;;
esac
"""
SECONDS_MAX = int(os.environ.get("SECONDS_MAX", "120"))
PORTS = "127.0.0.1:74"  # of the page; replaced by free ports


def free_prefix():
    """Returns two digits that no port in use begins with, and a locked file that reserves them
    against tests of other pages that run at the same time."""
    for prefix in random.sample(range(20, 32), 12):
        claim = open(pathlib.Path(tempfile.gettempdir()) / f"tenure_ports.{prefix}", "w")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for port in range(prefix * 100, prefix * 100 + 100):
                socket.create_server(("127.0.0.1", port)).close()
            return prefix, claim
        except OSError:
            claim.close()
    sys.exit("no free ports")


def file_of(block):
    """Returns the file name that the block is written to, or None."""
    kind, _, name = block.note.partition(": ")
    return name if kind == "file" else None


def is_run(block):
    return block.language == "sh" and block.note in ("run", STAYS)


def without_hosts(run):
    """The blocks that need no host, and a line about the others, if hosts are unavailable here."""
    others = [block for block in run if not (hosts.is_start(block) or hosts.is_run(block))]
    if len(others) < len(run) and (reason := hosts.unavailable_reason()):
        print(f"{len(run) - len(others)} blocks with hosts are skipped: {reason}")
        return others
    return run


def script_of(blocks):
    parts = [PRELUDE, hosts.START_ON]
    for number, block in enumerate(blocks):
        text = block.text
        if block.note == STAYS:
            text = f"terminal() {{ exec {text.strip()}; }}\nin_a_terminal"
        if hosts.is_start(block) or hosts.is_run(block):
            text = hosts.script_of(block)
        if name := file_of(block):
            text = f"cat >{shlex.quote(name)} <<'END OF FILE'\n{text}END OF FILE"
        parts.append(f'{text}\necho "{MARK} {number}"')
    return "\n".join(parts)


def missing_lines(markdown, found):
    """Yields an error for each `from` block whose lines do not occur in its file."""
    for block in found:
        kind, _, name = block.note.partition(": ")
        file = markdown.resolve().parent / name
        if kind == "from" and (not file.exists() or not occurs_in(block.text, file.read_text())):
            yield f"{markdown}:{block.line}: these lines do not occur in {name}"


def matches(expected, printed):
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("markdown", type=pathlib.Path)
    parser.add_argument("--tenured", type=pathlib.Path, required=True)
    parser.add_argument("--build")
    options = parser.parse_args()

    home = pathlib.Path(__file__).resolve().parents[2]
    found = blocks_of(options.markdown.read_text(encoding="utf-8"))
    run = without_hosts([block for block in found if is_run(block) or file_of(block) or
                         hosts.is_start(block) or hosts.is_run(block)])
    wrong = list(missing_lines(options.markdown, found))
    if wrong:
        sys.exit("\n".join(wrong))
    digits, claim = free_prefix()
    prefix = f"127.0.0.1:{digits}"
    with tempfile.TemporaryDirectory(prefix="tenure_page.") as folder:
        environment = prepare(folder, digits, options, home)
        names = [name for block in run if hosts.is_start(block) for name in hosts.names_of(block)]
        network = hosts.Hosts(folder, names) if names else None
        try:
            output = execute(script_of(run).replace(PORTS, prefix), folder, environment)
        finally:
            if network:
                network.close()
    claim.close()
    return compare(options.markdown, found, run, output.replace(prefix, PORTS))


def prepare(folder, digits, options, home):
    """Writes the stub of make; returns the environment of the page's shell."""
    tools = pathlib.Path(folder) / "tools"
    tools.mkdir()
    tenured = options.tenured.resolve()
    (tools / "make").write_text(MAKE.format(home=home, folder=folder, port=f"{digits}20",
                                            tenured=tenured, build=tenured.parent))
    (tools / "make").chmod(0o755)
    environment = dict(os.environ)
    if options.build:
        environment = install(options.build, pathlib.Path(folder) / "installed")
    return environment | {"PATH": ":".join([str(tools), str(tenured.parent), os.environ["PATH"]])}


def execute(script, folder, environment):
    """Runs the script and returns its output."""
    # To a file: background processes of the shell would keep a pipe open.
    printed = pathlib.Path(folder) / "printed"
    with open(printed, "w", encoding="utf-8") as file:
        shell = subprocess.Popen(["bash", "-c", script], cwd=folder, env=environment, stdout=file,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    try:
        shell.wait(SECONDS_MAX)
    except subprocess.TimeoutExpired:
        pass
    finally:
        output = printed.read_text(encoding="utf-8")
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return output


def compare(markdown, found, run, output):
    # Messages of bash about jobs that a block kills on purpose.
    output = re.sub(r"^\S+: line \d+: +\d+ Killed .*\n", "", output, flags=re.MULTILINE)
    parts = re.split(re.escape(MARK) + r" \d+\n", output)
    errors = 0
    for number, block in enumerate(run):
        if number >= len(parts) - 1:
            print(f"{markdown}:{block.line}: this block fails or times out:\n{parts[-1]}")
            return 1
        after = found.index(block) + 1
        expected = found[after] if after < len(found) else None
        if expected and expected.language == "text" and expected.follows and \
                not matches(expected.text, parts[number]):
            print(f"{markdown}:{block.line}: prints\n{parts[number]}instead of\n{expected.text}")
            errors += 1
    print(f"{len(run)} blocks were run, {errors} have other output")
    return 1 if errors or not run else 0


if __name__ == "__main__":
    sys.exit(main())
